package pluginhost

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/plugin-host.md names the proof of each case. A test that is renamed or removed takes its name from there.
func TestEveryProofInTheDocumentExists(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "plugin-host.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsBelow(t, root)
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllStringSubmatch(string(text), -1) {
		if !tests[name[1]] {
			t.Errorf("there is no test %s", name[1])
		}
	}
	rows := regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \| [^|]+ \| ([^|]+) \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) < 80 {
		t.Errorf("only %d cases have a row", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(row[2], "`Test") && !strings.Contains(row[2], "`Fuzz") && len(row[2]) < 20 {
			t.Errorf("case %s has neither a test nor a reason", row[1])
		}
	}
}

// testsBelow are the names of all tests of the repository, whatever their build tags.
func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range declared.FindAllSubmatch(text, -1) {
			names[string(name[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
