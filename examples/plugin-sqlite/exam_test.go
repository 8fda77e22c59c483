package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func TestTheTargetPassesTheExam(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		path := filepath.Join(t.TempDir(), "objects.db")
		return &sdktest.Env{Target: openTest(t, path), Reopen: reopen(t, path)}
	})
}

func TestTheTargetPassesTheExamOverTheWire(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		path := filepath.Join(t.TempDir(), "objects.db")
		client, spool := sdktest.OverRPC(t, openTest(t, path))
		return &sdktest.Env{Target: client, Spool: spool, Reopen: reopen(t, path)}
	})
}

// openTest opens a target that may make its file. Short-lived ones are closed with the test.
func openTest(t *testing.T, path string) *target {
	t.Helper()
	return openConfig(t, Config{Path: path, Create: true, BusyTimeout: 10 * time.Second})
}

func openConfig(t *testing.T, cfg Config) *target {
	t.Helper()
	opened, err := openTarget(cfg, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// reopen has a second pool of connections on the same file, as another process would.
func reopen(t *testing.T, path string) func(context.Context) (sdk.Target, error) {
	return func(context.Context) (sdk.Target, error) { return openTest(t, path), nil }
}
