package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// CASES A34, A44, A51, A52, A73, A74
func TestTheFileTargetPassesTheExam(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		dir := t.TempDir()
		return &sdktest.Env{
			Target: openTarget(t, dir),
			Reopen: func(context.Context) (sdk.Target, error) { return openTarget(t, dir), nil },
		}
	})
}

func TestTheFileTargetPassesTheExamOverTheWire(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		dir := t.TempDir()
		target := openTarget(t, dir)
		target.sync = func(*os.File) error { return nil } // the exam above waits for the disk; this one is about the wire
		client, spool := sdktest.OverRPC(t, target)
		return &sdktest.Env{
			Target: client, Spool: spool,
			Reopen: func(context.Context) (sdk.Target, error) { return openTarget(t, dir), nil },
		}
	})
}

// Its directory is made by whichever Put of the exam is the first, and is not there before.
func TestATargetWhoseDirectoryIsNotMadeYetPassesTheExam(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		cfg := Config{Path: filepath.Join(t.TempDir(), "new"), Create: true}
		return &sdktest.Env{
			Target: openConfig(t, cfg),
			Reopen: func(context.Context) (sdk.Target, error) { return openConfig(t, cfg), nil },
		}
	})
}
