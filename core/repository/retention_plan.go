package repository

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// PlanRetention says which commits are kept and which are gone: kept are the newest checkpoint, the newest that is not known to be broken, the newest
// verified one, the newest MinCount checkpoints, those younger than MinAge and those that a pin names. Order is by number, never by name or time, and age is the time from
// a commit's creation to Now: a clock that was set back or ahead moves ages, and nothing else.
//
// A seal holds no state. It goes with the checkpoints around it: when it lies below the newest that is gone.
//
// A plan that leaves no checkpoint is refused as ErrKeepsNothing. With a *MaxDeleteError the plan is returned as well, to be looked at.
func PlanRetention(policy Retention, facts RetentionFacts) (*RetentionPlan, error) {
	if err := policy.Check(); err != nil {
		return nil, fmt.Errorf("retention: %w", err)
	}
	if err := facts.check(); err != nil {
		return nil, err
	}
	p := &planner{policy: policy, facts: facts, newer: map[uint64]int{}, reasons: map[uint64][]string{}}
	p.keep()
	plan := p.judge()
	switch {
	case plan.Keep == 0 && p.checkpoints > 0:
		return nil, fmt.Errorf("%w: gc %d hides each of the %d that exist", ErrKeepsNothing, facts.GC.Number, p.checkpoints)
	case plan.Keep == 0 && facts.GC.Number > 0:
		return nil, fmt.Errorf("%w: none is there, yet gc %d has retired some", ErrKeepsNothing, facts.GC.Number)
	case policy.MaxDelete > 0 && plan.Retire > policy.MaxDelete:
		return plan, &MaxDeleteError{Retire: plan.Retire, Keep: plan.Keep, Limit: policy.MaxDelete}
	}
	return plan, nil
}

// check refuses a listing that cannot be one.
func (f RetentionFacts) check() error {
	for i, c := range f.Commits {
		if i > 0 && c.Number <= f.Commits[i-1].Number {
			return corrupt("commits", "commit %d is listed after commit %d", c.Number, f.Commits[i-1].Number)
		}
	}
	return nil
}

// MissingCommits are the numbers that a listing of commits, ascending, must hold by what gc says and does not: those that gc kept and, above its
// boundary, where nothing was ever retired, the gaps. They were lost, or the listing is not whole: nothing may be deleted by it before
// each is proven to be absent.
func MissingCommits(gc GC, listed []uint64) []uint64 {
	var missing []uint64
	for _, n := range gc.Kept {
		if _, found := slices.BinarySearch(listed, n); !found {
			missing = append(missing, n)
		}
	}
	next := gc.UpTo + 1
	for _, n := range listed {
		if n <= gc.UpTo {
			continue
		}
		for ; next < n; next++ {
			missing = append(missing, next)
		}
		next = n + 1
	}
	return missing
}

// planner collects, for each commit, why it is kept.
type planner struct {
	policy      Retention
	facts       RetentionFacts
	checkpoints int            // that exist, hidden ones among them
	visible     []*CommitFacts // checkpoint commits that gc does not hide, newest first
	newer       map[uint64]int // how many of those are newer than the commit of that number
	reasons     map[uint64][]string
	dangling    []Pin
}

func (p *planner) because(n uint64, format string, args ...any) {
	p.reasons[n] = append(p.reasons[n], fmt.Sprintf(format, args...))
}

func (p *planner) keep() {
	for i := len(p.facts.Commits) - 1; i >= 0; i-- {
		c := &p.facts.Commits[i]
		if c.Kind != KindCheckpoint {
			continue
		}
		p.checkpoints++
		if p.facts.GC.Visible(c.Number) {
			p.newer[c.Number] = len(p.visible)
			p.visible = append(p.visible, c)
		}
	}
	whole := slices.IndexFunc(p.visible, func(c *CommitFacts) bool { return !slices.Contains(p.facts.Broken, c.Number) })
	for i, c := range p.visible {
		if i == 0 {
			p.because(c.Number, "newest checkpoint")
		}
		if i == whole && i > 0 {
			p.because(c.Number, "newest that is not known to be broken")
		}
		if c.Number == p.facts.Verified {
			p.because(c.Number, "newest verified")
		}
		if i < p.policy.MinCount {
			p.because(c.Number, "one of the newest %d", p.policy.MinCount)
		}
		p.keepYoung(c)
	}
	for _, pin := range p.facts.Pins {
		p.keepPinned(pin)
	}
}

// keepYoung keeps what is younger than MinAge. A commit from the future is as young as can be.
func (p *planner) keepYoung(c *CommitFacts) {
	age := p.age(c)
	switch {
	case p.policy.MinAge == 0:
	case age < 0:
		p.because(c.Number, "younger than %s: made %s from now by the clock of its host", short(p.policy.MinAge), short(-age))
	case age < p.policy.MinAge:
		p.because(c.Number, "younger than %s: made %s ago", short(p.policy.MinAge), short(age))
	}
}

// keepPinned keeps the commit of the number that the pin names and, of the checkpoint that it names, the newest commit.
func (p *planner) keepPinned(pin Pin) {
	found := false
	byCheckpoint := pin.Checkpoint == uuid.Nil // nothing to look for
	for _, c := range p.visible {
		match := c.Number == pin.Commit
		if !byCheckpoint && c.Checkpoint == pin.Checkpoint {
			match, byCheckpoint = true, true
		}
		if match {
			p.because(c.Number, "pinned as %q", pin.Name)
			found = true
		}
	}
	if !found {
		p.dangling = append(p.dangling, pin)
	}
}

func (p *planner) age(c *CommitFacts) time.Duration { return p.facts.Now.Sub(c.Created) }

// judge turns the reasons into verdicts and the boundary.
func (p *planner) judge() *RetentionPlan {
	plan := &RetentionPlan{UpTo: p.facts.GC.UpTo, Keep: len(p.reasons), Dangling: p.dangling}
	for _, c := range p.visible {
		if len(p.reasons[c.Number]) == 0 {
			plan.Retire++
			plan.UpTo = max(plan.UpTo, c.Number)
		}
	}
	for _, c := range p.facts.Commits {
		v := p.verdict(c, plan.UpTo)
		if v.Keep && c.Number <= plan.UpTo {
			plan.Kept = append(plan.Kept, c.Number)
		}
		plan.Verdicts = append(plan.Verdicts, v)
	}
	return plan
}

func (p *planner) verdict(c CommitFacts, upTo uint64) Verdict {
	v := Verdict{CommitFacts: c}
	reasons := p.reasons[c.Number]
	switch {
	case !p.facts.GC.Visible(c.Number):
		v.Hidden, v.Why = true, fmt.Sprintf("retired by gc %d, its object is still there", p.facts.GC.Number)
	case c.Kind == KindSeal && c.Number > upTo:
		v.Keep, v.Why = true, "seal above every commit that is gone"
	case c.Kind == KindSeal:
		v.Why = sealBelow(upTo)
	case len(reasons) > 0:
		v.Keep, v.Why = true, strings.Join(reasons, "; ")
	default:
		v.Why = p.whyGone(&c)
	}
	return v
}

func sealBelow(gone uint64) string {
	return fmt.Sprintf("seal below commit %d, which is gone: it holds no state", gone)
}

// whyGone names each rule that does not keep the commit.
func (p *planner) whyGone(c *CommitFacts) string {
	why := []string{fmt.Sprintf("checkpoints that are newer: %d, min_count is %d", p.newer[c.Number], p.policy.MinCount)}
	if p.policy.MinAge > 0 {
		why = append(why, fmt.Sprintf("made %s ago, min_age is %s", short(p.age(c)), short(p.policy.MinAge)))
	}
	return strings.Join(append(why, "no pin names it"), "; ")
}
