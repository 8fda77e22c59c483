//go:build torture || cloud

package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// draw is the test's source of chance: $CAIRN_TORTURE_SEED, or a seed of its own, which it prints.
func draw(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if text := os.Getenv("CAIRN_TORTURE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	t.Logf("CAIRN_TORTURE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func ready(w *world) bool {
	plugin := w.offsite().Plugin
	return plugin != nil && plugin.State == "ready"
}

// pluginPID is the child of a host that this test started, 0 while it has none.
func pluginPID(host int) int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, name := range stats {
		fields := processStat(name)
		if len(fields) > 1 && fields[1] == strconv.Itoa(host) && fields[0] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))) // the pattern says it is a number
			return pid
		}
	}
	return 0
}

// processStat are the fields of /proc/PID/stat from the third on: state, ppid, and so on. Nil when the process is gone.
func processStat(name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
	return strings.Fields(rest)
}
