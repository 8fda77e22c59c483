//go:build cloud

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk"
)

// staysSmall puts 64 objects of 16 MiB at the same time through the plugin's process. The most memory that it ever had resident stays under
// 64 MiB: nothing of a body is kept.
func staysSmall(t *testing.T, c cloud, plugins string) {
	const puts, size, most = 64, 16 << 20, 64 << 10 // KiB
	file := newWorld(t, plugins, settings{plugin: c.plugin, config: c.config(c.start(t)), cloud: true}).configFile()
	candidate := host.Candidate{File: filepath.Join(plugins, "cairn-plugin-"+c.plugin), Config: file}
	exam, err := host.OpenExam(t.Context(), candidate, host.LoadOptions{Getenv: os.LookupEnv, Now: time.Now})
	check(t, err)
	defer exam.Close(t.Context())
	object, sums := spooled(t, exam.Spool, size)
	var all sync.WaitGroup
	for i := range puts {
		all.Go(func() {
			req := sdk.PutRequest{Key: fmt.Sprintf("memory/%02d", i), Body: sdk.FileBody(object, 0, size, sums), IfAbsent: true, Class: sdk.ClassBulk}
			if err := untilStored(t, exam.Target, req); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	peak := peakMemory(t, child(t, "cairn-plugin-"+c.plugin))
	t.Logf("%s: VmHWM %.1f MiB after %d Puts of %d MiB at the same time", c.plugin, float64(peak)/1024, puts, size>>20)
	if peak >= most {
		t.Errorf("the plugin had %d KiB resident; want less than %d", peak, most)
	}
}

// untilStored puts as the host does: a store that digests a gibibyte on a busy machine may keep a Put waiting for longer than the host's
// watchdog bears, and an object that is there after such a Put is its own.
func untilStored(t *testing.T, target sdk.Target, req sdk.PutRequest) (err error) {
	const attempts = 5
	for range attempts {
		_, err = target.Put(t.Context(), req)
		if err == nil || sdk.CodeOf(err) == sdk.Exists {
			return nil
		}
		if sdk.CodeOf(err) != sdk.Unavailable {
			return err
		}
		t.Logf("again: %v", err)
	}
	return err
}

// spooled is a file of random bytes in a spool.
func spooled(t *testing.T, spool string, size int) (*os.File, sdk.Sums) {
	t.Helper()
	content := make([]byte, size)
	chance := rand.NewChaCha8([32]byte{1})
	_, err := chance.Read(content)
	check(t, err)
	file, err := os.Create(filepath.Join(spool, "object"))
	check(t, err)
	t.Cleanup(func() { file.Close() })
	_, err = file.Write(content)
	check(t, err)
	return file, sdk.SumsOf(content)
}

// child is the process that this one has started from an executable of that name.
func child(t *testing.T, name string) (pid string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	check(t, err)
	for _, stat := range stats {
		dir := filepath.Dir(stat)
		exe, _ := os.Readlink(filepath.Join(dir, "exe")) // "" of a process that is gone
		text, _ := os.ReadFile(stat)
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == fmt.Sprint(os.Getpid()) && strings.Contains(exe, name) {
			return filepath.Base(dir)
		}
	}
	t.Fatalf("no child runs %s", name)
	return ""
}

// peakMemory is the most that a process has had resident, in KiB.
func peakMemory(t *testing.T, pid string) (kib int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	check(t, err)
	_, rest, found := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil || !found {
		t.Fatalf("no VmHWM in the status of process %s: %v", pid, err)
	}
	return kib
}
