package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// CI found it: a plugin whose last words were still in the pipe when its end was seen passed for one that had said nothing.
func TestTheLastWordsOfAProcessAreHeardAfterItsEnd(t *testing.T) {
	script := filepath.Join(t.TempDir(), "greeter")
	text := fmt.Sprintf("#!/bin/sh\ntrap '' TERM\n%s\n%s", filepath.Join(plugins.dir, "cairn-plugin-file"), strings.Repeat("echo goodbye\n", 100))
	must(t, os.WriteFile(script, []byte(text), 0o755))
	candidate := Candidate{File: script, Settings: []string{"path=" + t.TempDir()}}
	exam, err := OpenExam(t.Context(), candidate, LoadOptions{Getenv: os.LookupEnv, Now: time.Now})
	must(t, err)
	defer exam.Close(t.Context())
	p, err := exam.Start(t.Context(), 0)
	must(t, err)
	defer p.Close(t.Context())
	must(t, p.Signal(syscall.SIGTERM))
	<-p.Exited()
	equal(t, "lines on standard output", len(p.Stdout()), 100)
}
