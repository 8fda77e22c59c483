package repository

import "slices"

// StoredPack is a pack as a listing shows it.
type StoredPack struct {
	ID   PackID
	Size int64 // bytes
}

// SweepFacts is what a sweep goes by. The packs were listed before any commit was read: a pack that a commit came to name in between is
// then not among the unnamed, for its commit is read.
type SweepFacts struct {
	Packs []StoredPack
	Named map[PackID]struct{} // by the commits that exist, whether gc hides them or not
	Epoch uint64              // the sweeper's own
	Last  uint64              // number of the sweeper's last landed commit, known before the packs were listed
}

// SweepPlan says what becomes of the packs.
type SweepPlan struct {
	Packs, Bytes   int64        // that exist
	Condemned      []StoredPack // no commit names them and none ever can, ascending
	CondemnedBytes int64
	Spared         int64 // no commit names them yet: they may belong to a push that is under way
	SparedBytes    int64
}

// PlanSweep condemns the packs that no commit names and that no commit can come to name. Packs belong to one attempt, by their key: those of a
// lower epoch belong to writers that have lost it, those of our own epoch at or below our last landed commit to attempts that are decided. Any
// other may be on its way into a commit, for however long: no clock says otherwise.
func PlanSweep(f SweepFacts) SweepPlan {
	var plan SweepPlan
	for _, p := range f.Packs {
		plan.Packs++
		plan.Bytes += p.Size
		_, named := f.Named[p.ID]
		switch {
		case named:
		case p.ID.Epoch < f.Epoch, p.ID.Epoch == f.Epoch && p.ID.Number <= f.Last:
			plan.Condemned = append(plan.Condemned, p)
			plan.CondemnedBytes += p.Size
		default:
			plan.Spared++
			plan.SparedBytes += p.Size
		}
	}
	slices.SortFunc(plan.Condemned, func(a, b StoredPack) int { return a.ID.Compare(b.ID) })
	return plan
}
