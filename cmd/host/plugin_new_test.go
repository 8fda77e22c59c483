package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var updateTemplate = flag.Bool("update-template", false, "make the template's go.mod and go.sum anew; may use the network")

// TestThePluginTemplateRequiresWhatThisModuleDoes keeps the versions in step: with older ones a new plugin would not build until somebody runs
// go mod tidy. Remedy: go test ./cmd/host -run TestThePluginTemplate -update-template
func TestThePluginTemplateRequiresWhatThisModuleDoes(t *testing.T) {
	if *updateTemplate {
		remakeTemplate(t)
	}
	s, err := newScaffold("x", "", "", sourceTree(t))
	if err != nil {
		t.Fatal(err)
	}
	if s.Tidy {
		t.Error("the template's go.mod has other versions than this module's; make it anew with -update-template")
	}
}

// remakeTemplate has go itself write go.mod and go.sum for the other files.
func remakeTemplate(t *testing.T) {
	t.Helper()
	s, err := newScaffold("x", filepath.Join(t.TempDir(), "x"), "", sourceTree(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	bare := "module " + s.Module + "\n\ngo 1.26.0\n\nrequire " + cairnModule + " " + s.Version + "\n\nreplace " + cairnModule + " => " + s.SDK + "\n"
	if err := os.WriteFile(filepath.Join(s.Dir, "go.mod"), []byte(bare), 0o600); err != nil {
		t.Fatal(err)
	}
	tidy := exec.CommandContext(t.Context(), "go", "mod", "tidy")
	tidy.Dir = s.Dir
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	mod, err := os.ReadFile(filepath.Join(s.Dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(mod), "\nreplace ")
	text = strings.NewReplacer("module "+s.Module, "module {{.Module}}", cairnModule+" "+s.Version, cairnModule+" {{.Version}}").Replace(text)
	text = strings.TrimSpace(text) + "\n{{- with .SDK}}\n\nreplace " + cairnModule + " => {{quote .}}\n{{- end}}\n"
	if err := os.WriteFile("template/go.mod.tmpl", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(s.Dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("template/go.sum.tmpl", sums, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("made anew: build the test again to embed it")
}

func TestAReleasedCairnRequiresItsOwnVersion(t *testing.T) {
	for _, c := range []struct{ version, want string }{
		{"0.4.0", "v0.4.0"},
		{"1.0.2", "v1.0.2"},
		{"0.1.0-dev", ""}, // a test binary is not installed from a module proxy
	} {
		if have := releasedVersion(c.version); have != c.want {
			t.Errorf("cairn %s: %q; want %q", c.version, have, c.want)
		}
	}
	s := scaffold{Name: "x", Module: "example.com/x", Version: "v0.4.0"}
	mod, err := s.render("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(mod); !strings.Contains(text, "require github.com/cairnsync/cairn v0.4.0\n") || strings.Contains(text, "replace") {
		t.Error(text)
	}
}

func TestEveryFileOfTheTemplateIsRendered(t *testing.T) {
	files, err := templates.ReadDir("template")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(scaffoldFiles()) || len(files) != 6 {
		t.Errorf("%d templates, %d files", len(files), len(scaffoldFiles()))
	}
	s := scaffold{Name: "acme", Module: "example.com/acme", Version: "v1.0.0", SDK: "/with blanks/cairn"}
	for _, file := range scaffoldFiles() {
		text, err := s.render(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "{{") {
			t.Errorf("%s holds a template's braces", file)
		}
	}
}
