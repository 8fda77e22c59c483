//go:build torture || cloud

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// send runs the sender until the returned function is called.
func (w *world) send() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.sender.run(ctx)
	}()
	end = func() {
		cancel()
		<-done
	}
	w.t.Cleanup(end)
	return end
}

// upTo gives both sources that part of their records.
func (w *world) upTo(part float64) {
	w.t.Helper()
	w.feed.upTo(part)
	w.sender.upTo(part)
}

// complete gives the sources the rest and waits until the present host has applied everything.
func (w *world) complete() {
	w.t.Helper()
	w.feed.upTo(1)
	w.sender.hurry()
	want := fmt.Sprintf(`{"records":%d}`, w.cfg.file+w.cfg.http)
	w.eventually("all records are applied", func() bool {
		return strings.TrimSpace(w.query("SELECT count(*) AS records FROM seen")) == want
	})
}

// tables is a dump of everything that the records made.
func (w *world) tables() string {
	w.t.Helper()
	var dump strings.Builder
	for _, sql := range []string{
		"SELECT input, id, n, text FROM seen ORDER BY input, id",
		"SELECT input, bucket, n, amount FROM totals ORDER BY input, bucket",
		"SELECT * FROM cairn_errors",
	} {
		check(w.t, w.api.Query(w.t.Context(), pipe, sql, &dump))
	}
	return dump.String()
}

// undisturbed are the tables that the same records make when nothing goes wrong.
func undisturbed(t *testing.T, plugins string, s settings) string {
	t.Helper()
	w := newWorld(t, plugins, settings{file: s.file, http: s.http, payload: s.payload})
	end := w.send()
	w.feed.upTo(1)
	w.start("")
	w.complete()
	end()
	dump := w.tables()
	w.stop()
	return dump
}

// same compares two dumps record for record.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	shown := 0
	for i := range max(len(g), len(w)) {
		if a, b := line(g, i), line(w, i); a != b && shown < 10 {
			shown++
			t.Errorf("%s, row %d:\n  got  %s\n  want %s", what, i, a, b)
		}
	}
	t.Errorf("%s: %d rows, want %d", what, len(g), len(w))
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// finish proves that nothing was lost and that everything still works: the present host applies what is left, its tables are the wanted ones,
// it can be asked for a checkpoint and a push, the target can be listed and read with and without a host, and a host on an empty data
// folder has the same tables at once.
func (w *world) finish(want string) {
	w.t.Helper()
	end := w.send()
	w.complete()
	end()
	for _, fault := range w.sender.faults() {
		w.t.Error(fault)
	}
	same(w.t, "tables at the end", w.tables(), want)
	w.cairn("checkpoint", "create", pipe)
	w.cairn("checkpoint", "push", pipe)
	id := w.newestRemote()
	if committed := w.offsite().Committed; committed == nil || committed.UUID.String() != id {
		w.t.Errorf("status says that %v is committed, the target's newest is %s", committed, id)
	}
	w.stop()
	if offline := w.newestRemote("--config", w.configFile()); offline != id {
		w.t.Errorf("without a host the newest on the target is %s, with one %s", offline, id)
	}
	w.restoredFiles(id)
	w.freshData()
	w.start("")
	w.eventually("a host on an empty data folder runs", w.running)
	if from := w.view().StartedFrom; !strings.Contains(from, id) {
		w.t.Errorf("it started from %q, want checkpoint %s", from, id)
	}
	same(w.t, "tables after the restore", w.tables(), want)
	w.stop()
}

// newestRemote is the id of the newest checkpoint that `cairn remote list` tells of.
func (w *world) newestRemote(flags ...string) string {
	w.t.Helper()
	var all []client.CheckpointView
	out := w.cairn(append([]string{"remote", "list", pipe, "--json"}, flags...)...)
	check(w.t, json.Unmarshal([]byte(out), &all))
	if len(all) == 0 {
		w.t.Fatal("no checkpoint on the target")
	}
	return all[len(all)-1].UUID.String()
}

// restoredFiles restores the newest checkpoint into a folder.
func (w *world) restoredFiles(id string) {
	w.t.Helper()
	to := filepath.Join(w.dir, "files")
	out := w.cairn("checkpoint", "restore", pipe, "--config", w.configFile(), "--to", to)
	if !strings.Contains(out, id) {
		w.t.Errorf("restore says %q, want checkpoint %s", out, id)
	}
	if _, err := os.Stat(filepath.Join(to, "state.db")); err != nil {
		w.t.Error(err)
	}
	check(w.t, os.RemoveAll(to))
}
