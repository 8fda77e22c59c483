package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/core/trigger"
)

// stateDir is the circuit's live folder.
func (p *pipeline) stateDir() string {
	if p.dir == nil {
		return filepath.Join(p.host.cfg.Host.MemoryDir(), p.cfg.Name)
	}
	return p.dir.State()
}

// emptyMemory makes the folder that a circuit under memory storage works in; what an earlier run left goes.
func (p *pipeline) emptyMemory() error {
	if err := os.RemoveAll(p.stateDir()); err != nil {
		return fmt.Errorf("empty the folder of memory storage: %w", err)
	}
	if err := os.MkdirAll(p.stateDir(), 0o700); err != nil {
		return fmt.Errorf("make the folder of memory storage: %w", err)
	}
	return nil
}

// noCheckpoints answers for memory storage.
type noCheckpoints struct{}

// Write refuses.
func (noCheckpoints) Write(context.Context, circuit.Snapshot) (trigger.Checkpoint, error) {
	return trigger.Checkpoint{}, errors.New(`storage "memory" keeps no checkpoints: nothing of it survives; use storage "file"`)
}

// take puts the chosen state in place. The order makes every crash harmless: the pipeline's identity is saved before anything of its state
// stands on disk, the record that names the new lineage before a state of that lineage stands in the live folder, and until it stands there
// the next start chooses as this one did.
func (p *pipeline) take(ctx context.Context, r *run, c circuit.Circuit, choice syncer.Choice, found seen) error {
	if choice.Kind == syncer.KeepLive {
		return nil
	}
	if commit := found.commit(choice); commit != nil {
		if err := sameCircuit(c.Identity(), choice.Checkpoint, circuitOf(commit)); err != nil {
			return err
		}
	}
	if err := p.keepIdentity(found.owner); err != nil {
		return err
	}
	p.host.hook("start.identified")
	switch choice.Kind {
	case syncer.StartFreshly:
		return p.takeNothing(found)
	case syncer.FromTarget, syncer.FromSeed:
		if err := p.pull(ctx, r, choice, found); err != nil {
			return err
		}
		p.host.hook("start.pulled")
	}
	r.phase(fmt.Sprintf("restoring checkpoint %s", choice.Checkpoint), nil)
	return p.takeCheckpoint(ctx, r, c, choice, found)
}

// takeNothing begins an empty state of a new lineage.
func (p *pipeline) takeNothing(found seen) error {
	for _, commit := range found.commits {
		if commit == nil {
			continue
		}
		if err := p.dir.Checkpoints().Observe(commit.Checkpoint.ID); err != nil {
			return err
		}
	}
	if err := p.keepHistory(checkpoint.History{{Lineage: uuid.Must(uuid.NewRandom())}}, nil, uuid.Nil); err != nil { // nil: there is no state
		return err
	}
	if p.scratch() {
		return emptyDir(p.dir.State())
	}
	if err := os.MkdirAll(p.dir.State(), 0o700); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(p.dir.State(), checkpoint.OpenedByName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // an earlier run has opened it and made no state
	}
	return syncDir(filepath.Dir(p.dir.State())) // SQLite syncs what is in there, and not its name
}

func (p *pipeline) pull(ctx context.Context, r *run, choice syncer.Choice, found seen) error {
	reader := found.reader(choice)
	var done, total atomic.Int64
	r.phase(fmt.Sprintf("pulling checkpoint %s from target %q", choice.Checkpoint, choice.Target), func() string {
		text := fmt.Sprintf("%d of %d bytes", done.Load(), total.Load())
		if why := p.host.trouble(choice.Target, reader); why != "" {
			text += ", " + why
		}
		return text
	})
	_, err := reader.Pull(ctx, syncer.PullRequest{
		From: syncer.Selector{Number: choice.Number}, Local: p.dir.Checkpoints(), Spool: p.host.spool,
		Progress: func(now syncer.Progress) { done.Store(now.Done); total.Store(now.Total) },
	})
	return err
}

// takeCheckpoint restores a local checkpoint into the live folder. A pulled one was checked chunk by chunk as it came, and
// that of a standby when it was activated.
func (p *pipeline) takeCheckpoint(ctx context.Context, r *run, c circuit.Circuit, choice syncer.Choice, found seen) error {
	pinned, err := p.dir.Checkpoints().Pin(choice.Checkpoint)
	if err != nil {
		return err
	}
	defer pinned.Release()
	m := pinned.Manifest()
	if err := sameCircuit(c.Identity(), m.ID, circuit.Identity{Kind: m.Kind, Fingerprint: m.Fingerprint}); err != nil {
		return err
	}
	if choice.Kind == syncer.FromLocal && r.verified != m.ID {
		if err := checkpoint.Verify(ctx, pinned.Dir(), m); err != nil {
			return err
		}
	}
	staged := p.dir.State() + ".new"
	if err := emptyDir(staged); err != nil {
		return err
	}
	if err := c.Restore(ctx, pinned.Dir(), staged); err != nil {
		return fmt.Errorf("restore checkpoint %s: %w", m.ID, err)
	}
	if err := checkpoint.SetOpenedBy(staged, r.id); err != nil {
		return fmt.Errorf("note in the restored state which run made it: %w", err)
	}
	p.host.hook("start.restored")
	openers, err := p.openers(r)
	if err != nil {
		return err
	}
	if err := p.keepHistory(fork(m), openers, choice.Honours); err != nil {
		return err
	}
	p.host.hook("start.recorded")
	return p.swapState(staged, found.damaged)
}

// sameCircuit refuses a checkpoint of another circuit before anything is touched.
func sameCircuit(now circuit.Identity, checkpoint uuid.UUID, then circuit.Identity) error {
	switch {
	case then.Kind != now.Kind:
		return fmt.Errorf("checkpoint %s belongs to a circuit of kind %q, this one is %q: use the circuit it was taken from", checkpoint, then.Kind, now.Kind)
	case then.Fingerprint != now.Fingerprint:
		return fmt.Errorf("checkpoint %s belongs to another schema or to other inputs than this circuit has: restore with the configuration it was taken from, or use another storage path and prefix to start anew", checkpoint)
	}
	return nil
}

// fork is the history of a state that goes on from a checkpoint. Another run may have gone on from the same one in another way, so this
// one gets a lineage of its own.
func fork(m checkpoint.Manifest) checkpoint.History {
	at := repository.Point{History: historyOf(m.History), Step: m.Step}
	var history checkpoint.History
	for _, reign := range at.Fork(uuid.Must(uuid.NewRandom())) {
		history = append(history, checkpoint.Reign(reign))
	}
	return history
}

// swapState puts the staged folder in the live folder's place. A damaged live state is kept beside it until the next one, for whoever
// wants to look at it; one that was merely behind holds nothing that the new one does not.
func (p *pipeline) swapState(staged string, damaged bool) error {
	live, old := p.dir.State(), p.dir.State()+".old"
	if damaged {
		old = p.dir.State() + ".damaged"
		p.log.Warn("damaged live state moved away", "to", old)
	}
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(live, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.host.hook("start.swapping")
	if err := os.Rename(staged, live); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(live)); err != nil {
		return err
	}
	p.host.hook("start.swapped")
	return p.clearStaging()
}

// clearStaging removes what a crash left on the way from one live state to the next.
func (p *pipeline) clearStaging() error {
	return errors.Join(os.RemoveAll(p.dir.State()+".new"), os.RemoveAll(p.dir.State()+".old"))
}

func emptyDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() // nothing was written through it
	return d.Sync()
}
