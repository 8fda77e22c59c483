//go:build cloud

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestAPluginInAnotherLanguagePassesTheExam builds examples/plugin-node as its README says, npm packages from the registry that npm is
// configured for, and puts it through the exam as the host would run it: proof that docs/protocol.md is all that one needs.
func TestAPluginInAnotherLanguagePassesTheExam(t *testing.T) {
	plugin := buildNodePlugin(t)
	cmd := exec.CommandContext(t.Context(), "cairn", "plugin", "check", plugin, "--set", "dir="+t.TempDir(), "--away", "dir="+filepath.Join(t.TempDir(), "unmounted", "objects"), "--keys", "1500", "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("plugin check: %v", err)
	}
	var report struct {
		Levels []string `json:"levels_passed"`
		Cases  []struct{ Name, Level, Outcome, Error, Skipped string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range report.Cases {
		if c.Outcome != "ok" {
			t.Errorf("%s [%s] %s: %s%s", c.Outcome, c.Level, c.Name, c.Error, c.Skipped)
		}
	}
	for _, level := range []string{"core", "conditional", "bulk", "process"} {
		if !slices.Contains(report.Levels, level) {
			t.Errorf("level %s is not passed", level)
		}
	}
}

// buildNodePlugin bundles the plugin from a copy of its sources: a test leaves nothing in the tree.
func buildNodePlugin(t *testing.T) string {
	t.Helper()
	const example = "../../examples/plugin-node"
	dir := t.TempDir()
	copyFiles(t, example, dir, "package.json", "package-lock.json", "build.js", "target.proto")
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(example, "src"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(nodeModules(t, dir), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	npm(t, dir, "run", "build")
	return filepath.Join(dir, "bin", "cairn-plugin-node")
}

// nodeModules are the packages of the lock file in dir, installed once into the cache folder that the stores for tests use too. None of their
// install scripts run.
func nodeModules(t *testing.T, dir string) string {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv("CAIRN_TEST_STORES")
	if cache == "" {
		if cache, err = os.UserCacheDir(); err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(cache, "cairn-test-stores")
	}
	sum := sha256.Sum256(lock)
	installed := filepath.Join(cache, "plugin-node-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(installed); err == nil {
		return filepath.Join(installed, "node_modules")
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	temp, err := os.MkdirTemp(cache, ".tmp-plugin-node-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp) // after the rename there is nothing of that name
	copyFiles(t, dir, temp, "package.json", "package-lock.json")
	npm(t, temp, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if err := os.Rename(temp, installed); err != nil && !os.IsExist(err) { // another test process may have been quicker
		t.Fatal(err)
	}
	return filepath.Join(installed, "node_modules")
}

func npm(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "npm", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm %v: %v\n%s", args, err, out)
	}
}

func copyFiles(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
