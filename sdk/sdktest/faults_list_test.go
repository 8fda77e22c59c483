package sdktest_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func listFaults() []fault {
	// list replaces a listing by what change makes of it.
	list := func(change func(req sdk.ListRequest, all []sdk.Object) []sdk.Object) func(*sdktest.Mem) sdk.Target {
		return func(mem *sdktest.Mem) sdk.Target {
			return &broken{Mem: mem, list: func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
				return func(yield func(sdk.Object, error) bool) {
					var all []sdk.Object
					for obj, err := range mem.List(ctx, req) {
						if err != nil {
							yield(obj, err)
							return
						}
						all = append(all, obj)
					}
					for _, obj := range change(req, all) {
						if !yield(obj, nil) {
							return
						}
					}
				}
			}}
		}
	}
	return []fault{
		{
			name: "only whole segments are prefixes",
			plant: list(func(req sdk.ListRequest, all []sdk.Object) (kept []sdk.Object) {
				for _, obj := range all {
					rest := strings.TrimPrefix(obj.Key, req.Prefix)
					if rest == "" || rest[0] == '/' || strings.HasSuffix(req.Prefix, "/") {
						kept = append(kept, obj)
					}
				}
				return kept
			}),
			catches: []string{"List yields exactly the objects whose key starts with Prefix"},
		},
		{
			name: "the order is that of a walk through folders",
			plant: list(func(_ sdk.ListRequest, all []sdk.Object) []sdk.Object {
				for i := range all {
					for j := i + 1; j < len(all); j++ {
						if strings.ReplaceAll(all[j].Key, "/", "\x00") < strings.ReplaceAll(all[i].Key, "/", "\x00") {
							all[i], all[j] = all[j], all[i]
						}
					}
				}
				return all
			}),
			catches: []string{"List yields keys strictly ascending by their bytes"},
		},
		{
			name: "StartAfter is the first key, not the one before it",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, list: func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
					if req.StartAfter != "" {
						req.StartAfter = req.StartAfter[:len(req.StartAfter)-1]
					}
					return mem.List(ctx, req)
				}}
			},
			catches: []string{"List begins after StartAfter"},
		},
		{
			name: "the newest object is not yet listed",
			plant: list(func(_ sdk.ListRequest, all []sdk.Object) (kept []sdk.Object) {
				newest := -1
				for i, obj := range all {
					if newest < 0 || obj.Modified.After(all[newest].Modified) {
						newest = i
					}
				}
				for i, obj := range all {
					if i != newest {
						kept = append(kept, obj)
					}
				}
				return kept
			}),
			catches: []string{"List yields every object whose Put returned before"},
		},
		{
			name: "nothing is an error",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, list: func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
					for range mem.List(ctx, req) {
						return mem.List(ctx, req)
					}
					return func(yield func(sdk.Object, error) bool) { yield(sdk.Object{}, sdk.NotFound) }
				}}
			},
			catches: []string{"List of nothing is empty and no error"},
		},
		{
			name: "only the first page is seen",
			plant: list(func(_ sdk.ListRequest, all []sdk.Object) []sdk.Object {
				return all[:min(len(all), 1000)]
			}),
			catches: []string{
				"List is complete, however many pages it takes",
				"a listing of thousands of keys is complete and ascending, from its beginning and from any key on",
			},
		},
		{
			name: "the page size is taken for the number of objects",
			plant: list(func(req sdk.ListRequest, all []sdk.Object) []sdk.Object {
				if req.Limit > 0 {
					return all[:min(len(all), req.Limit)]
				}
				return all
			}),
			catches: []string{"Limit is a hint and hides nothing"},
		},
		{
			name: "a listing shows the size that an object had at first",
			plant: func(mem *sdktest.Mem) sdk.Target {
				sizes := map[string]int64{}
				return list(func(_ sdk.ListRequest, all []sdk.Object) []sdk.Object {
					for i, obj := range all {
						if _, seen := sizes[obj.Key]; !seen {
							sizes[obj.Key] = obj.Size
						}
						all[i].Size = sizes[obj.Key]
					}
					return all
				})(mem)
			},
			catches: []string{"a listing shows an object that was replaced once, and as it is now"},
		},
		{
			name:    "a key that is deleted takes its neighbours out of the listings",
			plant:   neighbourless,
			catches: []string{"a listing that runs beside Puts and Deletes holds every object that was there all along, once and in order"},
		},
		{
			name: "a listing that is cancelled ends as if it were complete",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, list: func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
					return func(yield func(sdk.Object, error) bool) {
						for obj, err := range mem.List(ctx, req) {
							if err != nil || !yield(obj, nil) {
								return
							}
						}
					}
				}}
			},
			catches: []string{"a listing whose context ends on its way is complete or ends in an error"},
		},
		{
			name: "sizes are not told",
			plant: list(func(_ sdk.ListRequest, all []sdk.Object) []sdk.Object {
				for i := range all {
					all[i].Size = 0
				}
				return all
			}),
			catches: []string{"List tells the size of each object and when it was modified"},
		},
		{
			name: "a listing that is stopped goes on",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, list: func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
					return func(yield func(sdk.Object, error) bool) {
						for obj, err := range mem.List(ctx, req) {
							yield(obj, err)
						}
					}
				}}
			},
			catches: []string{"List may be stopped at any object"},
		},
	}
}

// neighbourless is a store that pages by number: a Delete moves what comes behind it into the page before. Listings wait for the first one.
func neighbourless(mem *sdktest.Mem) sdk.Target {
	var mu sync.Mutex
	hidden := map[string]bool{}
	begun := make(chan struct{})
	started := sync.OnceFunc(func() { close(begun) })
	return &broken{
		Mem: mem,
		delete: func(ctx context.Context, keys []string) error {
			mu.Lock()
			defer mu.Unlock()
			defer started()
			all := mem.Keys()
			i, _ := slices.BinarySearch(all, keys[0])
			for _, key := range all[min(i+1, len(all)):min(i+3, len(all))] {
				hidden[key] = true
			}
			return mem.Delete(ctx, keys)
		},
		list: func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
			return func(yield func(sdk.Object, error) bool) {
				select {
				case <-begun:
				case <-ctx.Done():
				}
				for obj, err := range mem.List(ctx, req) {
					mu.Lock()
					skip := hidden[obj.Key]
					mu.Unlock()
					if !skip && !yield(obj, err) {
						return
					}
				}
			}
		},
	}
}
