package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"golang.org/x/mod/modfile"
)

const cairnModule = "github.com/cairnsync/cairn"

// templates are the files of a new plugin. go.mod and go.sum are what `go mod tidy` makes of the others; a test keeps them so.
//
//go:embed template
var templates embed.FS

// scaffoldFiles are the six files, in the order in which a person reads them.
func scaffoldFiles() []string {
	return []string{"main.go", "target.go", "target_test.go", "cairn.hcl", "go.mod", "go.sum"}
}

// render makes one of the files.
func (s *scaffold) render(file string) ([]byte, error) {
	quote := template.FuncMap{"quote": modfile.AutoQuote}
	t, err := template.New(file+".tmpl").Option("missingkey=error").Funcs(quote).ParseFS(templates, "template/"+file+".tmpl")
	if err != nil {
		return nil, fmt.Errorf("template of %s: %w", file, err)
	}
	var content bytes.Buffer
	if err := t.Execute(&content, s); err != nil {
		return nil, fmt.Errorf("template of %s: %w", file, err)
	}
	return content.Bytes(), nil
}

// write makes the folder and the files in it. It replaces nothing: a folder that holds anything is refused.
func (s *scaffold) write() error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the plugin: %w", err)
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return fmt.Errorf("look into the folder of the plugin: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty, it holds %s; name another folder with --dir", s.Dir, entries[0].Name())
	}
	for _, file := range scaffoldFiles() {
		if err := s.writeFile(file); err != nil {
			return err
		}
		s.Files = append(s.Files, file)
	}
	return nil
}

func (s *scaffold) writeFile(file string) error {
	content, err := s.render(file)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the plugin: %w", err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the plugin: %w", err)
	}
	return nil
}

func isSourceTree(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && modfile.ModulePath(mod) == cairnModule
}

// versionsDiffer tells whether the source tree requires other versions of a module than the tree that this cairn was built from.
func (s *scaffold) versionsDiffer() (bool, error) {
	own, err := s.render("go.mod")
	if err != nil {
		return false, err
	}
	mine, err := requirements("go.mod", own)
	if err != nil {
		return false, err
	}
	file := filepath.Join(s.SDK, "go.mod")
	mod, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("--sdk: %w", err)
	}
	theirs, err := requirements(file, mod)
	if err != nil {
		return false, fmt.Errorf("--sdk: %w", err)
	}
	for path, version := range mine {
		if other, ok := theirs[path]; ok && other != version {
			return true, nil
		}
	}
	return false, nil
}

// requirements are the versions that a go.mod asks for, by module path.
func requirements(name string, content []byte) (map[string]string, error) {
	mod, err := modfile.Parse(name, content, nil)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, r := range mod.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions, nil
}
