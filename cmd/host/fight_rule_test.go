//go:build torture || cloud

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cairnsync/cairn/core/repository"
)

// ruled holds the highest gc object against the retention rule, which it may never go beyond. before is the one that held until it came. What the ledger
// never saw of the commits, because they came and went between two looks, is taken for whatever helps the host.
func (l *ledger) ruled(before repository.GC) {
	stay := 0 // checkpoints above n that the plan can have known and that readers still see
	for n := l.head; n > 0; n-- {
		c, known := l.commits[n]
		switch {
		case known && (c.Kind != repository.KindCheckpoint || c.Created.After(l.gc.Created)):
		case l.gc.Visible(n):
			stay++
		case known && before.Visible(n):
			l.retired(c, stay)
		}
	}
}

// retired judges one commit that is gone for readers from now on.
func (l *ledger) retired(c noted, stay int) {
	if least := max(1, l.rule.MinCount); stay < least {
		l.fault("gc object %d retires commit %d, above which %d checkpoints stay, not %d", l.gc.Number, c.Number, stay, least)
	}
	if age := l.gc.Created.Sub(c.Created); age < l.rule.MinAge {
		l.fault("gc object %d retires commit %d at the age of %v, before %v", l.gc.Number, c.Number, age, l.rule.MinAge)
	}
	l.gone++
}

// pin notes that a host said of a commit: it stays from now on.
func (l *ledger) pin(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pinned = append(l.pinned, n)
	l.lookLocked()
}

// untidy says what lies on the target that a sweep which has just ended should have taken; "" = nothing.
func (l *ledger) untidy() string {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	gcs, err := l.list(repository.GCPrefix(pipe), repository.ParseGCKey)
	if err != nil || len(gcs) > 1 {
		return fmt.Sprintf("gc objects %v (%v)", gcs, err)
	}
	present, err := l.list(repository.CommitPrefix(pipe), repository.ParseCommitKey)
	named := map[repository.PackID]bool{}
	for _, n := range present {
		if !l.gc.Visible(n) {
			return fmt.Sprintf("commit %d is retired and there still", n)
		}
		for _, id := range l.commits[n].Packs {
			named[id] = true
		}
	}
	packs, walked := l.packs()
	if err := errors.Join(err, walked); err != nil {
		return err.Error()
	}
	for _, id := range packs {
		if !named[id] {
			return fmt.Sprintf("pack %s is named by no commit", id)
		}
	}
	return ""
}

// packs are those on the target.
func (l *ledger) packs() (ids []repository.PackID, err error) {
	err = filepath.WalkDir(filepath.Join(l.dir, repository.PackPrefix(pipe)), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) || err == nil && entry.IsDir() {
			return nil
		}
		key, relative := filepath.Rel(l.dir, path)
		if id, err := repository.ParsePackKey(pipe, key); err == nil {
			ids = append(ids, id)
		}
		return errors.Join(err, relative)
	})
	return ids, err
}

// unpinned are the pinned commits that readers do not see.
func (l *ledger) unpinned() []uint64 {
	return slices.DeleteFunc(slices.Clone(l.pinned), l.gc.Visible)
}

// unpin ends a promise.
func (l *ledger) unpin(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pinned = slices.DeleteFunc(l.pinned, func(p uint64) bool { return p == n })
}
