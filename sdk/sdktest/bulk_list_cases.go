package sdktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cairnsync/cairn/sdk"
)

func bulkListCases() []Case {
	return []Case{
		{"a listing of thousands of keys is complete and ascending, from its beginning and from any key on", Bulk, bulkList},
		{"a listing that runs beside Puts and Deletes holds every object that was there all along, once and in order", Bulk, bulkListBusy},
		{"Delete takes MaxDelete keys of which half are missing", Bulk, bulkDelete},
	}
}

// manyNames are keys as a repository has them, n of them, sorted: packs in folders and commits beside them.
func manyNames(n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		name := fmt.Sprintf("many/pack/%04d/%08d/%064x", i%7, i/100, uint64(i)*0x9e3779b97f4a7c15)
		if i%5 == 0 {
			name = fmt.Sprintf("many/commit/%020d.json.zst", i)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func bulkList(ctx context.Context, e *Env) error {
	names := manyNames(e.Keys)
	if err := e.putAll(ctx, append(names, "manyother", "z")...); err != nil {
		return err
	}
	if err := e.sameNames(ctx, sdk.ListRequest{Prefix: e.key("many/")}, names); err != nil {
		return err
	}
	for _, i := range []int{0, len(names) / 3, len(names) / 2, len(names) - 2} {
		if err := e.sameNames(ctx, sdk.ListRequest{Prefix: e.key("many/"), StartAfter: e.key(names[i])}, names[i+1:]); err != nil {
			return fmt.Errorf("after key %d: %w", i+1, err)
		}
		// A key that is not there, between two that are.
		if err := e.sameNames(ctx, sdk.ListRequest{Prefix: e.key("many/"), StartAfter: e.key(names[i] + "-")}, names[i+1:]); err != nil {
			return fmt.Errorf("after a key that is not there, behind key %d: %w", i+1, err)
		}
	}
	return nil
}

// sameNames compares a listing with names and says where it first differs: thousands of keys in an error help nobody.
func (e *Env) sameNames(ctx context.Context, req sdk.ListRequest, names []string) error {
	have, err := e.list(ctx, req)
	if err != nil {
		return err
	}
	for i, key := range have {
		if i >= len(names) || key != e.key(names[i]) {
			return fmt.Errorf("%d keys are listed, want %d; number %d is %q", len(have), len(names), i+1, strings.TrimPrefix(key, e.key("")))
		}
	}
	if len(have) < len(names) {
		return fmt.Errorf("%d keys are listed; want %d: %q is the first that is missing", len(have), len(names), names[len(have)])
	}
	return nil
}

// bulkListBusy lists while one worker adds keys and another takes some away. What lies there all along is every third key.
func bulkListBusy(ctx context.Context, e *Env) error {
	const listings = 6
	var stays, goes, comes []string
	for i, name := range manyNames(min(e.Keys, 1800)) {
		part := []*[]string{&stays, &goes, &comes}[i%3]
		*part = append(*part, name)
	}
	if err := e.putAll(ctx, slices.Concat(stays, goes)...); err != nil {
		return err
	}
	var listed atomic.Bool
	return together(3, func(worker int) error {
		switch worker {
		case 0:
			defer listed.Store(true)
			return e.listedBeside(ctx, listings, stays)
		case 1:
			return each(comes, &listed, func(name string) error { return e.put(ctx, name, []byte(name)) })
		default:
			return each(goes, &listed, func(name string) error { return e.remove(ctx, name) })
		}
	})
}

// each works through names until they or the listings have come to an end.
func each(names []string, listed *atomic.Bool, work func(name string) error) error {
	for _, name := range names {
		if listed.Load() {
			return nil
		}
		if err := work(name); err != nil {
			return err
		}
	}
	return nil
}

func (e *Env) listedBeside(ctx context.Context, times int, stays []string) error {
	for range times {
		have, err := e.list(ctx, sdk.ListRequest{Prefix: e.key("many/")})
		if err != nil {
			return err
		}
		for i := 1; i < len(have); i++ {
			if have[i] <= have[i-1] {
				return fmt.Errorf("a listing beside Puts and Deletes has %q after %q", have[i], have[i-1])
			}
		}
		for _, name := range stays {
			if _, ok := slices.BinarySearch(have, e.key(name)); !ok {
				return fmt.Errorf("a listing beside Puts and Deletes lacks %q, which was there all along", name)
			}
		}
	}
	return nil
}

func bulkDelete(ctx context.Context, e *Env) error {
	var all, there []string
	for i := range sdk.MaxDelete {
		name := fmt.Sprintf("half/%d/%04d", i%3, i)
		all = append(all, name)
		if i%2 == 0 {
			there = append(there, name)
		}
	}
	if err := e.putAll(ctx, append(there, "half/0/beside", "halfway")...); err != nil {
		return err
	}
	for range 2 { // the second time all of them are missing
		if err := e.remove(ctx, all...); err != nil {
			return err
		}
		if err := e.listed(ctx, "", "", "half/0/beside", "halfway"); err != nil {
			return err
		}
	}
	if err := e.absent(ctx, all[0]); err != nil {
		return errors.Join(errors.New("after a delete of 1000 keys"), err)
	}
	return nil
}
