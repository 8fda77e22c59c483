package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// plant makes a temporary file of that age.
func plant(t *testing.T, dir, name string, age time.Duration) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

func TestLeftoversInFoldersThatNobodyListsAreSweptOnceAProcess(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "p/pack/1/2/"+tempPrefix+"OLD", tempMaxAge+time.Hour)
	plant(t, dir, "p/pack/1/3/"+tempPrefix+"OLD", tempMaxAge+time.Hour)
	plant(t, dir, "p/pack/1/3/"+tempPrefix+"YOUNG", tempMaxAge-time.Hour)
	plant(t, dir, "p/pack/1/3/object", tempMaxAge+time.Hour)
	plant(t, dir, "not ours/"+tempPrefix+"OLD", tempMaxAge+time.Hour)
	target := openTarget(t, dir)
	put(t, target, "p/commit/1")
	target.sweeper.work.Wait()
	wantFiles(t, dir, "not ours/"+tempPrefix+"OLD", "p/commit/1", "p/pack/1/3/"+tempPrefix+"YOUNG", "p/pack/1/3/object")
	if _, err := os.Stat(filepath.Join(dir, "p/pack/1/2")); !os.IsNotExist(err) {
		t.Errorf("the directory that the sweep emptied: %v", err)
	}
	plant(t, dir, "p/pack/1/3/"+tempPrefix+"LATER", tempMaxAge+time.Hour)
	put(t, target, "p/commit/1")
	target.sweeper.work.Wait()
	if got := files(t, dir); !slices.Contains(got, "p/pack/1/3/"+tempPrefix+"LATER") {
		t.Error("it swept twice")
	}
}

func TestTheSweepWaitsForADiskThatIsAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	target := openTarget(t, dir)
	_, err := target.Put(t.Context(), request("k", "x"))
	wantCode(t, err, sdk.Unavailable)
	plant(t, dir, "pack/"+tempPrefix+"OLD", tempMaxAge+time.Hour)
	put(t, target, "k")
	target.sweeper.work.Wait()
	wantFiles(t, dir, "k")
}

func TestAClosedTargetDoesNotSweep(t *testing.T) {
	for name, end := range map[string]func(*target, context.CancelFunc){
		"closed":              func(target *target, _ context.CancelFunc) { _ = target.Close() },
		"its context is over": func(_ *target, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plant(t, dir, "pack/"+tempPrefix+"OLD", tempMaxAge+time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			target := newTarget(ctx, dir, time.Now)
			end(target, cancel)
			put(t, target, "k")
			if err := target.Close(); err != nil {
				t.Error(err)
			}
			wantFiles(t, dir, "k", "pack/"+tempPrefix+"OLD")
		})
	}
}

// The sweep holds still in the sync that follows its removals, and Close comes meanwhile.
func TestClosingWaitsForTheSweep(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "pack/1/"+tempPrefix+"OLD", tempMaxAge+time.Hour)
	plant(t, dir, "pack/object", 0)
	target := newTarget(t.Context(), dir, time.Now)
	sweeping, goOn := make(chan struct{}), make(chan struct{})
	target.sync = func(*os.File) error {
		close(sweeping)
		<-goOn
		return nil
	}
	keysOf(t, target, sdk.ListRequest{Prefix: "none/"})
	<-sweeping
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = target.Close()
	}()
	select {
	case <-closed:
		t.Error("closed while it sweeps")
	default:
	}
	close(goOn)
	<-closed
	wantFiles(t, dir, "pack/object")
}
