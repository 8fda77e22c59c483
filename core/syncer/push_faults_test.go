package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// CASES A2, A14: nothing but a confirmed commit is success.
func TestAPushThatAStoreRefusesIsNeverShownAsSuccess(t *testing.T) {
	for _, row := range []struct {
		op, part string
		after    bool
		code     sdk.Code
		want     JobState
	}{
		{"put", "FORMAT", false, sdk.PermissionDenied, JobFailed},
		{"put", "epoch/", false, sdk.NoSpace, JobFailed},
		{"put", "pack/", false, sdk.Unavailable, JobFailed},
		{"put", "pack/", false, sdk.NoSpace, JobFailed},
		{"put", "commit/00000000000000000001", false, sdk.Internal, JobFailed},
		{"put", "commit/00000000000000000002", false, sdk.Unavailable, JobUnresolved},
		{"put", "commit/00000000000000000002", false, sdk.PluginGone, JobUnresolved},
		{"put", "commit/00000000000000000002", false, sdk.Unauthenticated, JobFailed},
		{"put", "commit/00000000000000000002", false, sdk.Unsupported, JobFailed},
		{"list", "", false, sdk.PermissionDenied, JobFailed},
		{"get", "FORMAT", false, sdk.PermissionDenied, JobFailed}, // a 403 is unknown, never "absent"
		{"get", "epoch/", false, sdk.PermissionDenied, JobFailed},
	} {
		t.Run(fmt.Sprintf("%s %s %s", row.op, row.part, row.code), func(t *testing.T) {
			b := newBench(t)
			id := b.publish(1, map[string]string{"f": "1"})
			w := b.worker()
			b.failOn(row.op, row.part, 1, row.code, row.after)
			err := b.push(w, id, Periodic)
			if !errors.Is(err, row.code) {
				t.Fatalf("error %v", err)
			}
			s := w.Status()
			if s.Committed != nil || s.Success != uuid.Nil || s.Periodic != uuid.Nil || s.Failures != 1 || s.PeriodicFailure.Checkpoint != id {
				t.Errorf("status %+v", s)
			}
			if rec := s.Jobs[len(s.Jobs)-1]; rec.State != row.want || rec.Error == "" || rec.Commit != 0 {
				t.Errorf("record %+v", rec)
			}
			b.heal()
			b.mustPush(w, id, Periodic)
			if s := w.Status(); s.Periodic != id || s.Failures != 0 || s.PeriodicFailure != nil {
				t.Errorf("status after it healed: %+v", s)
			}
		})
	}
}

// CASES A8, A15: a push that ends anywhere leaves nothing that a reader could take for a checkpoint, and the next one succeeds.
func TestAPushThatEndsAtAnyCallLeavesAWholeRepository(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := int64(1); ; n++ {
			b := newBench(t)
			first := b.publish(1, map[string]string{"f": "1", "g": incompressible(8, 1000)})
			b.mustPush(b.worker(), first, Periodic)
			id := b.publish(2, map[string]string{"f": "2", "g": incompressible(9, 1000)})
			w := b.restart()
			ctx, cancel := context.WithCancel(t.Context())
			base := b.store.Calls()
			hook := func(c callt) error {
				if c.N-base != n {
					return nil
				}
				cancel()
				return ctx.Err()
			}
			if after {
				b.store.After = func(_ ctxt, c callt, err error) error { return cmp.Or(hook(c), err) }
			} else {
				b.store.Before = func(_ ctxt, c callt) error { return hook(c) }
			}
			err := w.Push(ctx, Job{Checkpoint: id, Trigger: Periodic})
			cancel()
			b.heal()
			if err == nil {
				if b.store.Calls()-base >= n {
					t.Fatalf("cancelled at call %d and yet successful", n)
				}
				break
			}
			c := b.newest()
			if c.Kind == repository.KindCheckpoint && c.Checkpoint.ID != first && c.Checkpoint.ID != id {
				t.Fatalf("cancelled at call %d: commit %+v", n, c.Checkpoint)
			}
			if c.Kind == repository.KindCheckpoint {
				b.content(c)
			}
			if s := w.Status(); s.Periodic != uuid.Nil && s.Periodic != first || s.Jobs[len(s.Jobs)-1].State != JobCancelled {
				t.Fatalf("cancelled at call %d: status %+v", n, s)
			}
			b.mustPush(w, id, Periodic)
			if got := b.content(b.newest()); got["f"] != "2" {
				t.Fatalf("cancelled at call %d, pushed again: %q", n, got["f"])
			}
		}
	}
}

// CASES A11, A13: the commit landed, the answer did not.
func TestAPushThatLosesItsReplyIsReadBack(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	w := b.worker()
	b.failOn("put", "commit/00000000000000000002", 1, sdk.Unavailable, true)
	b.mustPush(w, id, Requested)
	if n := len(b.commits()); n != 2 {
		t.Errorf("%d commits, want the seal and one", n)
	}
}

// CASES A11
// A store that answers every conflict as Exists says it of packs that it does not have. The commit would be one that nobody can restore.
func TestAPackThatIsSaidToExistIsReadBackBeforeTheCommit(t *testing.T) {
	for name, row := range map[string]struct {
		there func(b *bench, key string)
		say   string
		code  sdk.Code
	}{
		"and is not there":       {func(*bench, string) {}, "does not find it", sdk.Internal},
		"and is something else":  {func(b *bench, key string) { b.mem.Plant(key, []byte("rubbish")) }, "something else", sdk.Corrupt},
		"and is of another size": {func(b *bench, key string) { b.mem.Plant(key, nil) }, "something else", sdk.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.worker()
			first := b.publish(1, map[string]string{"f": "1"})
			b.mustPush(w, first, Periodic)
			var pack string
			b.store.Before = func(_ ctxt, c callt) error {
				if c.Op != "put" || !strings.HasPrefix(c.Key, "strikes/pack/") {
					return nil
				}
				pack = c.Key
				row.there(b, c.Key)
				return sdk.Exists
			}
			id := b.publish(2, map[string]string{"f": "2"})
			err := b.push(w, id, Periodic)
			if said := fmt.Sprint(err); sdk.CodeOf(err) != row.code || !strings.Contains(said, row.say) || !strings.Contains(said, pack) {
				t.Errorf("error %v", err)
			}
			if s := w.Status(); s.Periodic != first || s.Failures != 1 || b.newest().Checkpoint.ID != first {
				t.Errorf("status %+v", s)
			}
			b.heal()
			b.remove(pack)
			b.mustPush(w, id, Periodic)
			if got := b.content(b.newest())["f"]; got != "2" {
				t.Errorf("restores to %q", got)
			}
		})
	}
}

func TestACommitThatLandsAfterItsCallerGaveUpIsFoundByTheNextJob(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	w := b.worker()
	ctx, cancel := context.WithCancel(t.Context())
	b.store.After = func(_ ctxt, c callt, err error) error {
		if strings.Contains(c.Key, "commit/00000000000000000002") {
			cancel() // a millisecond before the reply
			return ctx.Err()
		}
		return err
	}
	if err := w.Push(ctx, Job{Checkpoint: id, Trigger: Requested}); !errors.Is(err, ErrUnresolved) {
		t.Fatalf("error %v", err)
	}
	if s := w.Status(); s.Success != uuid.Nil || s.Committed != nil {
		t.Errorf("told before it was known: %+v", s)
	}
	b.heal()
	b.mustPush(w, id, Requested)
	if s := w.Status(); len(b.commits()) != 2 || s.Success != id || s.Committed.Number != 2 {
		t.Errorf("%d commits, status %+v", len(b.commits()), s)
	}
}

func TestAnOlderAttemptOfOursThatLandedIsPlannedOnTopOf(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	older := b.publish(1, map[string]string{"f": "1"})
	b.failOn("get", "commit/00000000000000000002", 1, sdk.Unavailable, false) // not even the read-back is answered
	lost := b.store.Before
	b.store.After = func(_ ctxt, c callt, err error) error {
		if c.Op == "put" && strings.Contains(c.Key, "commit/00000000000000000002") {
			return &sdk.Error{Code: sdk.Unavailable}
		}
		return err
	}
	b.store.Before = lost
	if err := b.push(w, older, Periodic); !errors.Is(err, ErrUnresolved) {
		t.Fatalf("error %v", err)
	}
	b.heal()
	newer := b.publish(2, map[string]string{"f": "2"})
	b.mustPush(w, newer, Periodic)
	all := b.commits()
	if len(all) != 3 || all[2].Checkpoint.ID != older || all[3].Checkpoint.ID != newer {
		t.Errorf("commits %v", all)
	}
}

// CASES A10, A17, A18, A20: what is on disk is not what was published.
func TestACheckpointThatChangedOnDiskIsNotCommitted(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string) error{
		"a byte was flipped": func(t *testing.T, path string) error {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content[len(content)/2] ^= 1
			return os.WriteFile(path, content, 0o600)
		},
		"it shrank":      func(_ *testing.T, path string) error { return os.Truncate(path, 1<<20) },
		"it grew":        func(_ *testing.T, path string) error { return os.Truncate(path, 4<<20) },
		"it was removed": func(_ *testing.T, path string) error { return os.Remove(path) },
		"it became a link": func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/etc/hostname", path))
		},
		"it became a pipe": func(t *testing.T, path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		},
		"it became a catalog": func(_ *testing.T, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := b.publish(1, map[string]string{"f": incompressible(6, 2<<20), "a": "first"})
			if err := damage(t, b.file(id, "f")); err != nil {
				t.Fatal(err)
			}
			w := b.worker()
			err := b.push(w, id, Periodic)
			if err == nil || !strings.Contains(err.Error(), "f") {
				t.Fatalf("error %v", err)
			}
			if name != "it was removed" && name != "it became a link" && !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("error %v", err)
			}
			if c := b.newest(); c.Kind != repository.KindSeal {
				t.Errorf("commit %+v", c.Checkpoint)
			}
			b.mustPush(w, b.publish(2, map[string]string{"f": "whole again"}), Periodic)
		})
	}
}

// cutting is a source whose files are cut to half at the moment when the first byte behind that is read.
type cutting struct {
	source

	path string
	size int64
}

type cutPinned struct {
	pinned

	cut cutting
}

type cutFile struct {
	chunkFile

	cut cutting
}

func (c cutting) pin(id uuid.UUID) (pinned, error) {
	p, err := c.source.pin(id)
	return cutPinned{p, c}, err
}

func (p cutPinned) open(f checkpoint.File) (chunkFile, error) {
	file, err := p.pinned.open(f)
	return cutFile{file, p.cut}, err
}

func (f cutFile) ReadAt(b []byte, off int64) (int, error) {
	if off >= f.cut.size {
		if err := os.Truncate(f.cut.path, f.cut.size); err != nil {
			return 0, err
		}
	}
	return f.chunkFile.ReadAt(b, off)
}

// CASES A10, A18: the file ends early while it is read, after all checks at the beginning.
func TestAFileThatIsCutWhileItIsReadIsNotCommitted(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": incompressible(7, 20<<20)})
	w := b.worker()
	w.source = cutting{source: w.source, path: b.file(id, "f"), size: 10 << 20}
	err := b.push(w, id, Periodic)
	if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "chunk 1") {
		t.Fatalf("error %v", err)
	}
	if c := b.newest(); c.Kind != repository.KindSeal {
		t.Errorf("commit %+v", c.Checkpoint)
	}
}

// CASES A16: a stream that ends early with a clean end.
func TestAnAnswerThatEndsEarlyIsNotBelieved(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "1"}), Periodic)
	w := b.restart()
	id := b.publish(2, map[string]string{"f": "2"})
	b.store.Body = func(_ callt, body io.ReadCloser) io.ReadCloser {
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(body, 50), body}
	}
	if err := b.push(w, id, Periodic); !errors.Is(err, sdk.Corrupt) {
		t.Fatalf("error %v", err)
	}
	if n := len(b.commits()); n != 2 {
		t.Errorf("%d commits", n)
	}
	b.heal()
	b.mustPush(w, id, Periodic)
}
