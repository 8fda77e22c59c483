//go:build torture

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTortureKillThePlugin kills the plugin's process again and again, also while it starts. The host starts it anew, each time after a
// longer pause, so the host is replaced after every third kill: by a stop in order, by kill -9, or on an empty data folder.
// CASES A8
func TestTortureKillThePlugin(t *testing.T) {
	t.Parallel()
	const rounds, killsPerHost = 51, 3
	plugins := buildPlugins(t)
	chance := draw(t)
	s := settings{file: 20_000, http: 20_000}
	want := undisturbed(t, plugins, s)

	w := newWorld(t, plugins, s)
	observer, seen := observe(t, w.url, w.target)
	end := w.send()
	starting, pushing := 0, 0
	for round := range rounds {
		w.upTo(float64(round+1) / rounds)
		if round%killsPerHost == 0 {
			w.replaceHost(round / killsPerHost)
		}
		pid, during := w.killThePlugin(chance)
		if during == "starting" {
			starting++
		} else {
			pushing++
		}
		w.untilReplaced(pid)
	}
	t.Logf("the plugin was killed %d times in calls or between them, %d times before it was ready", pushing, starting)
	end()
	w.finish(want)
	seen()
	t.Logf("failures that status told of: %d", len(observer.failures))
}

// replaceHost ends the present host in one of three ways and starts the next.
func (w *world) replaceHost(n int) {
	w.t.Helper()
	switch {
	case w.host == nil:
	case n%3 == 0:
		w.stop()
	case n%3 == 1:
		w.kill()
	default:
		w.kill()
		w.freshData()
	}
	w.start("")
	w.eventually("the pipeline runs", w.running)
}

// killThePlugin waits for the plugin's process, and up to 300 ms more, and kills it. It says what the plugin was doing.
func (w *world) killThePlugin(chance *rand.Rand) (pid int, during string) {
	w.t.Helper()
	w.eventually("a plugin process", func() bool {
		pid = pluginPID(w.host.pid())
		return pid != 0
	})
	pause := time.NewTimer(time.Duration(chance.Int64N(int64(300 * time.Millisecond))))
	<-pause.C
	if !ready(w) {
		during = "starting"
	}
	check(w.t, syscall.Kill(pid, syscall.SIGKILL)) // it is the host's child, a zombie at worst
	return pid, during
}

// untilReplaced waits until another process than that serves.
func (w *world) untilReplaced(pid int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("plugin process %d is replaced", pid), func() bool {
		now := pluginPID(w.host.pid()) // 0 while status has not noticed the end of the old one
		return now != 0 && now != pid && ready(w)
	})
}

func TestTortureABrokenPluginIsLeftAloneUntilTheOperatorActs(t *testing.T) {
	t.Parallel()
	const crashes = 5 // within ten minutes
	plugins := buildPlugins(t)
	s := settings{file: 2000, http: 2000}
	want := undisturbed(t, plugins, s)
	w := newWorld(t, plugins, s)
	_, seen := observe(t, w.url, w.target)
	end := w.send()
	chance := draw(t)
	w.upTo(0.1)
	w.start("")
	w.eventually("a first commit", func() bool { return w.offsite().Committed != nil })
	for i := range crashes {
		w.upTo(float64(i+1) / crashes)
		w.eventually("the plugin serves, so that its end is a crash", func() bool { return ready(w) })
		pid, _ := w.killThePlugin(chance)
		if i < crashes-1 {
			w.untilReplaced(pid)
		}
	}
	w.eventually("the plugin is broken", func() bool {
		plugin := w.offsite().Plugin
		return plugin != nil && plugin.State == "broken" && strings.Contains(plugin.LastExit, "signal 9")
	})
	w.eventually("the pipeline runs on without its target", func() bool {
		return strings.TrimSpace(w.query("SELECT count(*) AS n FROM seen WHERE input = 'calls'")) == fmt.Sprintf(`{"n":%d}`, s.http)
	})
	w.eventually("a push ends at once, and says why", func() bool {
		jobs := w.offsite().Jobs
		return len(jobs) > 0 && jobs[len(jobs)-1].State == "failed" && strings.Contains(jobs[len(jobs)-1].Error, "broken")
	})
	end()
	w.cairn("pipeline", "stop", pipe)
	w.eventually("the pipeline is stopped", func() bool { return w.view().State == "stopped" })
	w.cairn("pipeline", "start", pipe)
	w.eventually("the plugin is tried again", func() bool { return ready(w) })
	w.eventually("the pipeline runs", w.running)
	w.finish(want)
	seen()
}
