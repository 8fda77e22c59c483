package sdktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

func listCases() []Case {
	return []Case{
		{"List yields exactly the objects whose key starts with Prefix", Core, listPrefix},
		{"List yields keys strictly ascending by their bytes", Core, listOrder},
		{"List begins after StartAfter", Core, listStartAfter},
		{"List yields every object whose Put returned before", Core, listFresh},
		{"List of nothing is empty and no error", Core, listNothing},
		{"List is complete, however many pages it takes", Core, listPages},
		{"Limit is a hint and hides nothing", Core, listLimit},
		{"a listing shows an object that was replaced once, and as it is now", Core, listReplaced},
		{"List tells the size of each object and when it was modified", Core, listFacts},
		{"List may be stopped at any object", Core, listStopped},
	}
}

// listed fails unless the listing below this case is names, in that order.
func (e *Env) listed(ctx context.Context, prefix, after string, names ...string) error {
	req := sdk.ListRequest{Prefix: e.key(prefix)}
	if after != "" {
		req.StartAfter = e.key(after)
	}
	have, err := e.list(ctx, req)
	if err != nil {
		return err
	}
	want := make([]string, len(names))
	for i, name := range names {
		want[i] = e.key(name)
	}
	if !slices.Equal(have, want) {
		return fmt.Errorf("list of %q after %q gives %q; want %q", prefix, after, trim(e, have), names)
	}
	return nil
}

func trim(e *Env, keys []string) []string {
	short := make([]string, len(keys))
	for i, key := range keys {
		short[i] = strings.TrimPrefix(key, e.key(""))
	}
	return short
}

func listPrefix(ctx context.Context, e *Env) error {
	if err := e.putAll(ctx, "a/1", "a/2", "a/b/3", "ab/1", "a-1", "b/1", "a.x"); err != nil {
		return err
	}
	for _, c := range []struct {
		prefix string
		want   []string
	}{
		{"a/", []string{"a/1", "a/2", "a/b/3"}},
		{"a", []string{"a-1", "a.x", "a/1", "a/2", "a/b/3", "ab/1"}},
		{"a/b", []string{"a/b/3"}},
		{"a/b/3", []string{"a/b/3"}},
		{"b", []string{"b/1"}},
		{"", []string{"a-1", "a.x", "a/1", "a/2", "a/b/3", "ab/1", "b/1"}},
	} {
		if err := e.listed(ctx, c.prefix, "", c.want...); err != nil {
			return err
		}
	}
	return nil
}

func listOrder(ctx context.Context, e *Env) error {
	names := []string{"d/x", "d-x", "d.x", "d0", "d_x", "dA", "dx/1", "dx", "D", "d/x-1", "d/x0/z", "d/10", "d/9", "d/x.y"}
	// A store that keeps objects as files cannot hold d/x beside d/x/…, and no key of ours is another's folder.
	names = slices.DeleteFunc(names, func(name string) bool { return name == "dx" })
	if err := e.putAll(ctx, names...); err != nil {
		return err
	}
	slices.Sort(names)
	return e.listed(ctx, "", "", names...)
}

func listStartAfter(ctx context.Context, e *Env) error {
	if err := e.putAll(ctx, "k/1", "k/2", "k/2x", "k/3/a", "l"); err != nil {
		return err
	}
	for _, c := range []struct {
		prefix, after string
		want          []string
	}{
		{"k/", "k/1", []string{"k/2", "k/2x", "k/3/a"}},
		{"k/", "k/2", []string{"k/2x", "k/3/a"}},
		{"k/", "k/20", []string{"k/2x", "k/3/a"}},
		{"k/", "k/3", []string{"k/3/a"}},
		{"k/", "k/3/a", nil},
		{"k/", "a", []string{"k/1", "k/2", "k/2x", "k/3/a"}},
		{"k/", "z", nil},
		{"", "k/3/a", []string{"l"}},
	} {
		if err := e.listed(ctx, c.prefix, c.after, c.want...); err != nil {
			return err
		}
	}
	return nil
}

func listFresh(ctx context.Context, e *Env) error {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("fresh-%02d", i))
		if err := e.put(ctx, names[i], []byte{byte(i)}); err != nil {
			return err
		}
		if err := e.listed(ctx, "fresh", "", names...); err != nil {
			return err
		}
	}
	return nil
}

func listNothing(ctx context.Context, e *Env) error {
	if err := e.put(ctx, "something", nil); err != nil {
		return err
	}
	if err := e.listed(ctx, "nothing", ""); err != nil {
		return err
	}
	return e.listed(ctx, "something/below", "")
}

func listPages(ctx context.Context, e *Env) error {
	var names []string
	for i := range 1100 { // more than the 1,000 that one page of a store usually holds
		names = append(names, fmt.Sprintf("page/%d/%05d", i%3, i))
	}
	if err := e.putAll(ctx, names...); err != nil {
		return err
	}
	slices.Sort(names)
	return e.listed(ctx, "page/", "", names...)
}

func listLimit(ctx context.Context, e *Env) error {
	var names []string
	for i := range 23 {
		names = append(names, fmt.Sprintf("limit/%02d", i))
	}
	if err := e.putAll(ctx, names...); err != nil {
		return err
	}
	for _, limit := range []int{1, 7, 23, 24, 1000, 100_000} {
		have, err := e.list(ctx, sdk.ListRequest{Prefix: e.key("limit/"), StartAfter: e.key("limit/02"), Limit: limit})
		if err != nil {
			return err
		}
		if have = trim(e, have); !slices.Equal(have, names[3:]) {
			return fmt.Errorf("list with Limit %d gives %d keys; want %d", limit, len(have), len(names)-3)
		}
	}
	return nil
}

func listReplaced(ctx context.Context, e *Env) error {
	for _, size := range []int{10, 3000, 0, 7} {
		if err := e.put(ctx, "twice", content(size, 1)); err != nil {
			return err
		}
		var sizes []int64
		for obj, err := range e.Target.List(ctx, sdk.ListRequest{Prefix: e.key("")}) {
			if err != nil {
				return err
			}
			sizes = append(sizes, obj.Size)
		}
		if !slices.Equal(sizes, []int64{int64(size)}) {
			return fmt.Errorf("an object replaced by one of %d bytes is listed with the sizes %d", size, sizes)
		}
	}
	return nil
}

func listFacts(ctx context.Context, e *Env) error {
	sizes := []int64{0, 1, 70_000}
	for i, size := range sizes {
		if err := e.put(ctx, fmt.Sprintf("fact-%d", i), content(int(size), 1)); err != nil {
			return err
		}
	}
	i := 0
	for obj, err := range e.Target.List(ctx, sdk.ListRequest{Prefix: e.key("fact-")}) {
		switch {
		case err != nil:
			return err
		case i == len(sizes) || obj.Size != sizes[i]:
			return fmt.Errorf("%s is listed with %d bytes", obj.Key, obj.Size)
		case obj.Modified.Before(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)):
			return fmt.Errorf("%s is listed as modified at %s", obj.Key, obj.Modified)
		}
		i++
	}
	if i != len(sizes) {
		return fmt.Errorf("%d objects are listed; want %d", i, len(sizes))
	}
	return nil
}

func listStopped(ctx context.Context, e *Env) error {
	names := []string{"s1", "s2", "s3", "s4"}
	if err := e.putAll(ctx, names...); err != nil {
		return err
	}
	for stop := 1; stop <= len(names); stop++ {
		seen := 0
		for _, err := range e.Target.List(ctx, sdk.ListRequest{Prefix: e.key("s")}) {
			if err != nil {
				return err
			}
			if seen++; seen == stop {
				break
			}
		}
		if seen != stop {
			return fmt.Errorf("a listing to be stopped at object %d yields %d", stop, seen)
		}
	}
	return e.listed(ctx, "s", "", names...)
}
