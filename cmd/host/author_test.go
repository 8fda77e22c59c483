package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cairnsync/cairn/internal/testaddr"
)

// TestAuthorScripts runs testdata/author: what a plugin author meets beside the road of docs/plugin-author.md.
func TestAuthorScripts(t *testing.T) {
	plugins := buildPlugins(t)
	buildSQLite(t, filepath.Join(plugins, "cairn-plugin-sqlite"))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/author",
		Setup: func(env *testscript.Env) error {
			address, err := testaddr.Reserve(env.Defer)
			if err != nil {
				return err
			}
			for _, setting := range append(goEnv(t), "PLUGINS="+plugins, "CAIRN_ADDRESS="+address, "CAIRN="+sourceTree(t)) {
				name, value, _ := strings.Cut(setting, "=")
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": until},
	})
}

// buildSQLite builds the third party's plugin in its own module.
func buildSQLite(t *testing.T, file string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", file, ".")
	build.Dir = filepath.Join(sourceTree(t), "examples/plugin-sqlite")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build examples/plugin-sqlite: %v\n%s", err, out)
	}
}
