package repository

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// MaxRetention is the longest min_age: ten years, as for every other interval of the configuration.
const MaxRetention = 10 * 365 * 24 * time.Hour

// Retention says how long commits are kept. The newest checkpoint commit, the newest that is not known to be broken, the newest that was verified and
// those that are pinned are kept whatever it says; its own two rules only ever add to them.
type Retention struct {
	MinCount int           // the newest so many checkpoint commits are kept; 0 = this rule keeps none
	MinAge   time.Duration // checkpoint commits made less than this ago are kept; 0 = this rule keeps none
	// MaxDelete is a guard, not a pace: a plan that would retire more checkpoint commits than this at once is refused whole, with a
	// *MaxDeleteError. 0 = no guard.
	MaxDelete int
}

// Check refuses what no retention can mean.
func (r Retention) Check() error {
	switch {
	case r.MinCount < 0:
		return fmt.Errorf("min_count = %d: it cannot be negative", r.MinCount)
	case r.MinAge < 0:
		return fmt.Errorf("min_age = %s: it cannot be negative", short(r.MinAge))
	case r.MinAge > MaxRetention:
		return fmt.Errorf("min_age = %s: at most ten years (%s)", short(r.MinAge), short(MaxRetention))
	case r.MaxDelete < 0:
		return fmt.Errorf("max_delete = %d: it cannot be negative", r.MaxDelete)
	}
	return nil
}

// CommitFacts is what retention asks of a commit that exists.
type CommitFacts struct {
	Number     uint64
	Kind       Kind
	Epoch      uint64
	Created    time.Time // by the clock of the host that made it
	Checkpoint uuid.UUID // Nil in a seal
	Step       uint64    // 0 in a seal
}

// FactsOf takes from a commit what retention asks of it.
func FactsOf(c *Commit) CommitFacts {
	return CommitFacts{
		Number: c.Number, Kind: c.Kind, Epoch: c.Epoch, Created: c.Created, Checkpoint: c.Checkpoint.ID, Step: c.Checkpoint.Step,
	}
}

// RetentionFacts is the repository as it was read: the gc object first, then the commits and the pins.
type RetentionFacts struct {
	GC       GC            // the highest; the zero GC hides nothing
	Commits  []CommitFacts // every commit that exists, hidden ones among them, ascending by number
	Pins     []Pin
	Verified uint64   // number of the newest commit that was proven to restore; 0 = none
	Broken   []uint64 // commits that are known not to restore, in any order
	Now      time.Time
}

// ErrKeepsNothing is in the chain of the error for a plan after which no checkpoint could be restored. Nothing may be deleted.
var ErrKeepsNothing = errors.New("retention would keep no checkpoint")

// MaxDeleteError is the guard of Retention.MaxDelete: nothing was retired.
type MaxDeleteError struct {
	Retire int // checkpoint commits that the plan would retire
	Keep   int // and keep
	Limit  int
}

func (e *MaxDeleteError) Error() string {
	return fmt.Sprintf("retention would retire %d checkpoint commits at once and keep %d, and max_delete = %d: nothing was retired", e.Retire, e.Keep, e.Limit)
}

// Verdict is what a plan says of one commit, and why.
type Verdict struct {
	CommitFacts

	Keep   bool
	Hidden bool   // it was retired before, and only its object is still there
	Why    string // a reason or, of a commit that several rules keep, each of them
}

// RetentionPlan is what becomes of each commit.
type RetentionPlan struct {
	Verdicts []Verdict // one for each commit that exists, ascending by number
	Keep     int       // checkpoint commits kept
	Retire   int       // checkpoint commits that readers see now and will not see afterwards

	// UpTo and Kept are those of the gc object to create. They hide nothing more than the one that holds when Retire is 0: then none is needed.
	UpTo uint64
	Kept []uint64

	GivenUp []uint64 // see GiveUp: a gc object is needed although Retire may be 0

	// Dangling are the pins whose commit is not there: it went before the pin came, or is not there yet. They keep nothing.
	Dangling []Pin
}

// Gone are the numbers of the commits whose objects may be deleted once the gc object exists, oldest first.
func (p *RetentionPlan) Gone() []uint64 {
	var gone []uint64
	for _, v := range p.Verdicts {
		if !v.Keep {
			gone = append(gone, v.Number)
		}
	}
	return gone
}

// NeedsGC says whether the plan is anything before a gc object of it exists.
func (p *RetentionPlan) NeedsGC() bool { return p.Retire > 0 || len(p.GivenUp) > 0 }

// GiveUp takes the commits that are missing, ascending, for gone: the gc object to create hides their numbers, so that nobody misses them any more.
// What it kept before stays kept. A number above the newest checkpoint is not given up, for nothing may be hidden there.
func (p *RetentionPlan) GiveUp(missing []uint64) {
	newest := uint64(0)
	for _, v := range p.Verdicts {
		if v.Keep && v.Kind == KindCheckpoint {
			newest = v.Number
		}
	}
	for _, n := range missing {
		if n < newest {
			p.GivenUp, p.UpTo = append(p.GivenUp, n), max(p.UpTo, n)
		}
	}
	p.Kept = nil
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if v.Kind == KindSeal && v.Keep && v.Number < p.UpTo {
			v.Keep, v.Why = false, sealBelow(p.UpTo)
		}
		if v.Keep && v.Number <= p.UpTo {
			p.Kept = append(p.Kept, v.Number)
		}
	}
}

// short is a duration without the parts that are zero.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(text) - len(zero); n > 0 && text[n:] == zero {
			text = text[:n+1]
		}
	}
	return text
}
