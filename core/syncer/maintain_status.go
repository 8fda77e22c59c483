package syncer

import "time"

// Maintenance is the last run of retention and sweep, for status.
type Maintenance struct {
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	GC       uint64    `json:"gc,omitempty"` // the gc object that it created
	Kept     int       `json:"kept"`         // checkpoint commits
	Retired  int       `json:"retired"`      // checkpoint commits
	Deleted  int       `json:"deleted"`      // commit objects
	Swept    int64     `json:"swept"`        // packs
	Freed    int64     `json:"freed_bytes"`  // by sweeping them

	// What lies on the target, as the last sweep found it and left it; zero before the first.
	SweptAt     time.Time `json:"swept_at,omitzero"`
	Packs       int64     `json:"packs"`
	PackBytes   int64     `json:"pack_bytes"`
	Orphans     int64     `json:"orphans"` // packs that no commit names: left over by this run, or of a push that is under way
	OrphanBytes int64     `json:"orphan_bytes"`

	Dangling []string `json:"dangling_pins,omitempty"` // names of pins whose commit is not there
	Missing  []uint64 `json:"missing,omitempty"`       // commits that should be there and are not
	Error    string   `json:"error,omitempty"`         // why this run did not do all; nothing was deleted that it was not sure of
}

// maintained makes a run's outcome status. It is saved with the next job.
func (w *Worker) maintained(r MaintainReport, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := Maintenance{}
	if w.maintenance != nil {
		m = *w.maintenance
	}
	m.Started, m.Finished, m.GC, m.Kept, m.Retired, m.Deleted = r.Started, r.Finished, r.GC, r.Kept, r.Retired, r.Deleted
	m.Swept, m.Freed, m.Error, m.Missing, m.Dangling = 0, 0, "", r.Missing, nil
	for _, pin := range r.Dangling {
		m.Dangling = append(m.Dangling, pin.Name)
	}
	if s := r.Sweep; s != nil {
		m.SweptAt, m.Swept, m.Freed = r.Finished, s.Swept, s.SweptBytes
		m.Packs, m.PackBytes = s.Packs-s.Swept, s.Bytes-s.SweptBytes
		m.Orphans, m.OrphanBytes = s.Orphans-s.Swept+s.Undecided, s.OrphanBytes-s.SweptBytes+s.UndecidedBytes
	}
	if err != nil {
		m.Error = explained(err)
	}
	w.maintenance = &m
	w.logMaintenance(m, err)
}

func (w *Worker) logMaintenance(m Maintenance, err error) {
	keys := []any{
		"target", w.cfg.Target, "kept", m.Kept, "retired", m.Retired, "commits_deleted", m.Deleted, "packs_swept", m.Swept, "freed", m.Freed,
	}
	switch {
	case err != nil:
		w.cfg.Log.Warn("maintenance ended", append(keys, "error", m.Error)...)
	case m.Deleted > 0 || m.Swept > 0:
		w.cfg.Log.Info("commits retired and packs swept", keys...)
	}
}
