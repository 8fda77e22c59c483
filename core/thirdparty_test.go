package core_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forAuthors are the packages of ours that a plugin of somebody else is built on.
func forAuthors() []string { return []string{"sdk", "sdk/rpc", "sdk/blobtarget", "sdk/sdktest"} }

// TestThirdPartiesBuildOnTheSDKAlone holds the modules below examples, tests and all, to what a third party could import.
func TestThirdPartiesBuildOnTheSDKAlone(t *testing.T) {
	modules, err := filepath.Glob("../examples/*/go.mod")
	if err != nil || len(modules) == 0 {
		t.Fatalf("no module below examples: %v", err)
	}
	for _, mod := range modules {
		onSDK := false
		for file, imports := range importsBelow(t, filepath.Dir(mod)) {
			for _, imp := range imports {
				of, ours := strings.CutPrefix(imp, module)
				if ours && !strings.HasPrefix(of, "examples/") && !slices.Contains(forAuthors(), of) {
					t.Errorf("%s imports %s, which is not for third parties", file, of)
				}
				onSDK = onSDK || of == "sdk"
			}
		}
		if !onSDK {
			t.Errorf("%s is a module that does not use the sdk", mod)
		}
	}
}

// importsBelow parses every Go file below dir.
func importsBelow(t *testing.T, dir string) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[file] = append(imports[file], imp)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}
