package checkpoint

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// CASES A46
func TestIDsRiseWhateverTheClockSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := uuid.Nil
		if rapid.Bool().Draw(t, "begin beside another id") {
			last = compose(rapid.Uint64Range(0, maxMillis-1).Draw(t, "ms"), rapid.Uint64Range(0, maxHigh).Draw(t, "high"),
				rapid.OneOf(rapid.Uint64Range(0, maxCounter), rapid.Just[uint64](maxCounter)).Draw(t, "low"))
		}
		for range 20 {
			now := time.UnixMilli(rapid.OneOf(rapid.Int64(), rapid.Int64Range(1e12, 1e12+3)).Draw(t, "now"))
			id, err := mint(last, now, [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "random")))
			if err != nil {
				if millisOf(last) != maxMillis {
					t.Fatalf("after %s: %v", last, err)
				}
				return
			}
			if compareIDs(last, id) >= 0 {
				t.Fatalf("%s does not come after %s", id, last)
			}
			if err := checkID(id); err != nil {
				t.Fatal(err)
			}
			last = id
		}
	})
}

func TestAnIDBearsTheTimeOfTheClockWhenTheClockRuns(t *testing.T) {
	id, err := mint(uuid.Nil, noon(), [16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	if got := millisOf(id); got != uint64(noon().UnixMilli()) {
		t.Errorf("time %d, want %d", got, noon().UnixMilli())
	}
}

func TestAtTheEndOfTimeMintingFailsInsteadOfWrapping(t *testing.T) {
	last := compose(maxMillis, maxHigh, maxCounter)
	if id, err := mint(last, noon(), [16]byte{}); err == nil {
		t.Errorf("minted %s after %s", id, last)
	}
}

// CASES A46
func TestIDsRiseOverARestartWithTheClockSetBack(t *testing.T) {
	path := t.TempDir()
	d, err := OpenDir(path, Options{Now: func() time.Time { return noon().AddDate(10, 0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	first := publish(t, d.Checkpoints(), 1, nil)
	d.Close()
	if second := publish(t, open(t, path).Checkpoints(), 2, nil); compareIDs(first.ID, second.ID) >= 0 {
		t.Errorf("%s does not come after %s", second.ID, first.ID)
	}
}

func TestIDsRiseAboveACollectedOne(t *testing.T) {
	path := t.TempDir()
	d, err := OpenDir(path, Options{Now: func() time.Time { return noon().AddDate(10, 0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	s := d.Checkpoints()
	publish(t, s, 100, nil)
	// The pipeline went back to an older checkpoint: the greatest id is not of the newest step.
	greatest := publish(t, s, 60, nil)
	if _, err := s.Collect(1); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if next := publish(t, open(t, path).Checkpoints(), 101, nil); compareIDs(greatest.ID, next.ID) >= 0 {
		t.Errorf("%s does not come after the collected %s", next.ID, greatest.ID)
	}
}

func TestIDsRiseAboveAnObservedOne(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	seen := compose(uint64(noon().AddDate(1, 0, 0).UnixMilli()), 5, 5)
	if err := s.Observe(seen); err != nil {
		t.Fatal(err)
	}
	if m := publish(t, s, 1, nil); compareIDs(seen, m.ID) >= 0 {
		t.Errorf("%s does not come after the observed %s", m.ID, seen)
	}
	if err := s.Observe(uuid.New()); err == nil {
		t.Error("an id of version 4 was accepted")
	}
}

func TestOnlyOurNamesAreCheckpoints(t *testing.T) {
	const id = "019b7e5a-0000-7000-8000-000000000001"
	for name, want := range map[string]string{
		id: published, ".tmp-" + id: writing, ".pull-" + id: pulling, ".old-" + id: removing,
		"lost+found": "no", "019B7E5A-0000-7000-8000-000000000001": "no", "{" + id + "}": "no", "019b7e5a000070008000000000000001": "no",
		id + ".bak": "no", "": "no", ".tmp-": "no", ".last-id": "no", "019b7e5a-0000-4000-8000-000000000001": "no",
	} {
		got, _, ok := parseName(name)
		if !ok {
			got = "no"
		}
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
