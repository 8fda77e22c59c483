//go:build cloud

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cairnsync/cairn/internal/teststore"
)

// examined runs `cairn plugin check` on a plugin, and answers its report and its exit code.
func examined(t *testing.T, plugins, plugin, config string, flags ...string) (r report, exit int) {
	t.Helper()
	file := newWorld(t, plugins, settings{plugin: plugin, config: config, cloud: true}).configFile()
	args := append([]string{"plugin", "check", filepath.Join(plugins, "cairn-plugin-"+plugin), "--config", file, "--json"}, flags...)
	cmd := exec.CommandContext(t.Context(), "cairn", args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("read the report: %v\n%s%s", err, &out, &said)
	}
	return r, cmd.ProcessState.ExitCode()
}

// passesTheExam runs every level, without a skip.
func passesTheExam(t *testing.T, c cloud, plugins string) {
	r, exit := examined(t, plugins, c.plugin, c.config(c.start(t)))
	for _, one := range r.Cases {
		if one.Outcome != "ok" {
			t.Errorf("[%s] %s: %s %s%s", one.Level, one.Name, one.Outcome, one.Error, one.Skipped)
		}
	}
	if exit != exitDone || !slices.Equal(r.LevelsPassed, []string{"core", "conditional", "bulk", "process"}) {
		t.Errorf("exit code %d, levels passed: %v", exit, r.LevelsPassed)
	}
	t.Logf("%s %s passed %d cases of levels %v in %v", r.Plugin, r.Version, len(r.Cases), r.LevelsPassed, r.Ended.Sub(r.Started))
}

// theLiarIsFound gives the s3 plugin a store that ignores If-None-Match: nothing of the plugin's is wrong, and the level conditional is not
// passed.
func theLiarIsFound(t *testing.T, plugins string) {
	r, exit := examined(t, plugins, "s3", s3Config(teststore.Liar(t)), "--level", "conditional")
	if exit != exitExam || r.Passed || len(r.LevelsPassed) > 0 {
		t.Errorf("exit code %d, passed: %v, levels: %v", exit, r.Passed, r.LevelsPassed)
	}
	failed := 0
	for _, one := range r.Cases {
		if one.Outcome == "failed" {
			failed++
			t.Logf("found: %s: %s", one.Name, one.Error)
		}
	}
	if failed == 0 {
		t.Error("no case of the level conditional has failed")
	}
}
