package core_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/cairnsync/cairn/"

// floorplan is the import table: for each package of ours, the packages of ours that its shipped code may import. A package that is not
// in the table is not on the plan; an import that is not in its row is forbidden.
func floorplan() map[string][]string {
	return map[string][]string{
		"core":            {},
		"core/trigger":    {},
		"core/checkpoint": {},
		"core/repository": {},
		"core/circuit":    {"core/trigger"},
		"core/sqlcircuit": {"core/circuit"},
		"core/pluginhost": {"sdk", "sdk/rpc", "internal/wipe"},
		"core/syncer":     {"sdk", "core/checkpoint", "core/repository", "internal/wipe"},
		"core/config":     {"sdk", "core/trigger"},
		"core/api":        {"core/circuit", "sdk/client"},
		"core/host": {
			"core/trigger", "core/checkpoint", "core/repository", "core/circuit", "core/sqlcircuit", "core/pluginhost",
			"core/syncer", "core/config", "core/api", "sdk", "sdk/client", "internal/wipe",
		},
		"internal/rudestore":       {"sdk", "sdk/sdktest"},
		"internal/testaddr":        {},
		"internal/teststore":       {"internal/testaddr"},
		"internal/wipe":            {},
		"sdk":                      {},
		"sdk/client":               {},
		"sdk/internal/pb":          {},
		"sdk/internal/pb/generate": {},
		"sdk/rpc":                  {"sdk", "sdk/internal/pb"},
		"sdk/blobtarget":           {"sdk"},
		"sdk/sdktest":              {"sdk", "sdk/rpc"},
		"cmd/host":                 {"core/host", "core/config", "sdk/client", "sdk/sdktest"},
		"plugins/file":             {"sdk", "sdk/rpc"},
		"plugins/s3":               {"sdk", "sdk/rpc", "sdk/blobtarget"},
		"plugins/gcs":              {"sdk", "sdk/rpc", "sdk/blobtarget"},
		"plugins/azure":            {"sdk", "sdk/rpc", "sdk/blobtarget"},
	}
}

// soleUsers lists libraries that live in one room (or a few): one library, one room.
func soleUsers() map[string][]string {
	return map[string][]string{
		"github.com/hashicorp/hcl/v2":    {"core/config"},
		"github.com/hashicorp/go-plugin": {"core/pluginhost", "sdk/rpc"},
		"google.golang.org/grpc":         {"sdk/rpc", "sdk/internal/pb", "core/pluginhost"},
		"google.golang.org/protobuf":     {"sdk/rpc", "sdk/internal/pb", "sdk/internal/pb/generate"},
		"modernc.org/sqlite":             {"core/sqlcircuit"},
		"github.com/danielgtaylor/huma":  {"core/api"},
		"github.com/spf13/cobra":         {"cmd/host"},
		"github.com/vbauerster/mpb":      {"cmd/host"},
		"gocloud.dev":                    {"sdk/blobtarget", "plugins/s3", "plugins/gcs", "plugins/azure"},
		"github.com/aws":                 {"plugins/s3", "internal/teststore"},
		"cloud.google.com/go":            {"plugins/gcs"},
		"google.golang.org/api":          {"plugins/gcs"},
		"github.com/Azure":               {"plugins/azure", "internal/teststore"},
		"github.com/klauspost/compress":  {"core/repository", "core/syncer"},
	}
}

func TestEveryImportOfOursIsOnTheFloorPlan(t *testing.T) {
	plan := floorplan()
	for pkg, imports := range shippedImports(t) {
		allowed, ok := plan[pkg]
		if !ok {
			t.Errorf("package %s is not on the floor plan", pkg)
			continue
		}
		for _, imp := range imports {
			if of, ours := strings.CutPrefix(imp, module); ours && !slices.Contains(allowed, of) {
				t.Errorf("%s imports %s, which the floor plan forbids", pkg, of)
			}
		}
	}
}

func TestEachLibraryStaysInItsRoom(t *testing.T) {
	for pkg, imports := range shippedImports(t) {
		for _, imp := range imports {
			for library, rooms := range soleUsers() {
				if (imp == library || strings.HasPrefix(imp, library+"/")) && !slices.Contains(rooms, pkg) {
					t.Errorf("%s imports %s; only %v may", pkg, imp, rooms)
				}
			}
		}
	}
}

func TestTheMapNamesEveryRoom(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range shippedImports(t) {
		if pkg == "core" || pkg == "sdk/internal/pb/generate" {
			continue
		}
		if !strings.Contains(string(text), path.Base(pkg)+"/") {
			t.Errorf("core/doc.go does not name %s", pkg)
		}
	}
}

// shippedImports parses every non-test file of the module in process: an answer from a `go list` subprocess would be served from the
// test cache after the imports have changed.
func shippedImports(t *testing.T) map[string][]string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skippedDir(root, file, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		imports[pkg] = append(imports[pkg], []string{}...)
		for _, spec := range parsed.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[pkg] = append(imports[pkg], imp)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(imports) < 5 {
		t.Fatalf("only %d packages found below %s", len(imports), root)
	}
	return imports
}

// skippedDir holds no package of this module. A folder with a go.mod is a module of its own; see thirdparty_test.go for those.
func skippedDir(root, dir, name string) bool {
	if dir == root {
		return false
	}
	_, noModule := os.Stat(filepath.Join(dir, "go.mod"))
	return strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "node_modules" || noModule == nil
}
