package core_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tests of each case into docs/reliability.md anew, from the marks above them")

const reliabilityPage = "../docs/reliability.md"

// caseNames are the cases that the table answers: A1 to A75 and E1 to E30.
func caseNames() []string {
	var names []string
	for part, last := range map[string]int{"A": 75, "E": 30} {
		for n := 1; n <= last; n++ {
			names = append(names, fmt.Sprintf("%s%d", part, n))
		}
	}
	return names
}

// caseRow is one row of the table: | case | what went wrong | words, then the tests in backquotes |
type caseRow struct {
	text, head, words string
	tests             []string
}

func caseRows(t *testing.T) map[string]caseRow {
	t.Helper()
	page, err := os.ReadFile(reliabilityPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]caseRow{}
	for _, m := range regexp.MustCompile("(?m)^(\\| ([AE]\\d+) \\| [^|\n]+ \\| )((?:[^|`\n]|`[^TF|\n][^`|\n]*`)*)((?:`(?:Test|Fuzz)\\w+` ?)*)\\|$").FindAllStringSubmatch(string(page), -1) {
		name := m[2]
		if _, twice := rows[name]; twice {
			t.Errorf("case %s has two rows", name)
		}
		rows[name] = caseRow{text: m[0], head: m[1], words: m[3], tests: strings.Fields(strings.ReplaceAll(m[4], "`", ""))}
	}
	return rows
}

// The table of docs/reliability.md and the marks "CASES A24, E3" in the comments of tests say the same. After a mark was added:
// go test ./core -run Case -update.
func TestTheTableOfReliabilityNamesExactlyTheTestsThatAreMarked(t *testing.T) {
	marked := markedTests(t)
	if *update {
		writeRows(t, caseRows(t), marked)
	}
	rows := caseRows(t)
	for _, name := range caseNames() {
		row, ok := rows[name]
		switch want := slices.Sorted(maps.Keys(marked[name])); {
		case !ok:
			t.Errorf("case %s has no row", name)
		case !slices.Equal(row.tests, want):
			t.Errorf("case %s names %q, marked are %q: go test ./core -run Reliability -update", name, row.tests, want)
		case len(want) == 0 && len(row.words) < 20:
			t.Errorf("case %s has neither a test nor a reason", name)
		}
		delete(marked, name)
	}
	for name, tests := range marked {
		t.Errorf("%v are marked with case %s, which there is not", slices.Sorted(maps.Keys(tests)), name)
	}
}

func writeRows(t *testing.T, rows map[string]caseRow, marked map[string]map[string]bool) {
	t.Helper()
	page, err := os.ReadFile(reliabilityPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for name, row := range rows {
		line := row.head + row.words
		for _, test := range slices.Sorted(maps.Keys(marked[name])) {
			line += "`" + test + "` "
		}
		text = strings.Replace(text, row.text+"\n", line+"|\n", 1)
	}
	if err := os.WriteFile(reliabilityPage, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// markedTests are the tests of each case that a comment names: the comment of the test, or one within it.
func markedTests(t *testing.T) map[string]map[string]bool {
	t.Helper()
	mark := regexp.MustCompile(`\bCASES ([A-Z]\d+(?:, [A-Z]\d+)*)`)
	marked := map[string]map[string]bool{}
	eachTestFile(t, func(file string) error {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, group := range parsed.Comments {
			for _, found := range mark.FindAllStringSubmatch(group.Text(), -1) {
				test := testAt(parsed, group)
				if test == "" {
					t.Errorf("%s: %q belongs to no test", set.Position(group.Pos()), found[0])
					continue
				}
				for name := range strings.SplitSeq(found[1], ", ") {
					if marked[name] == nil {
						marked[name] = map[string]bool{}
					}
					marked[name][test] = true
				}
			}
		}
		return nil
	})
	return marked
}

// testAt is the test that a comment is of, or lies in.
func testAt(file *ast.File, comment *ast.CommentGroup) string {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
			continue
		}
		if f.Doc == comment || f.Pos() <= comment.Pos() && comment.End() <= f.End() {
			return f.Name.Name
		}
	}
	return ""
}

// eachTestFile visits the test files of the repository, whatever their build tags.
func eachTestFile(t *testing.T, visit func(file string) error) {
	t.Helper()
	files := 0
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && file != ".."):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		files++
		return visit(file)
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Fatalf("only %d files of tests", files)
	}
}
