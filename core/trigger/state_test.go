package trigger

import (
	"testing"
	"time"
)

// flushAfter is the state that Decide hands back for a pipeline that buffers n records.
func flushAfter(n int, before time.Time, paused bool) time.Time {
	_, s := decideQuiet(func(_ *Policy, s *State, f *Facts) {
		f.Buffered, f.Paused, s.FlushAt = n, paused, before
	})
	return s.FlushAt
}

func TestTheFlushDelayStartsWithTheFirstRecord(t *testing.T) {
	if got := flushAfter(1, time.Time{}, false); !got.Equal(in(2 * time.Second)) {
		t.Errorf("FlushAt is %v", got)
	}
}

func TestMoreInputDoesNotProlongTheFlushDelay(t *testing.T) {
	if got := flushAfter(50, in(time.Second), false); !got.Equal(in(time.Second)) {
		t.Errorf("FlushAt is %v", got)
	}
}

func TestTheFlushDelayEndsWithTheLastRecord(t *testing.T) {
	if got := flushAfter(0, in(time.Second), false); !got.IsZero() {
		t.Errorf("FlushAt is %v", got)
	}
}

func TestAStepStartsTheFlushDelayAnew(t *testing.T) {
	if got := flushAfter(1, ago(time.Second), false); !got.IsZero() {
		t.Errorf("FlushAt is %v after the step", got)
	}
}

func TestAPauseDoesNotStopTheFlushDelay(t *testing.T) {
	kept := flushAfter(1, ago(time.Second), true)
	if !kept.Equal(ago(time.Second)) {
		t.Fatalf("FlushAt is %v while paused", kept)
	}
	got, _ := decideQuiet(func(_ *Policy, s *State, f *Facts) { f.Buffered, s.FlushAt = 1, kept })
	if got != stepped(WhyFlushDue) {
		t.Errorf("after the pause: %+v", got)
	}
}

func TestASaveDoesNotLoseTheFlushDelay(t *testing.T) {
	got, s := decideQuiet(func(_ *Policy, _ *State, f *Facts) {
		f.Buffered, f.CheckpointAsked, f.Step, f.CheckpointCover = 1, true, 6, 6
	})
	if got.Kind != TakeCheckpoint || !s.FlushAt.Equal(in(2*time.Second)) {
		t.Errorf("%+v, FlushAt is %v", got, s.FlushAt)
	}
}
