package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// FuzzAConfigurationIsReadOrEachFaultHasItsPlace: whatever the text is, it is read to its end, and what is wrong with it is said with a line that it has.
func FuzzAConfigurationIsReadOrEachFaultHasItsPlace(f *testing.F) {
	dir := f.TempDir()
	for _, name := range []string{"schema.sql", "insert.sql"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("SELECT 1;\n"), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	faulty, err := os.ReadFile("testdata/faults.hcl")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		whole, string(faulty), "", "host {", "host {}\nhost {}", "pipeline \"p\" {", `x = "${env("NOPE")}"`, "\xff", "\ufeffhost {}", "a = <<E\n${", `a = { b = [1, null, {}] }`,
		"pipeline \"p\" {\n circuit \"sql\" {}\n storage \"object\" { target = \"t\" }\n}\ntarget \"t\" { plugin = \"store\" }",
	} {
		f.Add(text, "p", "offsite")
	}
	schema, err := sdk.SchemaOf[storeConfig]()
	if err != nil {
		f.Fatal(err)
	}
	file := filepath.Join(dir, "cairn.hcl")
	f.Fuzz(func(t *testing.T, text, pipeline, target string) {
		ask := Options{
			Getenv: func(name string) (string, bool) { return "s3cret", name == "KEY" },
			Schema: func(Host, Plugin) (sdk.Schema, error) { return schema, nil },
			Hash:   func(string) (string, error) { return "sha256:none", nil },
		}
		cfg, found := parse(file, []byte(text), ask)
		wantPlaces(t, file, text, cfg, found)
		ask.Only = pipeline
		cfg, found = parse(file, []byte(text), ask)
		wantPlaces(t, file, text, cfg, found)
		ask.Only, ask.OnlyTarget = "", target
		cfg, found = parse(file, []byte(text), ask)
		wantPlaces(t, file, text, cfg, found)
	})
}

func wantPlaces(t *testing.T, file, text string, cfg *Config, found Diagnostics) {
	t.Helper()
	lines := strings.Count(text, "\n") + 1
	for _, d := range found {
		if d.File != file || d.Line < 1 || d.Line > lines || d.Column < 1 || d.Summary == "" {
			t.Errorf("%d lines, and a fault at %q, line %d, column %d: %q", lines, d.File, d.Line, d.Column, d.Summary)
		}
	}
	if found.Error() == "" != (len(found) == 0) {
		t.Errorf("%d faults are told as %q", len(found), found.Error())
	}
	if found.HasErrors() {
		return
	}
	if cfg == nil {
		t.Fatal("nothing is wrong, and there is no configuration")
	}
	for _, p := range cfg.Pipelines {
		if path := p.Backend.Path; path != "" && !filepath.IsAbs(path) {
			t.Errorf("pipeline %q: storage path %q is relative", p.Name, path)
		}
	}
}
