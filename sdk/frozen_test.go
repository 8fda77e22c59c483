package sdk_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt and testdata/wire.txt anew")

// The contract is frozen as 1 (docs/decisions/0010): what these files list stays. A new line is added with -update; a line that is gone or
// changed is a plugin that no longer compiles, or no longer understands its host.
func TestTheContractOnlyGrows(t *testing.T) {
	for file, now := range map[string][]string{"api.txt": exported(t), "wire.txt": wire(t)} {
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		frozen := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range frozen {
			if !slices.Contains(now, line) {
				t.Errorf("%s: frozen, and gone or changed: %s", file, line)
			}
		}
		for _, line := range now {
			if !slices.Contains(frozen, line) {
				t.Errorf("%s: new, and not frozen yet (go test ./sdk -run OnlyGrows -update, after a look at decision 0010): %s", file, line)
			}
		}
	}
}

// exported gives a line for each exported declaration of package sdk, with the fields and methods of types as lines of their own.
func exported(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			lines = append(lines, declared(d)...)
		}
	}
	if len(lines) < 50 {
		t.Fatalf("only %d declarations found", len(lines))
	}
	slices.Sort(lines)
	return lines
}

func declared(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(strings.TrimLeft(source(d.Recv.List[0].Type), "*")) {
			return nil
		}
		return []string{source(&ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})}
	case *ast.GenDecl:
		var lines []string
		for i, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				lines = append(lines, typed(spec)...)
			case *ast.ValueSpec:
				lines = append(lines, valued(d.Tok, i, spec)...)
			}
		}
		return lines
	}
	return nil
}

// valued numbers the constants of a group, because an iota is a position. The module's own version is not part of the contract.
func valued(tok token.Token, i int, spec *ast.ValueSpec) []string {
	var lines []string
	for j, name := range spec.Names {
		if !name.IsExported() || name.Name == "Version" {
			continue
		}
		line := fmt.Sprintf("%s %s #%d", tok, name.Name, i)
		if j < len(spec.Values) {
			line += " = " + source(spec.Values[j])
		}
		lines = append(lines, line)
	}
	return lines
}

func typed(spec *ast.TypeSpec) []string {
	if !spec.Name.IsExported() {
		return nil
	}
	name := "type " + spec.Name.Name
	var members *ast.FieldList
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		name, members = name+" struct", kind.Fields
	case *ast.InterfaceType:
		name, members = name+" interface", kind.Methods
	default:
		return []string{name + " " + source(spec.Type)}
	}
	lines := []string{name}
	for _, field := range members.List {
		for _, f := range field.Names {
			if f.IsExported() {
				lines = append(lines, name+" "+f.Name+" "+source(field.Type))
			}
		}
		if len(field.Names) == 0 {
			lines = append(lines, name+" "+source(field.Type))
		}
	}
	return lines
}

func source(node any) string {
	var text bytes.Buffer
	if err := printer.Fprint(&text, token.NewFileSet(), node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// wire gives a line for each rpc, field and enum value of the protocol, with what it stands in.
func wire(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("internal", "pb", "target.proto"))
	if err != nil {
		t.Fatal(err)
	}
	open := regexp.MustCompile(`^(service|message|enum|oneof) (\w+) \{(\})?`)
	var within, lines []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "//")
		line = strings.Join(strings.Fields(line), " ")
		opened := open.FindStringSubmatch(line)
		switch {
		case opened != nil && opened[3] != "":
			lines = append(lines, opened[1]+" "+opened[2])
		case opened != nil:
			within = append(within, opened[1]+" "+opened[2])
		case line == "}":
			within = within[:len(within)-1]
		case line != "" && strings.HasSuffix(line, ";"):
			lines = append(lines, strings.TrimSpace(strings.Join(within, " ")+" "+line))
		}
	}
	if len(lines) < 60 || len(within) > 0 {
		t.Fatalf("%d lines found, %v still open", len(lines), within)
	}
	slices.Sort(lines)
	return lines
}
