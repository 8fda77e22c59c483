package repository

import (
	"github.com/google/uuid"
)

// History is where a state comes from, as PostgreSQL's timelines say it: the lineages it went through, oldest first, each
// up to the step at which the next one left it. The last reign is the current one; how far it went is the step of the state, whatever its
// UpTo says.
type History []Reign

// Reign is one lineage of a history.
type Reign struct {
	Lineage uuid.UUID `json:"lineage"`
	UpTo    uint64    `json:"up_to"`
}

// Point is a state: a history and the step reached in its last reign.
type Point struct {
	History History
	Step    uint64
}

// Relation says how a state on a target relates to ours.
type Relation struct {
	OnHistory bool   // ours has passed through their state, or is it
	Fork      uint64 // the last step that both share; 0 when they share none
	Diverged  uint64 // steps of theirs that ours never passed through; 0 when OnHistory
}

// Relate answers whether theirs lies on our history. Without a lineage in common nothing is shared, not even step 0.
func Relate(ours, theirs Point) Relation {
	var fork uint64
	shared := false
	for i := range min(len(ours.History), len(theirs.History)) {
		if ours.History[i].Lineage != theirs.History[i].Lineage {
			break
		}
		shared = true
		oursTo, theirsTo := ours.upTo(i), theirs.upTo(i)
		fork = min(oursTo, theirsTo)
		if oursTo != theirsTo {
			break
		}
	}
	if shared && theirs.Step <= fork {
		return Relation{OnHistory: true, Fork: theirs.Step}
	}
	return Relation{Fork: fork, Diverged: theirs.Step - fork}
}

// upTo is how far reign i went.
func (p Point) upTo(i int) uint64 {
	if i == len(p.History)-1 {
		return p.Step
	}
	return min(p.History[i].UpTo, p.Step)
}

// Fork is the history of a state that continues from p under a new lineage. A later reign that contributed no step is left out, so a
// state restored again and again without progress does not grow its history.
func (p Point) Fork(lineage uuid.UUID) History {
	next := make(History, 0, len(p.History)+1)
	for i, r := range p.History {
		r.UpTo = p.upTo(i)
		if i == 0 || r.UpTo > next[len(next)-1].UpTo {
			next = append(next, r)
		}
	}
	return append(next, Reign{Lineage: lineage, UpTo: p.Step})
}
