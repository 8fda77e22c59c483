package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// unmadeTarget may make its directory, which is not there.
func unmadeTarget(t *testing.T) (target *target, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "new")
	return openConfig(t, Config{Path: dir, Create: true}), dir
}

// reads are a call of each kind that makes nothing.
func reads(ctx context.Context, target sdk.Target) map[string]error {
	_, got := target.Get(ctx, sdk.GetRequest{Key: "k", Length: -1})
	var listed error
	for obj, err := range target.List(ctx, sdk.ListRequest{}) {
		if listed = err; err == nil {
			listed = errors.New("listed: " + obj.Key)
		}
	}
	return map[string]error{"get": got, "list": listed, "delete": target.Delete(ctx, []string{"k"})}
}

func wantEmpty(t *testing.T, target sdk.Target) {
	t.Helper()
	for call, err := range reads(t.Context(), target) {
		if call == "get" {
			wantCode(t, err, sdk.NotFound, "k")
		} else if err != nil {
			t.Errorf("%s: %v; want an empty store", call, err)
		}
	}
}

func wantAway(t *testing.T, target sdk.Target) {
	t.Helper()
	for _, err := range reads(t.Context(), target) {
		wantCode(t, err, sdk.Unavailable, "missing", "mounted")
	}
	_, err := target.Put(t.Context(), request("k", "x"))
	wantCode(t, err, sdk.Unavailable, "missing", "mounted")
}

func wantMade(t *testing.T, dir string, want bool) {
	t.Helper()
	if _, err := os.Lstat(dir); want != (err == nil) {
		t.Errorf("stat of the directory: %v; made should be %t", err, want)
	}
}

func TestReadsFindAnEmptyStoreAndMakeNothingUntilTheFirstPut(t *testing.T) {
	target, dir := unmadeTarget(t)
	wantEmpty(t, target)
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := target.Put(dead, request("k", "x"))
	wantCode(t, err, sdk.Cancelled)
	wantMade(t, dir, false)
	put(t, target, "k")
	wantMade(t, dir, true)
	put(t, openConfig(t, Config{Path: dir + "/", Create: true}), "k2") // it was there
	if got := keysOf(t, target, sdk.ListRequest{}); !slices.Equal(got, []string{"k", "k2"}) {
		t.Errorf("listed %v", got)
	}
}

func TestADirectoryIsMadeAlsoWhereItsPathEndsWithASlash(t *testing.T) {
	_, dir := unmadeTarget(t)
	target := openConfig(t, Config{Path: dir + "/", Create: true})
	wantEmpty(t, target)
	put(t, target, "k")
	wantFiles(t, dir, "k")
}

// CASES A42
func TestADirectoryThatWasSeenIsUnavailableWhenItIsGoneAndIsNotMadeAgain(t *testing.T) {
	for name, see := range map[string]func(t *testing.T, target *target, dir string){
		"made by a put": func(t *testing.T, target *target, _ string) { put(t, target, "k") },
		"put to where it was there": func(t *testing.T, target *target, dir string) {
			put(t, openConfig(t, Config{Path: dir, Create: true}), "other")
			put(t, target, "k")
		},
		"only read": func(t *testing.T, target *target, dir string) {
			wantEmpty(t, target)
			put(t, openConfig(t, Config{Path: dir, Create: true}), "other")
			keysOf(t, target, sdk.ListRequest{})
		},
		"made, and then not synced": func(t *testing.T, target *target, _ string) {
			synced := target.sync
			target.sync = func(*os.File) error { return syscall.EIO }
			_, err := target.Put(t.Context(), request("k", "x"))
			wantCode(t, err, sdk.Unavailable, "cannot be made", "errno")
			target.sync = synced
		},
	} {
		t.Run(name, func(t *testing.T) {
			target, dir := unmadeTarget(t)
			see(t, target, dir)
			if err := os.Rename(dir, dir+" away"); err != nil {
				t.Fatal(err)
			}
			wantAway(t, target)
			wantMade(t, dir, false)
			if err := os.Rename(dir+" away", dir); err != nil {
				t.Fatal(err)
			}
			put(t, target, "k") // mounted again: the same target works
		})
	}
}

func TestCreateMakesTheLastElementOnly(t *testing.T) {
	_, dir := unmadeTarget(t)
	target := openConfig(t, Config{Path: filepath.Join(dir, "deep"), Create: true})
	wantAway(t, target)
	wantMade(t, dir, false)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, target) // the parent is there now
	put(t, target, "k")
}

// A link to a disk is there while the disk is not.
func TestALinkThatLeadsNowhereIsNotAnEmptyStore(t *testing.T) {
	target, dir := unmadeTarget(t)
	if err := os.Symlink(dir+" disk", dir); err != nil {
		t.Fatal(err)
	}
	wantAway(t, target)
	wantMade(t, dir+" disk", false)
	if err := os.Mkdir(dir+" disk", 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, target, "k")
}

// parentSyncs makes the target note when the directory above it is synced, and whether an object was visible then.
func parentSyncs(target *target, fault error) *[]string {
	events := &[]string{}
	target.sync = func(f *os.File) error {
		if filepath.Clean(f.Name()) != filepath.Dir(target.path) {
			return nil
		}
		what := "synced"
		if _, err := os.Stat(filepath.Join(target.path, "k")); err == nil {
			what += " (visible)"
		}
		*events = append(*events, what)
		return fault
	}
	return events
}

// CASES A4
func TestTheParentOfTheTargetDirectoryIsSyncedAlsoWhenItWasThere(t *testing.T) {
	_, dir := unmadeTarget(t)
	cfg := Config{Path: dir, Create: true}
	for _, round := range []struct {
		name string
		want []string
	}{{"made", []string{"synced"}}, {"it was there", []string{"synced (visible)"}}} {
		target := openConfig(t, cfg)
		events := parentSyncs(target, nil)
		put(t, target, "k", "k2")
		if !slices.Equal(*events, round.want) {
			t.Errorf("%s: %q, want %q", round.name, *events, round.want)
		}
	}
}

// CASES A4
func TestNoPutGoesOnUntilTheDirectoryIsDurable(t *testing.T) {
	target, dir := unmadeTarget(t)
	events := parentSyncs(target, &fs.PathError{Op: "sync", Path: "parent", Err: syscall.EIO})
	for range 2 {
		_, err := target.Put(t.Context(), request("k", "x"))
		wantCode(t, err, sdk.Unavailable, "k", "the target directory cannot be made", "sync parent")
	}
	wantMade(t, dir, true)
	wantFiles(t, dir)
	if len(*events) != 2 {
		t.Errorf("%q, want an attempt of each put", *events)
	}
}

// Both Puts are at it before the one that makes the directory has synced it.
func TestFirstPutsSideBySideBothWaitForTheDirectory(t *testing.T) {
	target, dir := unmadeTarget(t)
	making, goOn := make(chan struct{}), make(chan struct{})
	var durable atomic.Bool
	target.sync = func(f *os.File) error {
		if filepath.Clean(f.Name()) == filepath.Dir(dir) {
			close(making) // a second time would panic
			<-goOn
			durable.Store(true)
		} else if !durable.Load() {
			t.Errorf("%s was synced before the directory was", f.Name())
		}
		return nil
	}
	var puts sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "d"} {
		puts.Go(func() {
			if _, err := target.Put(t.Context(), request(key, "x")); err != nil {
				t.Error(err)
			}
		})
	}
	<-making
	close(goOn)
	puts.Wait()
	wantFiles(t, dir, "a", "b", "c", "d")
}

// A read beside the first Put sees nothing or the object, and no store that is away.
func TestReadsBesideTheFirstPutFindItEmptyOrNot(t *testing.T) {
	for range 50 {
		target, _ := unmadeTarget(t)
		target.sync = func(*os.File) error { return nil }
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				for _, err := range target.List(t.Context(), sdk.ListRequest{}) {
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		calls.Go(func() {
			if _, err := target.Put(t.Context(), request("k", "x")); err != nil {
				t.Error(err)
			}
		})
		calls.Wait()
	}
}
