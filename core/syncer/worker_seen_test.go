package syncer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk"
)

func TestWhatAStartHasSeenIsShownBeforeTheFirstPush(t *testing.T) {
	b := newBench(t)
	id := b.publish(7, map[string]string{"f": "1"})
	b.mustPush(b.worker(), id, Requested)
	w := b.worker(func(c *Config) { c.StateFile += ".elsewhere" })
	if got := w.Status().Committed; got != nil {
		t.Fatalf("another machine knows of %+v", got)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, earlier := range []time.Duration{0, time.Hour} { // an older memory takes no newer word back
		if err := w.Seen(t.Context(), 2, id, 7, at.Add(-earlier)); err != nil {
			t.Fatal(err)
		}
	}
	s := w.Status()
	if s.Committed == nil || !s.Committed.At.Equal(at) || s.Committed.Checkpoint != id || s.Committed.Step != 7 || s.Committed.Number != 2 {
		t.Errorf("got %+v", s.Committed)
	}
	if s.Success != uuid.Nil || s.Periodic != uuid.Nil || s.Epoch != 0 || len(s.Jobs) != 0 {
		t.Errorf("a push is claimed that was not made: %+v", s)
	}
	next := b.publish(8, map[string]string{"f": "2"})
	b.mustPush(w, next, Requested)
	if got := w.Status().Committed.Checkpoint; got != next {
		t.Errorf("committed %s, want %s", got, next)
	}
}

// slowMemory is a disk whose flush takes as long as the test wants.
type slowMemory struct{ saving, flushed chan struct{} }

func (m *slowMemory) load() ([]byte, error) { return stateFile("/nothing/here").load() }
func (m *slowMemory) setAside() error       { return nil }

func (m *slowMemory) save([]byte) error {
	m.saving <- struct{}{}
	<-m.flushed
	return nil
}

// The loop asks for status between two steps.
func TestStatusDoesNotWaitForTheDiskAndTellsNothingBeforeItIsSaved(t *testing.T) {
	b := newBench(t)
	m := &slowMemory{saving: make(chan struct{}), flushed: make(chan struct{})}
	flush := func() { <-m.saving; m.flushed <- struct{}{} }
	go flush()
	w, err := open(b.worker().cfg, localSource{b.worker().cfg.Local}, m)
	if err != nil {
		t.Fatal(err)
	}
	id := b.publish(1, map[string]string{"f": "1"})
	pushed := make(chan error, 1)
	go func() { pushed <- w.Push(context.Background(), Job{Checkpoint: id, Trigger: Requested}) }()
	flush() // of the beginning
	<-m.saving
	if s := w.Status(); s.Success != uuid.Nil || s.Committed != nil || s.Running == nil {
		t.Errorf("told before it was saved: %+v", s)
	}
	m.flushed <- struct{}{}
	if err := <-pushed; err != nil {
		t.Fatal(err)
	}
	if s := w.Status(); s.Success != id || s.Running != nil {
		t.Errorf("got %+v", s)
	}
}

func TestAReaderTellsWhyItsCallIsRepeated(t *testing.T) {
	note := newTally(time.Now, JobRecord{})
	r := &Reader{remote: remote{calls: &caller{note: note}}}
	if why, _ := r.Trouble(); why != "" {
		t.Errorf("before any call: %q", why)
	}
	next := time.Now().Add(time.Minute)
	note.waiting(&sdk.Error{Code: sdk.Unavailable, Hint: "mount it", Err: errors.New("no disk")}, next)
	if why, at := r.Trouble(); why != "store unavailable: no disk: mount it" || !at.Equal(next) {
		t.Errorf("got %q at %s", why, at)
	}
	note.called(2, nil)
	if why, _ := r.Trouble(); why != "" {
		t.Errorf("after it went well: %q", why)
	}
}
