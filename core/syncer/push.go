package syncer

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// attempts bounds how often one push plans anew because its number was taken: each time by an older attempt of our own that landed late,
// and of those there is one for each job that ended without an answer.
const attempts = 16

// push commits the pinned checkpoint, or proves that it is committed. When it returns nil, the commit exists and, after its creation, our
// epoch did and no higher one, and what the commit stands on and the packs that were made for it did too.
func (s *session) push(ctx context.Context, p pinned, packs *packer) error {
	m := p.Manifest()
	if s.fence != nil {
		return s.fence
	}
	if s.done(m) {
		return nil
	}
	if err := s.open(ctx, m); err != nil {
		return err
	}
	for range attempts {
		switch {
		case s.done(m):
			return nil
		case s.unresolved:
			if err := s.resolve(ctx, packs); err != nil {
				return err
			}
		case s.holds(m), s.unseen():
			if err := s.confirm(ctx); err != nil {
				return err
			}
		default:
			if err := s.attempt(ctx, p, packs); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("target %q: %d times in a row the next commit number was taken, by older attempts of this host or by what the store says exists and does not find: %w",
		s.target, attempts, ErrUnresolved)
}

// holds says whether the newest checkpoint commit is that of m, and nothing is known to be wrong with it.
func (s *session) holds(m checkpoint.Manifest) bool {
	return s.base != nil && s.base.Checkpoint.ID == m.ID && !s.broken(s.base)
}

// unseen says whether the newest checkpoint commit is one of ours that nobody has seen there with what it stands on: the job that made it got no
// answer. Nothing is built on it before, for the packs that were made for it may have gone with a store that was put back meanwhile.
func (s *session) unseen() bool {
	return s.made && !s.unsound.has(s.base.Number) && !s.wrong.packsUnseen
}

// done says whether that may be told.
func (s *session) done(m checkpoint.Manifest) bool { return s.holds(m) && s.confirmed && !s.unresolved }

// doubt takes back what was confirmed, for a job that must look for itself.
func (s *session) doubt() { s.confirmed = false }

// confirm looks at the epoch and at what stands there, after a commit of ours was created or when somebody asks anew: only then is success told to
// anyone.
func (s *session) confirm(ctx context.Context) error {
	// Before the rest: what makes a commit one is looked at last.
	if err := s.formatStands(ctx); err != nil {
		return fmt.Errorf("commit %d is not confirmed: %w", s.base.Number, err)
	}
	if !s.wrong.tellEarly {
		if err := s.stillHighest(ctx); err != nil {
			return fmt.Errorf("commit %d exists and is not confirmed: %w", s.base.Number, err)
		}
	}
	if err := s.baseStands(ctx); err != nil {
		return fmt.Errorf("commit %d is not confirmed: %w", s.base.Number, err)
	}
	s.confirmed, s.made = !s.broken(s.base), false
	return nil
}

// attempt aims one commit at the next number. It returns nil when something was learnt, and the push looks again where it stands.
func (s *session) attempt(ctx context.Context, p pinned, packs *packer) error {
	m := p.Manifest()
	plan, err := repository.PlanRepair(s.parent(), sources(m), s.lost)
	if err != nil {
		return fmt.Errorf("plan push of checkpoint %s: %w", m.ID, err)
	}
	stands, err := s.tipStands(ctx) // not needed for safety: it saves the upload, and litter where the repository was
	switch {
	case err != nil:
		return err
	case !stands:
		s.unresolved = true // something lies above it: that is read next
		return nil
	}
	built := repository.NewBuilder(plan, s.epoch, s.last+1)
	if s.wrong.packsByContent {
		built = repository.NewBuilder(plan, 1, 1)
	}
	if err := packs.upload(ctx, s.remote, p, plan, built); err != nil {
		return err
	}
	commit := &repository.Commit{
		Number: s.last + 1, Kind: repository.KindCheckpoint, Epoch: s.epoch, Writer: s.writer, Parent: s.lastSum,
		Created: s.now(), WrittenBy: s.writtenBy, Checkpoint: described(m),
	}
	if commit.Packs, commit.Files, err = built.Tables(); err != nil {
		return err
	}
	commit.Totals = repository.TotalsOf(commit)
	return s.commit(ctx, commit, packs)
}

// parent is the commit whose chunks need not be packed again.
func (s *session) parent() *repository.Commit {
	if s.base == nil {
		return nil
	}
	return s.base.Commit
}

// commit creates the commit: the one moment at which a push becomes real.
func (s *session) commit(ctx context.Context, c *repository.Commit, packs *packer) error {
	text, err := s.codec.encode(c)
	if err != nil {
		return err
	}
	return s.send(ctx, sentCommit{known: known{Commit: c, sum: repository.Sum(text), size: int64(len(text))}, text: text}, packs)
}

// send creates a commit of these very bytes.
func (s *session) send(ctx context.Context, c sentCommit, packs *packer) error {
	body, done, err := packs.body(ctx, c.text)
	if err != nil {
		return err
	}
	defer done()
	s.unresolved = true
	if s.advisory {
		s.sent = &c
	}
	err = s.create(ctx, repository.CommitKey(s.prefix, c.Number), sdk.ClassMeta, body)
	switch {
	case err == nil, s.wrong.conflictIsSuccess && errors.Is(err, sdk.Exists):
		s.append(c.known)
		return nil
	case s.wrong.conflictIsFenced && errors.Is(err, sdk.Exists):
		return s.fenced(s.epoch+1, nil)
	case errors.Is(err, sdk.Exists):
		return nil // unresolved: it is read next
	case ctx.Err() != nil:
		return fmt.Errorf("commit %d: %w", c.Number, unanswered(err))
	}
	landed, found := s.peek(ctx)
	switch {
	case landed:
		return nil
	case s.fence != nil, errors.Is(found, repository.ErrCorrupt):
		return found
	}
	return fmt.Errorf("commit %d: %w", c.Number, unanswered(err))
}

// resolve finds out what became of the number that an earlier create aimed at. When nothing is there, it can be aimed at again: should
// the earlier request land still, it or the new one is refused by the store. Where fencing is advisory nothing is refused, and the
// request that lands last wins: the number is aimed at with the same bytes until they are there.
func (s *session) resolve(ctx context.Context, packs *packer) error {
	landed, err := s.peek(ctx)
	switch {
	case err != nil || landed:
		return err
	case s.sent != nil && !s.wrong.otherBytes:
		return s.send(ctx, *s.sent, packs)
	}
	s.unresolved = false
	return nil
}

// peek reads the commit at the next number and, if there is one, takes it into the line: what this session sent, whichever attempt it was,
// is ours. Of a higher epoch, it ends the session. Nothing there, while our epoch is the highest, is no error.
func (s *session) peek(ctx context.Context) (landed bool, err error) {
	n := s.last + 1
	c, err := s.read(ctx, n)
	switch {
	case isNotFound(err):
		return false, s.stillHighest(ctx)
	case err != nil:
		return false, err
	case c.Epoch > s.epoch:
		return false, s.takenOver(ctx, c.Epoch)
	case !s.mine(c):
		return false, fmt.Errorf("target %q: commit %d of epoch %d by writer %s lies above the seal of epoch %d: %w",
			s.target, n, c.Epoch, c.Writer.ID, s.epoch, repository.ErrCorrupt)
	}
	s.append(c)
	return true, nil
}

// append takes a commit of ours as the new end of the line.
func (s *session) append(c known) {
	s.last, s.lastSum, s.unresolved, s.sent = c.Number, c.sum, false, nil
	if c.Kind == repository.KindCheckpoint {
		s.base, s.confirmed, s.made = &c, false, true
	}
}

// described is what a commit says about a checkpoint.
func described(m checkpoint.Manifest) repository.Checkpoint {
	return repository.Checkpoint{
		ID: m.ID, Step: m.Step, Created: m.Created, Incarnation: m.Incarnation,
		Identity: repository.Identity{Kind: m.Kind, Fingerprint: m.Fingerprint}, History: pointOf(m).History,
	}
}

func sources(m checkpoint.Manifest) []repository.Source {
	files := make([]repository.Source, len(m.Files))
	for i, f := range m.Files {
		files[i] = repository.Source{Path: f.Path, Size: f.Size, Mode: f.Mode, Chunks: f.Chunks}
	}
	return files
}
