package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publishPulled publishes the checkpoint of pulledID, whose one file is then damaged.
func publishPulled(t *testing.T, s *Store) {
	t.Helper()
	d, err := s.BeginAs(pulledID())
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.Dir(), map[string]string{"state.db": "new"})
	if _, err := d.Publish(t.Context(), metaAt(2)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.dir(published, pulledID()), filesName), map[string]string{"state.db": "rotten"})
}

// holds demands what the checkpoint of pulledID holds, and answers with all that lies in the folder beside it.
func holds(t *testing.T, s *Store, want string) []string {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(s.dir(published, pulledID()), filesName, "state.db")); string(text) != want || err != nil {
		t.Errorf("the checkpoint holds %q (%v), want %q", text, err, want)
	}
	return slices.DeleteFunc(entries(t, s.root), func(name string) bool { return name == pulledID().String() })
}

func instead(t *testing.T, s *Store) (*Draft, error) {
	t.Helper()
	d, err := s.BeginInstead(pulledID())
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.Dir(), map[string]string{"state.db": "new"})
	holds(t, s, "rotten")
	_, err = d.Publish(t.Context(), metaAt(2))
	return d, err
}

func TestADamagedCheckpointGivesWayOnlyToAWholeOne(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	if _, err := s.BeginInstead(pulledID()); !errors.Is(err, ErrNone) {
		t.Errorf("in the place of none: %v", err)
	}
	publishPulled(t, s)
	pin, err := s.Pin(pulledID())
	if err != nil {
		t.Fatal(err)
	}
	d, err := instead(t, s)
	if err == nil {
		t.Error("it was replaced while it was read")
	}
	pin.Release()
	holds(t, s, "rotten")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := instead(t, s); err != nil {
		t.Fatal(err)
	}
	if beside, want := holds(t, s, "new"), "damaged-"+pulledID().String(); !slices.Equal(beside, []string{want}) {
		t.Errorf("beside it lies %v, want %s", beside, want)
	}
	if wholeCheckpoints(t, s) != 2 {
		t.Error("it is not the newest")
	}
}

// Whatever step the disk refuses, either the damaged one is there or the new one, and the next attempt ends it.
func TestAReplacementThatTheDiskRefusesLeavesTheDamagedOne(t *testing.T) {
	for nth := 0; ; nth++ {
		d, r := openRecorded(t)
		s := d.Checkpoints()
		publishPulled(t, s)
		r.fail = failNth(nth)
		draft, err := instead(t, s)
		r.fail = nil
		if err == nil {
			holds(t, s, "new")
			if _, err := os.Lstat(s.dir(replaced, pulledID())); errors.Is(err, fs.ErrNotExist) && nth > 6 {
				return // past the last step
			}
			continue
		}
		if beside := holds(t, s, "rotten"); !slices.Equal(beside, []string{pulling + pulledID().String()}) {
			t.Errorf("after step %d failed %v lies beside it", nth, beside)
		}
		if err := draft.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := instead(t, s); err != nil {
			t.Errorf("after step %d failed: %v", nth, err)
		}
		holds(t, s, "new")
	}
}

// CASES A4
func TestAKilledReplacementLeavesTheOneOrTheOtherUnderTheName(t *testing.T) {
	for point, want := range map[string]string{
		"begun": "rotten", "publish.manifest-synced": "rotten", "publish.gave-way": "rotten", "publish.renamed": "new", "publish.synced": "new", "published": "new",
	} {
		path := filepath.Join(t.TempDir(), "storage")
		d := open(t, path)
		publishPulled(t, d.Checkpoints())
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		kill(t, path, "instead", point)
		s := open(t, path).Checkpoints()
		beside := strings.Join(holds(t, s, want), " ")
		if kept := strings.Contains(beside, "damaged-"); kept != (want == "new") || strings.Contains(beside, replaced) {
			t.Errorf("after the kill at %s there is %q beside it", point, beside)
		}
		if want == "new" {
			continue
		}
		if _, err := instead(t, s); err != nil {
			t.Errorf("after the kill at %s: %v", point, err)
		}
		holds(t, s, "new")
	}
}
