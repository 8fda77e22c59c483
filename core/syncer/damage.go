package syncer

import (
	"maps"
	"slices"
	"time"

	"github.com/cairnsync/cairn/core/repository"
)

// Damage is what is known to be broken in a repository: a verification has found it, or retention when it looked for packs, and none that looked as deep has found it whole since.
// A nil one is none. It is a value: nobody changes it.
type Damage struct {
	At       time.Time   `json:"at"`                 // end of the last verification that found some of it
	Level    VerifyLevel `json:"level"`              // of the deepest that found some of it
	Fraction float64     `json:"fraction,omitempty"` // VerifySample

	// Commits cannot be restored whole: ascending, the newest thousand. Empty = what is damaged breaks none. Commits that came after the
	// verification may need what is damaged too.
	Commits []uint64 `json:"commits,omitempty"`

	// Packs are what commits cannot be restored for: missing or damaged, ascending, at most a thousand. No push reuses one.
	Packs []repository.PackID `json:"packs,omitempty"`
	More  bool                `json:"more_packs,omitempty"` // there were more: none that the broken commits may name is trusted
}

// after is what is known when a verification has ended. One that was asked for a commit alone says nothing of others.
func (d *Damage) after(rep VerifyReport, alone bool) *Damage {
	return d.still(rep, alone).and(damageIn(rep, alone))
}

// damageIn is what a verification has found.
func damageIn(rep VerifyReport, alone bool) *Damage {
	if len(rep.Problems) == 0 || alone && len(rep.Broken) == 0 {
		return nil
	}
	d := &Damage{At: rep.Finished.UTC(), Level: rep.Level, Fraction: rep.Fraction, Commits: united(rep.Broken, nil)}
	return d.withPacks(slices.Collect(maps.Keys(rep.bad)))
}

// still is what a verification takes no word back of: it takes back what it was deep enough to find again, and what retention has let go.
// What breaks no commit is found at each level.
func (d *Damage) still(rep VerifyReport, alone bool) *Damage {
	switch {
	case d == nil || len(d.Commits) == 0 && !alone:
		return nil
	case len(d.Commits) == 0:
		return d
	}
	seen := func(n uint64) bool { return !alone || rep.Newest != nil && rep.Newest.Number == n }
	left := *d
	left.Commits = slices.DeleteFunc(slices.Clone(d.Commits), func(n uint64) bool {
		return !rep.gc.Visible(n) || seen(n) && d.shownBy(rep.Level, rep.Fraction)
	})
	if len(left.Commits) == 0 {
		return nil
	}
	return &left
}

// shownBy says that a verification would find it again. A sample reads another part each time.
func (d *Damage) shownBy(level VerifyLevel, fraction float64) bool {
	return d.Level == VerifyMetadata || level == VerifyDeep || level == VerifySample && fraction == 1
}

// and adds what was found later.
func (d *Damage) and(later *Damage) *Damage {
	switch {
	case d == nil:
		return later
	case later == nil:
		return d
	}
	both := *later
	both.Commits = united(d.Commits, later.Commits)
	both.More = d.More || later.More
	both = *both.withPacks(d.Packs)
	if !d.shownBy(later.Level, later.Fraction) {
		both.Level, both.Fraction = d.Level, d.Fraction
	}
	return &both
}

// beyond is what is known of a report's commits and is not found by it.
func (d *Damage) beyond(rep VerifyReport, alone bool) *Damage {
	if d == nil {
		return nil
	}
	more := *d
	more.Commits = slices.DeleteFunc(slices.Clone(d.Commits), func(n uint64) bool {
		return slices.Contains(rep.Broken, n) || alone && (rep.Newest == nil || rep.Newest.Number != n)
	})
	if len(more.Commits) == 0 {
		return nil
	}
	return &more
}

// known gives the report with what is known beyond it.
func (d *Damage) known(rep VerifyReport, alone bool) VerifyReport {
	if rep.Known = d.beyond(rep, alone); rep.Known != nil {
		rep.Proof = nil
	}
	return rep
}

// inContent says that chunks had to be read to find some of it.
func (d *Damage) inContent() bool { return d != nil && len(d.Commits) > 0 && d.Level != VerifyMetadata }

// below is what is known of the commits under a number: those from it on are lost, and the number is given anew.
func (d *Damage) below(number uint64) *Damage {
	if d == nil || len(d.Commits) == 0 || d.Commits[len(d.Commits)-1] < number {
		return d
	}
	left := *d
	left.Commits = slices.DeleteFunc(slices.Clone(d.Commits), func(n uint64) bool { return n >= number })
	if len(left.Commits) == 0 {
		return nil
	}
	return &left
}

func (d *Damage) breaks(commit uint64) bool { return d != nil && slices.Contains(d.Commits, commit) }

// spoils says of a pack that it is missing or damaged, or may be.
func (d *Damage) spoils(id repository.PackID) bool {
	if d == nil {
		return false
	}
	_, found := slices.BinarySearchFunc(d.Packs, id, repository.PackID.Compare)
	return found || d.More && len(d.Commits) > 0 && id.Number <= d.Commits[len(d.Commits)-1]
}

// withPacks gives the damage with these packs besides its own.
func (d *Damage) withPacks(more []repository.PackID) *Damage {
	both := *d
	both.Packs = slices.Concat(d.Packs, more)
	slices.SortFunc(both.Packs, repository.PackID.Compare)
	both.Packs = slices.Compact(both.Packs)
	if len(both.Packs) > maxProblems {
		both.Packs, both.More = both.Packs[:maxProblems], true
	}
	return &both
}

// united gives the numbers of both lists, ascending, the newest thousand.
func united(a, b []uint64) []uint64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	all = slices.Compact(all)
	return all[max(0, len(all)-maxProblems):]
}

// damaged takes over what is known to be broken: no proof speaks for a commit of it.
func (s *state) damaged(d *Damage) {
	s.Damage = d
	s.keepProofs(func(p Proof) bool { return !d.breaks(p.Commit) })
}

// proven takes over a proof. Older ones stay beside it as long as they went deeper than all after them.
func (s *state) proven(latest Proof) {
	s.keepProofs(func(p Proof) bool { return p.depth() > latest.depth() })
	if s.Proof != nil {
		s.Deeper = slices.Insert(s.Deeper, 0, *s.Proof)
	}
	s.Proof = &latest
}

// keepProofs lets go of the others. What is shown of the state shares the list, so it is made anew.
func (s *state) keepProofs(keep func(Proof) bool) {
	var kept []Proof
	if s.Proof != nil && keep(*s.Proof) {
		kept = append(kept, *s.Proof)
	}
	for _, p := range s.Deeper {
		if keep(p) {
			kept = append(kept, p)
		}
	}
	s.Proof, s.Deeper = nil, nil
	if len(kept) > 0 {
		s.Proof, s.Deeper = &kept[0], slices.Clip(kept[1:])
	}
}
