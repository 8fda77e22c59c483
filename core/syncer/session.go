package syncer

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// looks bounds how often a look begins again because what it listed was retired: each time the repository has a newer commit.
const looks = 8

// phase is how far a session has come. It only moves forward; a call that fails leaves it where it is, and the next job goes on there.
type phase uint8

const (
	unclaimed phase = iota // nothing written yet
	claimed                // the epoch is ours; the line is not known yet
	sealed                 // our seal stands; whether we still hold the epoch is not known yet
	lined                  // our seal stands and closes the line; what it continues is not known yet
	ready                  // may commit at last+1
)

// session is one writer's reign over a repository, from its claim to its fencing: one for each incarnation, unless the operator adopts. It
// belongs to the worker's job. Its rules are those of the model ("AMENDED"); the fields are what the model calls EP, LAST, BREFS and UNRES.
type session struct {
	remote

	target    string
	writer    repository.Writer
	host      string
	writtenBy string
	format    repository.Format // what FORMAT.json shall say if it does not exist
	now       func() time.Time
	codec     commitCodec
	adopted   *adoption
	was       *CommitRef           // newest commit of ours that is remembered from there; nil = none, or the operator gave it up
	knows     func(CommitRef) bool // whether our storage path made it as far as it remembers, see state.knows; nil = it remembers nothing
	wrong     mutants
	probe     probing
	fencing   Fencing
	log       hclog.Logger

	rights   *ProbeReport // as last probed; nil = not yet
	probed   bool         // they suffice
	sealTime time.Time    // of our seal: the same seal, made again, has the same bytes

	phase      phase
	hasFormat  bool              // FORMAT.json exists and is ours
	looked     bool              // base is what the repository has
	over       uint64            // highest epoch of an earlier session of this worker, which is not claimed again; 0 = none
	claiming   uint64            // epoch whose claim had no answer; 0 = none
	epoch      uint64            // ours; 0 before the claim
	ours       sdk.Object        // our epoch object as listed when it was last read; zero = never
	last       uint64            // newest number of the line; the next commit is last+1
	lastSum    repository.Digest // of commit last's stored bytes
	base       *known            // newest checkpoint commit of the line; nil = none
	unresolved bool              // a create of commit last+1 had no answer
	sent       *sentCommit       // what that create sent, where fencing is advisory
	tip        listedObject      // commit last as it was listed when it was last known to be ours; zero = never
	made       bool              // base was created by this session, and nobody has seen it there yet
	confirmed  bool              // after base was created our epoch was seen to be there and to be the highest, and base to be there
	fence      *FencedError      // set once, final
	listed     []uint64          // commit numbers, ascending, as last listed
	unsound    unsound           // what a repair has found; zero = nothing is known to be wrong
	spoilt     repository.Digest // of the commit whose object was found damaged when it was read again; zero = none
	damage     *Damage           // what verifications have found; nil = none is known
	anew       uint64            // number of our seal, until it is told: what is known of commits from it on is of lost ones, whose numbers are given anew
	lacks      lack              // what is known of the packs of the base that it opened on
	gc         repository.GC     // the highest, as it was last read while the session opens
	cache      map[uint64]known  // commits read while the session opens
}

// known is a commit that was read, or created by this session.
type known struct {
	*repository.Commit

	sum  repository.Digest // of its stored bytes
	size int64             // of them
}

// commitCodec is repository.EncodeCommit and DecodeCommit; the model test, whose ten thousand stories would spend nearly all their time
// compressing, has a plainer one.
type commitCodec struct {
	encode func(*repository.Commit) ([]byte, error)
	decode func(number uint64, stored []byte) (*repository.Commit, error)
}

// mutants are wrong protocols. Only the model test sets them, to show that it would notice.
type mutants struct {
	noSeal            bool // continue behind the head without a seal
	listBeforeClaim   bool // trust the listing of the look
	tellEarly         bool // tell success before the epoch is looked at again
	ownEpochUnseen    bool // look only for an epoch above ours
	conflictIsSuccess bool // a taken number is taken for our own commit
	conflictIsFenced  bool // a taken number is taken for a takeover without reading it
	packsUnseen       bool // a commit that is found, or whose confirmation had no answer, is taken for whole without a look at its packs
	restartTakesBack  bool // a storage path in whose place another was activated claims again when it is started
	otherBytes        bool // under advisory fencing, an unanswered number is aimed at with another commit
	otherSeal         bool // likewise, with another seal

	packsByContent     bool // packs are named by their content alone
	sweepReadsFirst    bool // the sweep reads the commits before it lists the packs
	sweepUndecided     bool // it condemns packs of our own epoch whatever number they aim at
	gcWithoutKept      bool // a gc object hides all up to its number
	gcConflictIsOurs   bool // a gc number that is taken is taken for our own
	deleteBeforeGC     bool // commits are deleted without a gc object that hides them
	pinsUnread         bool // retention does not read the pins
	pinWithoutGC       bool // a pin is acknowledged when it is written
	verifiedNotKept    bool // retention does not keep what was proven to restore
	tipUnseen          bool // a push goes on without a look whether the commit that it continues is there
	formatUnseen       bool // success is told without a look whether FORMAT.json is there
	landingUnseen      bool // success is told without a look whether the commit and what it stands on are there
	retiredMustBeThere bool // the newest commit that we knew must be listed though it was retired since
}

// look reads, and writes nothing: is this our repository, and which checkpoint commit is the newest? nil = none was ever made. While another
// writer holds the epoch, its retention may take a commit that was just listed: then it looks again.
func (s *session) look(ctx context.Context) (newest *known, err error) {
	for range looks {
		if newest, err = s.lookOnce(ctx); !isNotFound(err) {
			break
		}
	}
	return newest, err
}

func (s *session) lookOnce(ctx context.Context) (*known, error) {
	if err := s.readGC(ctx); err != nil { // before the commits are listed, see aboveGC
		return nil, err
	}
	numbers, err := s.numbers(ctx, repository.CommitPrefix(s.prefix), repository.ParseCommitKey)
	if err != nil {
		return nil, err
	}
	// In this order: whoever created a commit created FORMAT.json before it.
	if err := s.checkFormat(ctx); err != nil {
		return nil, err
	}
	if !s.hasFormat && len(numbers) > 0 {
		return nil, s.formatLost()
	}
	s.listed = numbers
	newest, err := s.newestCheckpoint(ctx)
	if err != nil {
		return nil, err
	}
	return newest, s.aboveGC(newest)
}

// newestCheckpoint walks down the listed commits to the newest that is a checkpoint. The newest is never retired, so only a takeover
// makes one vanish that is above it.
func (s *session) newestCheckpoint(ctx context.Context) (*known, error) {
	for i := len(s.listed) - 1; i >= 0; i-- {
		c, err := s.read(ctx, s.listed[i])
		if err != nil {
			return nil, err
		}
		if c.Kind == repository.KindCheckpoint {
			return &c, nil
		}
	}
	return nil, nil
}

// read gives commit n, from the cache where this opening has read it already: a commit never changes.
func (s *session) read(ctx context.Context, n uint64) (known, error) {
	if c, ok := s.cache[n]; ok {
		return c, nil
	}
	data, err := s.get(ctx, repository.CommitKey(s.prefix, n), repository.MaxCommit)
	if err != nil {
		return known{}, err
	}
	c, err := s.codec.decode(n, data)
	if err != nil {
		return known{}, fmt.Errorf("target %q: %w", s.target, err)
	}
	k := known{Commit: c, sum: repository.Sum(data), size: int64(len(data))}
	if s.cache != nil {
		s.cache[n] = k
	}
	return k, nil
}

// admits says whether our state may follow base: base lies on its history, or the operator has said so of this very commit.
func (s *session) admits(base *known, m checkpoint.Manifest) error {
	if base == nil || base.Checkpoint.ID == m.ID {
		return nil
	}
	if s.adopted != nil && s.adopted.Commit == base.Number && s.adopted.SHA256 == base.sum {
		return nil
	}
	if s.forgotten(base) {
		return &HeldError{Target: s.target, Commit: base.Number, CommitStep: base.Checkpoint.Step, Step: m.Step, Forgotten: true, Made: base.Created, Run: s.commands}
	}
	ours, theirs := pointOf(m), repository.Point{History: base.Checkpoint.History, Step: base.Checkpoint.Step}
	rel := repository.Relate(ours, theirs)
	if rel.OnHistory {
		return nil
	}
	return &HeldError{
		Target: s.target, Commit: base.Number, CommitStep: base.Checkpoint.Step, Step: m.Step, Fork: rel.Fork, Behind: rel.Diverged, Run: s.commands,
	}
}

// forgotten says whether a commit was made from our storage path, which knows nothing of it: its disk was put back to an earlier state, or is
// a copy. Its history alone would not tell, once its steps have caught up with those that it lost.
func (s *session) forgotten(base *known) bool {
	return base.Writer.ID == s.writer.ID && s.knows != nil && !s.knows(refOf(base))
}

// follows says whether m may follow our own last commit: not if that holds a later state of the same line.
func (s *session) follows(m checkpoint.Manifest) error {
	if s.base != nil && s.mine(*s.base) && s.base.Checkpoint.Step > m.Step {
		ours := repository.Point{History: s.base.Checkpoint.History, Step: s.base.Checkpoint.Step}
		if repository.Relate(ours, pointOf(m)).OnHistory {
			return fmt.Errorf("target %q: checkpoint %s (step %d): %w: commit %d (step %d)",
				s.target, m.ID, m.Step, ErrSuperseded, s.base.Number, s.base.Checkpoint.Step)
		}
	}
	return s.admits(s.base, m)
}

// open brings the session to ready for checkpoint m: it looks, and only when our state may follow what is there does it claim.
func (s *session) open(ctx context.Context, m checkpoint.Manifest) error {
	if s.phase == ready {
		return s.follows(m)
	}
	s.cache, s.gc = map[uint64]known{}, repository.GC{}
	defer func() { s.cache = nil }()
	if s.phase == unclaimed {
		newest, err := s.survey(ctx)
		if err != nil {
			return err
		}
		if err := s.displaced(ctx, newest); err != nil {
			return err
		}
		if err := s.admits(newest, m); err != nil {
			return err
		}
		s.base, s.confirmed, s.looked = newest, true, true
		if s.holds(m) {
			if err := s.inspect(ctx); err != nil {
				return err
			}
		}
		if s.holds(m) {
			return nil // an earlier incarnation committed it: nothing to claim for
		}
		if err := s.qualify(ctx); err != nil {
			return err
		}
	}
	if err := s.reign(ctx); err != nil {
		return err
	}
	return s.admits(s.base, m) // a commit may have come between the look and the seal
}

// survey looks before anything is claimed.
func (s *session) survey(ctx context.Context) (newest *known, err error) {
	if newest, err = s.look(ctx); err != nil {
		return nil, s.lookRefused(ctx, err)
	}
	if newest == nil && s.was != nil { // the newest checkpoint commit is never retired
		return nil, &LostError{Target: s.target, Prefix: s.prefix, Was: *s.was, Run: s.commands}
	}
	return newest, nil
}

// displaced ends the session where another writer has sealed the line since this storage path made the newest commit: it was activated in our
// place, in an earlier incarnation of ours or while none ran, and has not come to a commit of its own yet. A restart must not take that back; the
// operator may.
func (s *session) displaced(ctx context.Context, newest *known) error {
	if newest == nil || newest.Writer.ID != s.writer.ID || s.wrong.restartTakesBack {
		return nil
	}
	if s.adopted != nil && s.adopted.Commit == newest.Number && s.adopted.SHA256 == newest.sum {
		return nil
	}
	head, err := s.read(ctx, s.listed[len(s.listed)-1])
	if err != nil {
		return err
	}
	if head.Writer.ID == s.writer.ID {
		return nil
	}
	s.epoch = newest.Epoch // for the error; of this session none was claimed
	defer func() { s.epoch = 0 }()
	return s.takenOver(ctx, head.Epoch)
}

// seize brings the session to ready whatever the newest commit is: whoever seizes goes on from what is found, not from a state of its own.
func (s *session) seize(ctx context.Context) error {
	switch {
	case s.fence != nil:
		return s.fence
	case s.phase == ready:
		return s.stillHighest(ctx)
	}
	s.cache, s.gc = map[uint64]known{}, repository.GC{}
	defer func() { s.cache = nil }()
	if s.phase == unclaimed {
		newest, err := s.survey(ctx)
		if err != nil {
			return err
		}
		s.base, s.confirmed, s.looked = newest, true, true
		if err := s.qualify(ctx); err != nil {
			return err
		}
	}
	return s.reign(ctx)
}

// reign takes the steps from the claim to ready that are still to be taken.
func (s *session) reign(ctx context.Context) error {
	steps := [...]func(context.Context) error{unclaimed: s.claim, claimed: s.seal, sealed: s.hold, lined: s.settle}
	for s.phase < ready {
		if err := steps[s.phase](ctx); err != nil {
			return err
		}
	}
	return nil
}

// settle finds the commit that this reign continues from: the newest checkpoint below the seal.
func (s *session) settle(ctx context.Context) error {
	base, err := s.newestCheckpoint(ctx)
	if err != nil {
		return s.vanished(ctx, err)
	}
	s.base, s.confirmed = base, true
	if err := s.inspect(ctx); err != nil {
		return err // the next job settles again, from the same list
	}
	s.anew, s.damage = s.last, s.damage.below(s.last)
	s.phase, s.listed = ready, nil
	return nil
}

func pointOf(m checkpoint.Manifest) repository.Point {
	p := repository.Point{History: make(repository.History, len(m.History)), Step: m.Step}
	for i, r := range m.History {
		p.History[i] = repository.Reign(r)
	}
	return p
}
