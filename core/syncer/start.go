package syncer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// ErrNoStart says that a pipeline must not start: no state may be chosen. What else is in the chain says why.
var ErrNoStart = errors.New("no state to start from")

// StartFacts are what is known when a pipeline is about to start.
type StartFacts struct {
	Live LiveFacts

	Local    *StatePoint // the newest local checkpoint that can be read; nil = none
	LocalErr error       // local checkpoints that cannot be read: a newer one may be among them

	From         StartFrom
	Honoured     []uuid.UUID // of pipeline.json
	Run          Commands    // for the remedies
	FailIfAbsent bool        // fail_if_no_checkpoint

	Targets []TargetState // in the order of the configuration; only looked at when AskTargets says so

	SeedName string       // "" = none is configured
	Seed     *TargetState // only looked at when AskSeed says so
}

// LiveFacts is what the circuit says about its live directory.
type LiveFacts struct {
	Exists  bool
	Exact   bool // Step is known
	Step    uint64
	Damaged error // it exists and must not be used
}

// StatePoint is a checkpoint that a pipeline can start from.
type StatePoint struct {
	ID   uuid.UUID
	Step uint64
}

// StartFrom is start_from_checkpoint. The zero value is "left out": local state only.
type StartFrom struct {
	Latest     bool
	Checkpoint uuid.UUID // instead of Latest
}

// TargetState is the answer of one target: to what Selector asks.
type TargetState struct {
	Name     string
	Excluded bool        // by the operator, who has seen what the others hold
	Commit   *StatePoint // nil without Err = proven absence
	Number   uint64      // of that commit
	Err      error       // it could not be read
	Holds    bool        // it holds a checkpoint, though perhaps not the one that is asked for
}

// StartKind is where the state comes from.
type StartKind string

// The kinds of start.
const (
	KeepLive     StartKind = "live"   // the live directory as it is
	FromLocal    StartKind = "local"  // a local checkpoint
	FromTarget   StartKind = "target" // a commit, to be pulled first
	FromSeed     StartKind = "seed"   // a commit of another repository, to be pulled first
	StartFreshly StartKind = "fresh"  // an empty state
)

// Choice is the state that starts.
type Choice struct {
	Kind       StartKind
	Checkpoint uuid.UUID // FromLocal, FromTarget, FromSeed
	Step       uint64    // known to be reached; 0 when fresh
	Target     string    // FromTarget, FromSeed
	Number     uint64    // FromTarget, FromSeed: of the commit
	Honours    uuid.UUID // to be noted in pipeline.json once the state stands; Nil = nothing
	// NewLineage asks for a new lineage: the state goes on from a point that another run may have gone on from, in another way.
	NewLineage bool
	Why        []string // sentences for the log and the operator, in the order of the thinking
}

// wants is the checkpoint asked for by id, unless it was honoured before: from then on the setting means "latest".
func (f StartFacts) wants() uuid.UUID {
	if slices.Contains(f.Honoured, f.From.Checkpoint) {
		return uuid.Nil
	}
	return f.From.Checkpoint
}

// Selector is what each target is to be asked for.
func (f StartFacts) Selector() Selector { return Selector{Checkpoint: f.wants()} }

// AskTargets says that the choice depends on the targets. While local state decides, no network is needed.
func (f StartFacts) AskTargets() bool {
	choice, err := f.local()
	return choice == nil && err == nil && (f.From.Latest || f.From.Checkpoint != uuid.Nil)
}

// AskSeed says that the choice depends on the seed, given what the targets have answered: every one is proven to hold nothing at all.
func (f StartFacts) AskSeed() bool {
	if f.SeedName == "" || !f.AskTargets() {
		return false
	}
	return !slices.ContainsFunc(f.Targets, func(t TargetState) bool { return !t.Excluded && (t.Err != nil || t.Commit != nil || t.Holds) })
}

// ChooseStart chooses the state that a pipeline starts from: the live state if it is intact and not behind the newest local
// checkpoint, or its step cannot be told; else the newest local checkpoint; else, with start_from_checkpoint, the newest commit among all
// targets or the one asked for, and where none of them holds anything that of the seed; else an empty state, unless that is forbidden. What is damaged or unknown is never taken for
// absent: it is ErrNoStart.
func ChooseStart(f StartFacts) (Choice, error) {
	choice, err := f.local()
	if err != nil {
		return Choice{}, err
	}
	if choice != nil {
		return *choice, nil
	}
	if f.AskTargets() {
		if choice, err = f.remote(); err != nil {
			return Choice{}, err
		}
		if choice != nil {
			return *choice, nil
		}
		if choice, err = f.seed(); err != nil {
			return Choice{}, err
		}
		if choice != nil {
			return *choice, nil
		}
	}
	return f.fresh()
}

// local applies the rules that need no network; nil when they leave it open.
func (f StartFacts) local() (*Choice, error) {
	live := f.Live
	usable := live.Exists && live.Damaged == nil
	behind := usable && live.Exact && f.Local != nil && live.Step < f.Local.Step
	switch {
	case usable && !live.Exact:
		return f.keep("the live state is kept: it exists, and its step cannot be told"), nil
	case usable && !behind:
		why := fmt.Sprintf("the live state is kept: it is intact at step %d", live.Step)
		if f.Local != nil {
			why += fmt.Sprintf(", not behind the newest local checkpoint (step %d)", f.Local.Step)
		}
		return f.keep(why), nil
	case f.LocalErr != nil:
		return nil, fmt.Errorf("%w: %s, and the newest local checkpoint cannot be known: %w; move the damaged checkpoint away to start without it",
			ErrNoStart, f.liveIs(), f.LocalErr)
	case f.Local != nil:
		c := &Choice{Kind: FromLocal, Checkpoint: f.Local.ID, Step: f.Local.Step, NewLineage: true}
		c.Why = append(c.Why, f.liveIs(), fmt.Sprintf("the newest local checkpoint %s (step %d) is restored", f.Local.ID, f.Local.Step))
		c.Why = append(c.Why, f.notAsked()...)
		if f.wants() == f.Local.ID {
			c.Honours = f.Local.ID
		}
		return c, nil
	}
	return nil, nil
}

func (f StartFacts) keep(why string) *Choice {
	c := &Choice{Kind: KeepLive, Step: f.Live.Step, Why: []string{why}}
	if f.LocalErr != nil {
		c.Why = append(c.Why, fmt.Sprintf("some local checkpoints cannot be read: %v", f.LocalErr))
	}
	c.Why = append(c.Why, f.notAsked()...)
	return c
}

// notAsked says that a checkpoint asked for by id was not looked for.
func (f StartFacts) notAsked() []string {
	id := f.wants()
	if id == uuid.Nil || f.Local != nil && f.Local.ID == id {
		return nil
	}
	return []string{fmt.Sprintf("start_from_checkpoint %s is not followed, because there is local state: to go back to it, stop the host and run %s", id, f.Run.RestoreCheckpoint(id))}
}

func (f StartFacts) liveIs() string {
	switch {
	case f.Live.Damaged != nil:
		return fmt.Sprintf("the live state is damaged: %v", f.Live.Damaged)
	case f.Live.Exists:
		return fmt.Sprintf("the live state (step %d) is behind", f.Live.Step)
	}
	return "there is no live state"
}

// remote applies the rule of the newest commit; nil when it is proven that there is none.
func (f StartFacts) remote() (*Choice, error) {
	var best *TargetState
	var unread []error
	var unreadNames, held []string
	for i := range f.Targets {
		t := &f.Targets[i]
		switch {
		case t.Excluded:
			held = append(held, fmt.Sprintf("target %q was excluded by the operator", t.Name))
		case t.Err != nil:
			unread = append(unread, t.Err)
			unreadNames = append(unreadNames, fmt.Sprintf("%q", t.Name))
		case t.Commit == nil:
			held = append(held, fmt.Sprintf("target %q has no such checkpoint", t.Name))
		default:
			held = append(held, fmt.Sprintf("target %q holds checkpoint %s (step %d, commit %d)", t.Name, t.Commit.ID, t.Commit.Step, t.Number))
			if best == nil || t.Commit.Step > best.Commit.Step {
				best = t
			}
		}
	}
	// A checkpoint asked for by id is the same wherever it lies; the newest is known only when every target has answered.
	if len(unread) > 0 && (best == nil || f.wants() == uuid.Nil) {
		return nil, fmt.Errorf("%w: target %s cannot be read and may hold what is wanted (%s); make it readable, or exclude it: %w",
			ErrNoStart, strings.Join(unreadNames, ", "), strings.Join(append(held, f.liveIs()), "; "), errors.Join(unread...))
	}
	if best == nil {
		return nil, nil
	}
	return &Choice{
		Kind: FromTarget, Checkpoint: best.Commit.ID, Step: best.Commit.Step, Target: best.Name, Number: best.Number,
		Honours: f.wants(), NewLineage: true,
		Why: append([]string{f.liveIs() + ", and no local checkpoint"}, append(held, fmt.Sprintf(
			"checkpoint %s (step %d) of target %q is restored", best.Commit.ID, best.Commit.Step, best.Name))...),
	}, nil
}

// seed applies the rule of the seed; nil when it does not, or the seed is proven not to hold what is wanted.
func (f StartFacts) seed() (*Choice, error) {
	if !f.AskSeed() || f.Seed == nil {
		return nil, nil
	}
	if f.Seed.Err != nil {
		return nil, fmt.Errorf("%w: seed %q cannot be read and may hold what is wanted; make it readable, or take the seed block away to start without it: %w",
			ErrNoStart, f.SeedName, f.Seed.Err)
	}
	c := f.Seed.Commit
	if c == nil {
		return nil, nil
	}
	return &Choice{
		Kind: FromSeed, Checkpoint: c.ID, Step: c.Step, Target: f.SeedName, Number: f.Seed.Number, Honours: f.wants(), NewLineage: true,
		Why: []string{
			f.liveIs() + ", no local checkpoint, and nothing on the targets: " + f.names(),
			fmt.Sprintf("checkpoint %s (step %d) of the seed %q is restored", c.ID, c.Step, f.SeedName),
		},
	}, nil
}

// fresh starts with nothing, where nothing was lost and that is allowed.
func (f StartFacts) fresh() (Choice, error) {
	if f.Live.Exists { // damaged, and nothing to go back to
		return Choice{}, fmt.Errorf("%w: %s, and there is no checkpoint to go back to: move the live directory away to start with nothing: %w",
			ErrNoStart, f.liveIs(), f.Live.Damaged)
	}
	absent := "there is no live state and no local checkpoint"
	switch id := f.wants(); {
	case !f.AskTargets():
		absent += "; no target was asked, for start_from_checkpoint is left out"
	case id != uuid.Nil:
		absent += fmt.Sprintf(", and checkpoint %s is on none of the targets: %s", id, f.names())
	default:
		absent += ", and none of the targets holds a checkpoint: " + f.names()
	}
	switch {
	case f.SeedName == "" || !f.AskTargets():
	case f.AskSeed():
		absent += fmt.Sprintf(", nor does the seed %q hold what is wanted", f.SeedName)
	default:
		absent += fmt.Sprintf("; the seed %q was not asked, for there are checkpoints of our own", f.SeedName)
	}
	if f.FailIfAbsent {
		return Choice{}, fmt.Errorf("%w: %s, and fail_if_no_checkpoint is set%s", ErrNoStart, absent, f.wayOn())
	}
	return Choice{
		Kind: StartFreshly, NewLineage: true,
		Why: []string{absent, "an empty state is started; a target that holds another history is held until the operator adopts it"},
	}, nil
}

// wayOn is what to do where fail_if_no_checkpoint keeps a pipeline from starting.
func (f StartFacts) wayOn() string {
	if f.AskTargets() {
		return ": take it away to start with nothing"
	}
	return `: set start_from_checkpoint = "latest" to start from what the targets hold`
}

func (f StartFacts) names() string {
	names := make([]string, 0, len(f.Targets))
	for _, t := range f.Targets {
		name := t.Name
		if t.Excluded {
			name += " (excluded)"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "there are none"
	}
	return strings.Join(names, ", ")
}
