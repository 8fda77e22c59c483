package syncer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// An answer that is lost proves nothing: the own object, found on the second attempt, is no sign of a lie, and every right is found all the same.
// CASES A13
func TestALostReplyOfAnyCallIsNotTakenForALie(t *testing.T) {
	for _, after := range []bool{true, false} {
		for n := int64(1); ; n++ {
			mem := sdktest.NewMem()
			store := &sdktest.Faulty{Target: mem}
			hook := func(c callt) error {
				if c.N == n {
					return &sdk.Error{Code: sdk.Unavailable}
				}
				return nil
			}
			if after {
				store.After = func(_ ctxt, c callt, err error) error { return errors.Join(err, hook(c)) }
			} else {
				store.Before = func(_ ctxt, c callt) error { return hook(c) }
			}
			r := probed(t, store, uuid.New())
			if got := said(r); got != fmt.Sprint(RightOK, RightOK, RightOK, RightOK, RightOK) {
				t.Errorf("call %d lost, after it was made: %t: rights %s: %+v", n, after, got, r.Rights)
			}
			if keys := mem.Keys(); len(keys) != 0 {
				t.Errorf("call %d lost: it leaves %q", n, keys)
			}
			if store.Calls() < n {
				break
			}
		}
	}
}

func TestAStoreThatDoesNotAnswerEndsTheProbeAtOnceAndSaysNothingOfItsRights(t *testing.T) {
	store := &sdktest.Faulty{Target: sdktest.NewMem(), Before: func(ctxt, callt) error { return &sdk.Error{Code: sdk.Unavailable} }}
	r, err := Probe(t.Context(), ProbeConfig{Target: "offsite", Prefix: "strikes", Store: Direct(store), RetryBudget: time.Nanosecond, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if got := said(r); got != fmt.Sprint(RightUnknown, RightUnknown, RightUnknown, RightUnknown, RightUnknown) || store.Calls() != 1 {
		t.Errorf("rights %s after %d calls", got, store.Calls())
	}
	if v := r.Judge(FencingRequired); v.Use != UseUnknown || !errors.Is(v.cause, sdk.Unavailable) {
		t.Errorf("verdict %+v", v)
	}
}

func TestAProbeThatACrashCutShortIsSweptByTheNextOfItsOwnerAndOfOthersAfterADay(t *testing.T) {
	mem := sdktest.NewMem()
	mine, theirs := uuid.New(), uuid.New()
	crashed := func(owner uuid.UUID) {
		ctx, cancel := context.WithCancel(t.Context())
		store := &sdktest.Faulty{Target: mem, Before: func(_ ctxt, c callt) error {
			if c.Op == "delete" {
				cancel()
			}
			return ctx.Err()
		}}
		if _, err := Probe(ctx, ProbeConfig{Target: "offsite", Prefix: "strikes", Store: Direct(store), Owner: owner, Now: time.Now}); err != nil {
			t.Fatal(err)
		}
	}
	crashed(mine)
	crashed(theirs)
	if n := len(mem.Keys()); n != 4 {
		t.Fatalf("%d objects are left", n)
	}
	probed(t, mem, mine)
	left := mem.Keys()
	if len(left) != 2 || !strings.HasPrefix(left[0], repository.ProbeKey("strikes", theirs.String(), "")) {
		t.Fatalf("left are %q: another owner's probe may be under way", left)
	}
	for range 24*60*60 + 5 { // a second each
		mem.Plant("clock", nil)
	}
	probed(t, mem, mine)
	if left := mem.Keys(); len(left) != 1 {
		t.Errorf("after a day are left %q", left)
	}
}

// CASES A42 from the other side: what a probe leaves is nobody's data.
func TestWhatAProbeLeavesIsNoRepositoryAndNoStrangersData(t *testing.T) {
	mem := sdktest.NewMem()
	mem.Plant(repository.ProbeKey(testPrefix, uuid.NewString(), "x-1"), []byte(probeFirst))
	r := readerOf(t, mem)
	if head, err := r.Discover(t.Context()); err != nil || head.Format != nil || head.Commit != nil {
		t.Errorf("a reader finds %+v, %v", head, err)
	}
	if list, err := r.ListCommits(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("a reader lists %v, %v", list, err)
	}
	mem.Plant(testPrefix+"/notes.txt", []byte("somebody's"))
	if _, err := r.Discover(t.Context()); !errors.Is(err, repository.ErrCorrupt) {
		t.Errorf("beside somebody's data: %v", err)
	}
	mem.Plant(testPrefix+"/zebra.txt", []byte("somebody's"))
	if err := mem.Delete(t.Context(), []string{testPrefix + "/notes.txt"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Discover(t.Context()); !errors.Is(err, repository.ErrCorrupt) {
		t.Errorf("before somebody's data: %v", err)
	}
}

func TestProbesBesideEachOtherDoNotDisturb(t *testing.T) {
	mem := sdktest.NewMem()
	results := make(chan ProbeReport)
	for range 8 {
		go func() { results <- probed(t, mem, uuid.New()) }()
	}
	for range 8 {
		if r := <-results; said(r) != fmt.Sprint(RightOK, RightOK, RightOK, RightOK, RightOK) {
			t.Errorf("rights %s: %+v", said(r), r.Rights)
		}
	}
	if keys := mem.Keys(); len(keys) != 0 {
		t.Errorf("left are %q", keys)
	}
}

func TestAPrefixThatIsNoneIsNotProbed(t *testing.T) {
	if _, err := Probe(t.Context(), ProbeConfig{Target: "offsite", Prefix: "../x", Now: time.Now}); err == nil || !strings.Contains(err.Error(), "offsite") {
		t.Errorf("error %v", err)
	}
}
