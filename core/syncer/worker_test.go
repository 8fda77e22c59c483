package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk"
)

func TestSuccessMovesByRequestsAndPeriodicByTheInterval(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	ids := map[Trigger]uuid.UUID{}
	for i, trigger := range []Trigger{Shutdown, Periodic, Requested, Shutdown} {
		id := b.publish(uint64(i+1), map[string]string{"f": string(trigger)})
		b.mustPush(w, id, trigger)
		ids[trigger] = id
		s := w.Status()
		if s.Success != ids[Requested] || s.Periodic != ids[Periodic] || s.Committed.Checkpoint != id || s.Committed.Step != uint64(i+1) {
			t.Errorf("after %s: success %s, periodic %s, committed %+v", trigger, s.Success, s.Periodic, s.Committed)
		}
	}
}

func TestThePeriodicTimerCountsFromTheFirstStartUntilTheFirstPeriodicCommit(t *testing.T) {
	b := newBench(t)
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	clock := func(c *Config) { c.Now = func() time.Time { return now } }
	b.worker(clock)
	started := now
	now = now.Add(time.Hour)
	w := b.restart(clock)
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Requested)
	if got := w.Status().PeriodicAt; !got.Equal(started) {
		t.Errorf("periodic at %s, want the first start %s", got, started)
	}
	b.mustPush(w, b.publish(2, map[string]string{"f": "2"}), Periodic)
	if got := w.Status().PeriodicAt; !got.Equal(now) {
		t.Errorf("periodic at %s, want %s", got, now)
	}
}

func TestStatusSurvivesARestart(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	b.mustPush(w, b.publish(2, map[string]string{"f": "2"}), Requested)
	b.failOn("put", "pack/", 1, sdk.NoSpace, false)
	if err := b.push(w, b.publish(3, map[string]string{"f": "3"}), Periodic); err == nil {
		t.Fatal("a full store took a push")
	}
	before := w.Status()
	after := b.restart().Status()
	before.Epoch, before.Head = 0, 0 // of the session that ended
	want, _ := json.Marshal(before)
	got, _ := json.Marshal(after)
	if string(got) != string(want) {
		t.Errorf("status\n%s\nwant\n%s", got, want)
	}
	if len(after.Jobs) != 3 || after.Failures != 1 || after.FailedAt.IsZero() || after.PeriodicFailure == nil {
		t.Errorf("status %+v", after)
	}
}

// A state file is a memory, not an authority.
func TestADamagedStateFileIsReportedSetAsideAndRebuilt(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"not JSON":              func([]byte) []byte { return []byte("{") },
		"empty":                 func([]byte) []byte { return nil },
		"JSON with another id":  func(d []byte) []byte { return []byte(strings.Replace(string(d), `"number":2`, `"number":7`, 1)) },
		"of an unknown version": func(d []byte) []byte { return []byte(strings.Replace(string(d), `"format":1`, `"format":9`, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := b.publish(1, map[string]string{"f": "1"})
			b.mustPush(b.worker(), id, Periodic)
			file := b.dir.SyncFile("offsite")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			w := b.restart()
			if s := w.Status(); s.Trouble == "" || s.Committed != nil || s.Periodic != uuid.Nil {
				t.Fatalf("status %+v", s)
			}
			if _, err := os.Stat(file + ".damaged"); err != nil {
				t.Error(err)
			}
			b.failOn("put", "epoch/", 1, sdk.Unavailable, false)
			if err := b.push(w, b.publish(2, map[string]string{"f": "2"}), Periodic); err == nil {
				t.Fatal("the claim was not answered, and yet there is success")
			}
			if s := w.Status(); s.Committed == nil || s.Committed.Checkpoint != id || s.Committed.Number != 2 {
				t.Errorf("not rebuilt from the look: %+v", s.Committed)
			}
			b.heal()
			b.mustPush(w, b.publish(3, map[string]string{"f": "3"}), Periodic)
			if s := w.Status(); s.Trouble != "" || s.Committed.Number != 4 {
				t.Errorf("status %+v", s)
			}
		})
	}
}

func TestAStateFileThatCannotBeReadStopsTheStart(t *testing.T) {
	b := newBench(t)
	b.worker()
	file := b.dir.SyncFile("offsite")
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Target: "offsite", Prefix: "strikes", Store: Direct(b.store), StateFile: file, Now: time.Now, Local: b.dir.Checkpoints(), Spool: b.spool}
	if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), "read sync state") {
		t.Errorf("error %v", err)
	}
}

func TestWhatIsRememberedOfAnotherRepositoryDoesNotCount(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "1"}), Periodic)
	w := b.restart(func(c *Config) { c.Prefix = "elsewhere" })
	if s := w.Status(); s.Committed != nil || s.Periodic != uuid.Nil || len(s.Jobs) != 0 || s.Trouble != "" {
		t.Errorf("status %+v", s)
	}
}

func TestAJobThatTheHostDidNotSurviveIsShownAsInterrupted(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	var saved []byte
	b.store.Before = func(_ ctxt, c callt) error {
		if saved == nil {
			var err error
			saved, err = os.ReadFile(b.dir.SyncFile("offsite")) // what a kill -9 at this moment leaves behind
			return err
		}
		return nil
	}
	b.mustPush(b.worker(), id, Periodic)
	if err := os.WriteFile(b.dir.SyncFile("offsite"), saved, 0o600); err != nil {
		t.Fatal(err)
	}
	s := b.restart().Status()
	if len(s.Jobs) != 1 || s.Jobs[0].State != JobCancelled || !strings.Contains(s.Jobs[0].Error, "host ended") || s.Jobs[0].Checkpoint != id {
		t.Errorf("jobs %+v", s.Jobs)
	}
	if s.Periodic != uuid.Nil || s.Committed != nil {
		t.Error("the status tells a success that was not saved")
	}
}

func TestAFullDiskUnderTheStateFileIsToldAndDoesNotFailThePush(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	w := b.worker()
	full := &fullMemory{memory: w.memory, full: true}
	w.memory = full
	b.mustPush(w, id, Periodic)
	if s := w.Status(); !strings.Contains(s.Trouble, "no space left") || s.Periodic != id {
		t.Errorf("status %+v", s)
	}
	full.full = false
	b.mustPush(w, b.publish(2, map[string]string{"f": "2"}), Periodic)
	if s := w.Status(); s.Trouble != "" {
		t.Errorf("trouble %q after it was saved", s.Trouble)
	}
}

type fullMemory struct {
	memory
	full bool
}

func (m *fullMemory) save(data []byte) error {
	if m.full {
		return errors.New("no space left on device")
	}
	return m.memory.save(data)
}

func TestJobRecordsAreBounded(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	id := b.publish(1, map[string]string{"f": "1"})
	for range keptJobs + 10 {
		b.mustPush(w, id, Requested)
	}
	jobs := w.Status().Jobs
	if len(jobs) != keptJobs || jobs[len(jobs)-1].ID != keptJobs+10 || jobs[0].ID != 11 {
		t.Errorf("%d jobs from %d to %d", len(jobs), jobs[0].ID, jobs[len(jobs)-1].ID)
	}
}

func TestARequestThatStartsClearsItsOwnOldFailure(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	id := b.publish(1, map[string]string{"f": "1"})
	b.failOn("put", "pack/", 1, sdk.NoSpace, false)
	if err := b.push(w, id, Requested); err == nil || w.Status().Failure == nil || w.Status().Failures != 0 {
		t.Fatalf("error %v, status %+v", err, w.Status())
	}
	var during *Failure
	b.store.Before = func(ctxt, callt) error {
		during = w.Status().Failure
		return nil
	}
	b.mustPush(w, id, Requested)
	if during != nil || w.Status().Failure != nil {
		t.Errorf("failure while it runs %+v, afterwards %+v", during, w.Status().Failure)
	}
}

func TestAJobWaitsForItsTurnAndGivesUpWithItsContext(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	first, second := b.publish(1, map[string]string{"f": "1"}), b.publish(2, map[string]string{"f": "2"})
	entered, leave := make(chan struct{}), make(chan struct{})
	b.store.Before = func(_ ctxt, c callt) error {
		if c.N == 1 {
			close(entered)
			<-leave
		}
		return nil
	}
	done := make(chan error, 2)
	go func() { done <- w.Push(t.Context(), Job{Checkpoint: first, Trigger: Periodic}) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Push(ctx, Job{Checkpoint: second, Trigger: Requested}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	go func() { done <- w.Push(t.Context(), Job{Checkpoint: second, Trigger: Requested}) }()
	close(leave)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if b.newest().Checkpoint.ID != second {
		t.Error("the second job did not run after the first")
	}
}

func TestAPanicInAJobIsThatJobsError(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	id := b.publish(1, map[string]string{"f": "1"})
	for _, part := range []string{"epoch/", "pack/", "commit/00000000000000000002"} {
		b.store.Before = func(_ ctxt, c callt) error {
			if c.Op == "put" && strings.Contains(c.Key, part) {
				panic("boom at " + part)
			}
			return nil
		}
		if err := b.push(w, id, Periodic); err == nil || !strings.Contains(err.Error(), "panic: boom at "+part) {
			t.Errorf("error %v", err)
		}
	}
	b.heal()
	b.mustPush(w, id, Periodic)
	if calls, _ := w.cfg.Slots.InFlight(); calls != 0 {
		t.Errorf("%d calls are in flight for ever", calls)
	}
}

func TestAHintOfTheStoreReachesStatus(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.store.Before = func(ctxt, callt) error {
		return &sdk.Error{Code: sdk.Unauthenticated, Hint: "renew the key in target.config"}
	}
	if err := b.push(w, b.publish(1, map[string]string{"f": "1"}), Periodic); err == nil {
		t.Fatal("no error")
	}
	if s := w.Status(); !strings.Contains(s.PeriodicFailure.Error, "renew the key") || !strings.Contains(s.PeriodicFailure.Error, `target "offsite"`) {
		t.Errorf("failure %q", s.PeriodicFailure.Error)
	}
}
