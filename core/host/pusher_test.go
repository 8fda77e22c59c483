package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/sdk"
)

// snapshotOf a step is one small file.
type snapshotOf uint64

func (s snapshotOf) Step() uint64 { return uint64(s) }

func (s snapshotOf) Write(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "state"), []byte{byte(s)}, 0o600)
}

func (snapshotOf) Release() {}

// While Write runs, and until the loop has heard of its end, the loop may begin a push of the checkpoint before: with keep = 1 that used to
// be removed already, and the push failed.
// CASES A6
func TestTheCheckpointThatTheLoopKnowsOfOutlivesTheNextPublication(t *testing.T) {
	dir, err := checkpoint.OpenDir(filepath.Join(t.TempDir(), "storage"), checkpoint.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	host := &Host{opts: Options{Now: time.Now, Log: hclog.NewNullLogger()}}
	p := &pipeline{host: host, dir: dir, log: host.opts.Log, cfg: config.Pipeline{Checkpoint: config.Checkpoint{Keep: 1}}}
	c := &checkpointer{p: p, identity: circuit.Identity{Kind: "test"}, history: checkpoint.History{{Lineage: uuid.New()}}}
	var ids []uuid.UUID
	for step := snapshotOf(1); step <= 4; step++ {
		made, err := c.Write(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.ID)
		for i, id := range ids {
			release, err := p.pin(id)
			if there, want := err == nil, i >= len(ids)-2; there != want {
				t.Errorf("after checkpoint %d, checkpoint %d is there: %v, want %v (%v)", step, i+1, there, want, err)
			}
			if err == nil {
				release()
			}
		}
	}
}

func TestTheLoopHearsOfAFailedPushWithTheStoresHint(t *testing.T) {
	full := fmt.Errorf("target %q: %w", "offsite", &sdk.Error{Code: sdk.NoSpace, Op: "put", Key: "a", Hint: "make room"})
	got := explained(full)
	if want := `target "offsite": put a: no space left on the store; make room`; got.Error() != want || !errors.Is(got, sdk.NoSpace) {
		t.Errorf("it reads %q, want %q", got, want)
	}
	if again := explained(got); again.Error() != got.Error() {
		t.Errorf("said twice: %q", again)
	}
	for _, plain := range []error{nil, errors.New("no hint")} {
		if got := explained(plain); got != plain {
			t.Errorf("%v became %v", plain, got)
		}
	}
}
