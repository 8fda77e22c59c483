//go:build torture || cloud

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

// ledger is the independent observer of a repository that is fought over. It reads the objects as files, behind the backs of hosts, plugins
// and servers, keeps every commit that ever was, and holds against them whatever a host says of itself.
type ledger struct {
	dir string // the target as a folder

	mu      sync.Mutex
	commits map[uint64]noted     // every commit that was ever seen
	numbers map[uuid.UUID]uint64 // by checkpoint, the last commit that holds it
	head    uint64
	gc      repository.GC        // the highest
	rule    repository.Retention // of every host; the zero value = none but that the newest checkpoint stays
	pinned  []uint64             // commits that a host has promised to keep
	gone    int                  // checkpoints that retention was seen to take
	claimed map[uuid.UUID]bool
	blind   int // claims that only a commit which came and was retired between two looks can account for
	faults  []string
}

// noted is a commit as it was first seen.
type noted struct {
	*repository.Commit

	sum repository.Digest // of its stored bytes
}

func newLedger(dir string) *ledger {
	return &ledger{dir: dir, commits: map[uint64]noted{}, numbers: map[uuid.UUID]uint64{}, claimed: map[uuid.UUID]bool{}}
}

// fault notes what is wrong, once.
func (l *ledger) fault(format string, args ...any) {
	if text := "ledger: " + fmt.Sprintf(format, args...); !slices.Contains(l.faults, text) {
		l.faults = append(l.faults, text)
	}
}

// look reads what is new, and sees whether what was there is there still, or was retired.
func (l *ledger) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookLocked()
}

func (l *ledger) lookLocked() {
	head := l.head
	present := l.enterNew()
	before := l.gc
	l.readGC() // after the commits: what vanished before this is hidden by it
	if l.gc.Number > before.Number {
		l.enterNew() // what the gc object stands on may have come since they were listed
		l.ruled(before)
	}
	for _, n := range l.unpinned() {
		l.fault("commit %d is pinned, and gc object %d has retired it", n, l.gc.Number)
	}
	if n := len(present); n > 0 {
		head = max(head, present[n-1])
	}
	for n := uint64(1); n <= head; n++ { // what came after the listing is no matter of it
		if _, there := slices.BinarySearch(present, n); !there && l.gc.Visible(n) {
			l.fault("commit %d is gone, and no gc object has retired it", n)
		}
	}
}

// enterNew lists the commits and reads those that are not known.
func (l *ledger) enterNew() (present []uint64) {
	present, err := l.list(repository.CommitPrefix(pipe), repository.ParseCommitKey)
	if err != nil {
		l.fault("list commits: %v", err)
	}
	for _, n := range present {
		if _, known := l.commits[n]; !known {
			l.enter(n)
		}
	}
	return present
}

func (l *ledger) list(prefix string, parse func(string, string) (uint64, error)) (numbers []uint64, err error) {
	entries, err := os.ReadDir(filepath.Join(l.dir, prefix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if n, err := parse(pipe, prefix+e.Name()); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// enter reads a new commit and holds it against its neighbours.
func (l *ledger) enter(n uint64) {
	stored, err := os.ReadFile(filepath.Join(l.dir, repository.CommitKey(pipe, n)))
	if errors.Is(err, fs.ErrNotExist) {
		return // retired since it was listed: if not, the look after this says so
	}
	if err != nil {
		l.fault("read commit %d: %v", n, err)
		return
	}
	c, err := repository.DecodeCommit(n, stored)
	if err != nil {
		l.fault("%v", err)
		return
	}
	l.commits[n] = noted{c, repository.Sum(stored)}
	l.head = max(l.head, n)
	if c.Kind == repository.KindCheckpoint {
		l.numbers[c.Checkpoint.ID] = max(l.numbers[c.Checkpoint.ID], n)
	}
	l.joins(n-1, n)
	l.joins(n, n+1)
}

// joins demands one line of history: each commit stands on the one before it, epochs never go down, and each begins with its seal.
func (l *ledger) joins(n, above uint64) {
	c, ok := l.commits[n]
	next, too := l.commits[above]
	switch {
	case above == 1 && too && (next.Parent != repository.Digest{} || next.Kind != repository.KindSeal):
		l.fault("commit 1 is no seal, or has a parent")
	case !ok || !too:
	case next.Parent != c.sum:
		l.fault("commit %d does not stand on commit %d", above, n)
	case next.Epoch < c.Epoch:
		l.fault("commit %d is of epoch %d, above commit %d of epoch %d", above, next.Epoch, n, c.Epoch)
	case next.Epoch == c.Epoch && next.Writer != c.Writer:
		l.fault("commits %d and %d are of epoch %d and of two writers", n, above, c.Epoch)
	case (next.Epoch > c.Epoch) != (next.Kind == repository.KindSeal):
		l.fault("commit %d of epoch %d is a %s, above commit %d of epoch %d", above, next.Epoch, next.Kind, n, c.Epoch)
	}
}

// readGC takes up the highest gc object. It may be deleted by retention only once a higher one stands.
func (l *ledger) readGC() {
	for {
		numbers, err := l.list(repository.GCPrefix(pipe), repository.ParseGCKey)
		if err != nil {
			l.fault("list gc objects: %v", err)
			return
		}
		if len(numbers) == 0 || numbers[len(numbers)-1] <= l.gc.Number {
			return
		}
		n := numbers[len(numbers)-1]
		stored, err := os.ReadFile(filepath.Join(l.dir, repository.GCKey(pipe, n)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		gc, decoded := repository.DecodeGC(n, stored)
		if err := errors.Join(err, decoded); err != nil {
			l.fault("gc object %d: %v", n, err)
			return
		}
		if l.gc.UpTo > gc.UpTo {
			l.fault("gc object %d hides up to commit %d, the one before it up to %d", n, gc.UpTo, l.gc.UpTo)
		}
		l.gc = gc
	}
}

// judge holds what a host says to be committed against the line. The host spoke before the ledger looks: what came in between only helps it.
func (l *ledger) judge(host string, claims []claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookLocked()
	for _, c := range claims {
		if _, known := l.numbers[c.id]; !known && !l.claimed[c.id] {
			if l.missed() == 0 {
				l.fault("host %s: %s names checkpoint %s, of which no commit ever was", host, c.by, c.id)
			} else {
				l.blind++
			}
		}
		l.claimed[c.id] = true
	}
}

// missed counts the retired commits that were never seen.
func (l *ledger) missed() int { return int(l.head) - len(l.commits) }

// checkpoints are the commits of checkpoints that readers see, ascending.
func (l *ledger) checkpoints() (visible []noted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := uint64(1); n <= l.head; n++ {
		if c, ok := l.commits[n]; ok && c.Kind == repository.KindCheckpoint && l.gc.Visible(n) {
			visible = append(visible, c)
		}
	}
	return visible
}

// sees says whether readers see a commit, by the newest gc object.
func (l *ledger) sees(n uint64) bool {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gc.Visible(n)
}

// newest is the newest checkpoint commit; its number is 0 while there is none.
func (l *ledger) newest() noted {
	l.look()
	visible := l.checkpoints()
	if len(visible) == 0 {
		return noted{Commit: &repository.Commit{}}
	}
	return visible[len(visible)-1]
}

// unchanged reads everything once more: a commit is never written again.
func (l *ledger) unchanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, c := range l.commits {
		stored, err := os.ReadFile(filepath.Join(l.dir, repository.CommitKey(pipe, n)))
		switch {
		case errors.Is(err, fs.ErrNotExist) && !l.gc.Visible(n):
		case err != nil:
			l.fault("read commit %d again: %v", n, err)
		case repository.Sum(stored) != c.sum:
			l.fault("commit %d is not what it was", n)
		}
	}
}

// reigns counts epochs that have committed a checkpoint.
func (l *ledger) reigns() int {
	epochs := map[uint64]bool{}
	for _, c := range l.commits {
		if c.Kind == repository.KindCheckpoint {
			epochs[c.Epoch] = true
		}
	}
	return len(epochs)
}

// report fails the test for each fault.
func (l *ledger) report(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fault := range l.faults {
		t.Error(fault)
	}
	t.Logf("ledger: %d commits in one line up to number %d, of %d reigns that committed; %d checkpoints were said to be committed; retired %d that were seen, up to number %d; %d claims and %d commits came and went between two looks",
		len(l.commits), l.head, l.reigns(), len(l.claimed), l.gone, l.gc.UpTo, l.blind, l.missed())
}
