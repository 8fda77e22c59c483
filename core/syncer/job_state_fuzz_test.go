package syncer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"testing"
	"time"

	"github.com/google/uuid"
)

// heldState is a memory that holds what it is given.
type heldState struct {
	data  []byte
	aside bool
}

func (m *heldState) load() ([]byte, error) {
	if m.data == nil {
		return nil, fs.ErrNotExist
	}
	return m.data, nil
}

func (m *heldState) save(data []byte) error {
	m.data = bytes.Clone(data)
	return nil
}

func (m *heldState) setAside() error {
	m.aside = true
	return nil
}

// FuzzSyncState: whatever lies in the file of a sync block's state, a worker begins with a state that is its own repository's: the saved one, or an
// empty one beside words that say what was damaged. What is read is written as what is read again.
func FuzzSyncState(f *testing.F) {
	fresh := state{Target: "t", Prefix: "p", Pipeline: uuid.UUID{7}, FirstSeen: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	full := fresh
	full.Committed = &CommitRef{Number: 3, Checkpoint: uuid.UUID{1}, Step: 9, At: fresh.FirstSeen}
	full.Failure = &Failure{Checkpoint: uuid.UUID{2}, Error: "no", At: fresh.FirstSeen}
	full.Proof, full.Deeper, full.Adopted = &Proof{Commit: 3}, []Proof{{Level: VerifyDeep, Commit: 2}}, &adoption{Commit: 3}
	full.Damage = &Damage{At: fresh.FirstSeen, Level: VerifyDeep, Commits: []uint64{2}}
	full.begin(Job{Checkpoint: uuid.UUID{3}, Trigger: Requested}, fresh.FirstSeen)
	full.keep(JobRecord{ID: 1, State: JobRunning, Started: fresh.FirstSeen})
	for _, s := range []state{fresh, full, {}} {
		data, err := encodeState(&s)
		if err != nil {
			f.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
		f.Add(text, true)
	}
	f.Add([]byte(`{"format":1,"sha256":"","state":null}`), false)
	f.Add([]byte(`null`), true)
	f.Add([]byte(`{"target":"t","prefix":"p","jobs":[{"state":"running"},{}]}`), true)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed { // else the digest would keep nearly everything out
			if !json.Valid(data) {
				return
			}
			sum := sha256.Sum256(data)
			data = []byte(`{"format":1,"sha256":"` + hex.EncodeToString(sum[:]) + `","state":` + string(data) + `}`)
		}
		m := &heldState{data: data}
		s, damage, err := recall(m, fresh)
		if err != nil || s == nil {
			t.Fatalf("%q: %v", data, err)
		}
		if (damage != "") != m.aside {
			t.Errorf("damage %q, set aside: %t", damage, m.aside)
		}
		if s.Target != fresh.Target || s.Prefix != fresh.Prefix || s.Pipeline != fresh.Pipeline {
			t.Errorf("the state of another repository: %+v", s)
		}
		for _, rec := range s.Jobs {
			if rec.State == JobRunning {
				t.Errorf("job %d still runs after a restart", rec.ID)
			}
		}
		first, err := encodeState(s)
		if err != nil {
			t.Fatalf("%q is read and cannot be saved: %v", data, err)
		}
		back, err := decodeState(first)
		if err != nil {
			t.Fatalf("%q is saved and cannot be read: %v", first, err)
		}
		if second, err := encodeState(back); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%q is read back as %q, %v", first, second, err)
		}
	})
}
