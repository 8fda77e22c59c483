package syncer

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// CASES A35: what one Delete did is told by the key.
func TestKeysThatAStoreDoesNotDeleteAreToldAndTriedAgain(t *testing.T) {
	b := newBench(t)
	stubborn := map[string]bool{repository.CommitKey("strikes", 3): true}
	picky := &pickyStore{Target: b.store, stubborn: stubborn}
	w := b.worker(keeps(repository.Retention{MinCount: 1}), func(c *Config) { c.Store = Direct(picky) })
	b.pushes(w, 1, 5)
	for _, id := range b.packsStored()[1:3] {
		stubborn[repository.PackKey("strikes", id)] = true
	}
	r, err := w.Maintain(t.Context(), MaintainRequest{})
	if !errors.Is(err, sdk.PermissionDenied) || r.Deleted != 4 || len(r.Failed) == 0 || !strings.Contains(err.Error(), "1 of 5 commits were not deleted") {
		t.Fatalf("error %v, report %+v", err, r)
	}
	b.wantRestorable(5)
	if m := w.Status().Maintenance; m.Deleted != 4 || !strings.Contains(m.Error, "not deleted") {
		t.Errorf("status %+v", m)
	}
	clear(stubborn)
	r = b.mustMaintain(w, MaintainRequest{})
	if r.Deleted != 1 || r.Retired != 0 {
		t.Errorf("report %+v", r)
	}
	b.wantRestorable(5)
	b.wantNoOrphans()
}

// pickyStore does not delete some keys, and says so of each as the contract has it.
type pickyStore struct {
	sdk.Target
	stubborn map[string]bool
}

func (s *pickyStore) Delete(ctx context.Context, keys []string) error {
	var failed []error
	var rest []string
	for _, key := range keys {
		if s.stubborn[key] {
			failed = append(failed, &sdk.Error{Code: sdk.PermissionDenied, Op: "delete", Key: key, Err: errors.New("locked by a retention rule of the bucket")})
			continue
		}
		rest = append(rest, key)
	}
	if len(rest) > 0 {
		failed = append(failed, s.Target.Delete(ctx, rest))
	}
	return errors.Join(failed...)
}

// plantCommits plants commits of one checkpoint, numbered from the newest that is there up to last.
func (b *bench) plantCommits(last uint64) {
	b.t.Helper()
	c := *b.newest()
	for c.Number < last {
		text, _ := b.mem.Content(repository.CommitKey("strikes", c.Number))
		c.Number, c.Parent, c.Created = c.Number+1, repository.Sum(text), c.Created.Add(time.Second)
		c.Totals = repository.TotalsOf(&c)
		next, err := repository.EncodeCommit(&c)
		if err != nil {
			b.t.Fatal(err)
		}
		b.mem.Plant(repository.CommitKey("strikes", c.Number), next)
	}
}

// CASES A34: more keys than a page of a listing or a call of Delete can hold.
func TestMoreCommitsThanAPageHoldsAreRetiredAndListed(t *testing.T) {
	t.Parallel()
	for _, commits := range slices.Compact([]uint64{1001, mostCommits}) {
		b := newBench(t)
		b.pushes(b.worker(), 1, 1)
		b.plantCommits(commits)
		w := b.restart(keeps(repository.Retention{MinCount: 10}))
		b.pushes(w, 2, 2)
		var calls []string
		b.store.Before = record(&calls)
		r := b.mustMaintain(w, MaintainRequest{})
		b.heal()
		if want := int(commits) - 1 + 1 - 10; r.Retired != want || r.Kept != 10 {
			t.Errorf("%d commits: retired %d, want %d, kept %d", commits, r.Retired, want, r.Kept)
		}
		if n := len(b.listed()); n != 10 {
			t.Errorf("%d commits: %d are listed", commits, n)
		}
		deletes := slices.DeleteFunc(calls, func(call string) bool { return !strings.HasPrefix(call, "delete strikes/commit/") })
		if want := (r.Deleted + sdk.MaxDelete - 1) / sdk.MaxDelete; len(deletes) != want {
			t.Errorf("%d commits: %d went in %d calls, want %d", commits, r.Deleted, len(deletes), want)
		}
		b.wantNoOrphans()
	}
}

// A store that shows only its first page, without an error: nothing is deleted by it.
func TestAListingThatLacksWhatMustBeThereDeletesNothing(t *testing.T) {
	for name, hide := range map[string]func(key string) bool{
		"the newest":  func(key string) bool { return key == repository.CommitKey("strikes", 6) },
		"one between": func(key string) bool { return key == repository.CommitKey("strikes", 4) },
	} {
		b := newBench(t)
		blind := &blindStore{Target: b.store}
		w := b.worker(keeps(repository.Retention{MinCount: 1}), func(c *Config) { c.Store = Direct(blind) })
		b.pushes(w, 1, 5)
		before := len(b.mem.Keys())
		blind.hide = hide
		if _, err := w.Maintain(t.Context(), MaintainRequest{Thorough: true}); err == nil || len(b.mem.Keys()) != before {
			t.Errorf("%s: error %v, %d of %d objects are left", name, err, len(b.mem.Keys()), before)
		}
	}
}

type blindStore struct {
	sdk.Target
	hide func(key string) bool
}

func (s *blindStore) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		for obj, err := range s.Target.List(ctx, req) {
			if err == nil && s.hide != nil && s.hide(obj.Key) {
				continue
			}
			if !yield(obj, err) {
				return
			}
		}
	}
}
