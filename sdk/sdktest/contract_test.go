package sdktest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/sdktest"
)

// bound says who is held to a sentence of package sdk's comments: the cases that fail for a plugin that breaks it, or why no case of the exam
// can, and what proves it instead.
type bound struct {
	sentence string   // as it stands in the source, without line breaks
	cases    []string // of the exam
	instead  string   // for a sentence without cases
}

// binding are the declarations of package sdk that a plugin author reads as the contract. Each of their sentences has a row in contract.
func binding() []string {
	return []string{"Target", "MaxKey", "Class", "ClassMeta", "PutRequest", "PutResult", "GetRequest", "GetResult", "ListRequest", "Object", "Internal", "Error", "Plugin", "Env"}
}

func TestEverySentenceOfTheContractHasACase(t *testing.T) {
	rows := map[string]bound{}
	for _, row := range contract() {
		rows[row.sentence] = row
		if (len(row.cases) > 0) == (row.instead != "") {
			t.Errorf("the row of %q must have either cases or a reason why none can be", row.sentence)
		}
	}
	said := sentences(t)
	for _, s := range said {
		if _, ok := rows[s]; !ok {
			t.Errorf("the sentence has no row: %q", s)
		}
	}
	for sentence := range rows {
		if !slices.Contains(said, sentence) {
			t.Errorf("no longer in the source of package sdk: %q", sentence)
		}
	}
}

func TestEveryCaseOfTheTableIsOne(t *testing.T) {
	named := map[string]bool{}
	for _, row := range contract() {
		for _, name := range row.cases {
			named[name] = true
			if !slices.ContainsFunc(sdktest.Cases(), func(c sdktest.Case) bool { return c.Name == name }) {
				t.Errorf("the row of %q names the case %q, which does not exist", row.sentence, name)
			}
		}
	}
	// A case beyond the comments of package sdk is of the process or of the wire: docs/protocol.md.
	for _, c := range sdktest.Cases() {
		if !named[c.Name] && c.Level != sdktest.Process {
			t.Errorf("the case %q proves no sentence", c.Name)
		}
	}
}

// sentences are those of the comments of the binding declarations, in the order of the files.
func sentences(t *testing.T) (all []string) {
	t.Helper()
	names, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					all = append(all, ofSpec(d, spec)...)
				}
			}
		}
	}
	return all
}

// ofSpec gives the sentences of a type with its fields and methods, or of a block of constants by the name of its first.
func ofSpec(d *ast.GenDecl, spec ast.Spec) (all []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if !slices.Contains(binding(), s.Name.Name) {
			return nil
		}
		all = append(all, split(d.Doc, s.Doc)...)
		ast.Inspect(s.Type, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				all = append(all, split(f.Doc, f.Comment)...)
			}
			return true
		})
	case *ast.ValueSpec:
		first, ok := d.Specs[0].(*ast.ValueSpec)
		if ok && slices.Contains(binding(), first.Names[0].Name) {
			all = append(all, split(s.Doc, s.Comment)...)
		}
	}
	return all
}

// split cuts comments into sentences.
func split(groups ...*ast.CommentGroup) (all []string) {
	for _, g := range groups {
		text := strings.Join(strings.Fields(g.Text()), " ")
		for text != "" {
			sentence, rest, more := strings.Cut(text, ". ")
			if more {
				sentence += "."
			}
			all, text = append(all, sentence), rest
		}
	}
	return all
}
