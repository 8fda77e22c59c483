//go:build torture

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

// clockTick is the unit of CPU times in /proc: 10 ms on every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// TestTortureIdleCostsNothing lets a pipeline with checkpoints and pushes every second stand still for a minute.
// CASES A69
func TestTortureIdleCostsNothing(t *testing.T) {
	const still = time.Minute
	plugins := buildPlugins(t)
	calls := filepath.Join(t.TempDir(), "calls")
	w := newWorld(t, plugins, settings{
		plugin: "faulty", config: "calls = " + strconv.Quote(calls), checkpoint: "1s", push: "1s", file: 5000, http: 5000,
	})
	end := w.send()
	w.start("")
	w.complete()
	end()
	w.eventually("the last step is committed", func() bool {
		view := w.view()
		return len(view.Targets) == 1 && view.Targets[0].Behind != nil && *view.Targets[0].Behind == 0 && view.Targets[0].Running == nil
	})

	plugin := pluginPID(w.host.pid())
	callsBefore, checkpointsBefore := lines(t, calls, "call:"), w.checkpointFolders()
	hostBefore, pluginBefore := cpu(t, w.host.pid()), cpu(t, plugin)
	if w.ended(still) {
		t.Fatalf("the host ended: %v", w.host.err)
	}
	hostUsed, pluginUsed := cpu(t, w.host.pid())-hostBefore, cpu(t, plugin)-pluginBefore

	t.Logf("in %v: %d calls to the plugin (%d before), CPU of the host %v (%.2f%% of a core), of the plugin %v (%.2f%%)",
		still, lines(t, calls, "call:")-callsBefore, callsBefore, hostUsed, percent(hostUsed, still), pluginUsed, percent(pluginUsed, still))
	if now := lines(t, calls, "call:"); now != callsBefore || callsBefore == 0 {
		t.Errorf("the plugin was called %d times before the minute and %d times after it", callsBefore, now)
	}
	if now := w.checkpointFolders(); !slices.Equal(now, checkpointsBefore) {
		t.Errorf("checkpoints were %v and are %v", checkpointsBefore, now)
	}
	if host, plugin := percent(hostUsed, still), percent(pluginUsed, still); host >= 1 || plugin >= 1 {
		t.Errorf("standing still costs the host %.2f%% of a core and the plugin %.2f%%, want less than 1%% each", host, plugin)
	}
	w.stop()
}

// lines counts those in the plugin's record that begin so.
func lines(t *testing.T, path, begin string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, begin) {
			n++
		}
	}
	return n
}

// checkpointFolders are the names in the folder of local checkpoints, those of unfinished ones included.
func (w *world) checkpointFolders() (names []string) {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.data, pipe, "checkpoints"))
	check(w.t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// cpu is the time that a process has used, in user and kernel mode.
func cpu(t *testing.T, pid int) (used time.Duration) {
	t.Helper()
	fields := processStat(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if len(fields) < 13 {
		t.Fatalf("process %d is gone", pid)
	}
	for _, text := range fields[11:13] { // utime and stime
		ticks, err := strconv.Atoi(text)
		check(t, err)
		used += time.Duration(ticks) * clockTick
	}
	return used
}

func percent(used, of time.Duration) float64 { return 100 * float64(used) / float64(of) }

// TestTortureADuePushOfAnIdlePipelineStartsAtOnce reads from the job records by how much each periodic push came late: a new checkpoint lies
// ready well before it falls due, and nothing else happens.
func TestTortureADuePushOfAnIdlePipelineStartsAtOnce(t *testing.T) {
	const pushes, interval, bound = 20, time.Second, 5 * time.Second
	w := newWorld(t, buildPlugins(t), settings{push: interval.String(), http: pushes * perBatch})
	end := w.send()
	w.start("")
	for n := 1; n <= pushes; n++ {
		w.sender.upTo(float64(n) / pushes)
		w.eventually("a push of the newest batch", func() bool { return succeeded(w) >= n })
	}
	end()
	late := lateness(w.offsite().Jobs, interval)
	w.stop()
	if len(late) < pushes/2 {
		t.Fatalf("only %d of %d pushes fell due with a checkpoint ready", len(late), pushes)
	}
	slices.Sort(late)
	t.Logf("%d due pushes started late by: median %v, 90%% %v, max %v", len(late), late[len(late)/2], late[len(late)*9/10], late[len(late)-1])
	if late[0] < 0 || late[len(late)/2] > bound {
		t.Errorf("pushes started late by %v", late)
	}
}

// succeeded are the pushes that the present data folder remembers as good.
func succeeded(w *world) (n int) {
	for _, job := range w.offsite().Jobs {
		if job.State == "succeeded" {
			n++
		}
	}
	return n
}

// lateness is how long after the interval since the end of the job before it each job started.
func lateness(jobs []client.JobView, interval time.Duration) (late []time.Duration) {
	for i := 1; i < len(jobs); i++ {
		if before := jobs[i-1].Finished; before != nil && jobs[i].Trigger == "periodic" {
			late = append(late, jobs[i].Started.Sub(before.Add(interval)))
		}
	}
	return late
}
