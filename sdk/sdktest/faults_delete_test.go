package sdktest_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func deleteFaults() []fault {
	del := func(change func(mem *sdktest.Mem, ctx context.Context, keys []string) error) func(*sdktest.Mem) sdk.Target {
		return func(mem *sdktest.Mem) sdk.Target {
			return &broken{Mem: mem, delete: func(ctx context.Context, keys []string) error { return change(mem, ctx, keys) }}
		}
	}
	return []fault{
		{
			name:    "Delete does nothing",
			plant:   del(func(*sdktest.Mem, context.Context, []string) error { return nil }),
			catches: []string{"a deleted object is neither read nor listed", "a deleted key can be stored again", "a key that was deleted can be created again"},
		},
		{
			name: "a missing key is an error",
			plant: del(func(mem *sdktest.Mem, ctx context.Context, keys []string) error {
				for _, key := range keys {
					if _, ok := mem.Content(key); !ok {
						return &sdk.Error{Code: sdk.NotFound, Key: key}
					}
				}
				return mem.Delete(ctx, keys)
			}),
			catches: []string{"Delete of a missing key is success"},
		},
		{
			name: "only the first 256 keys of a Delete are looked at",
			plant: del(func(mem *sdktest.Mem, ctx context.Context, keys []string) error {
				return mem.Delete(ctx, keys[:min(len(keys), 256)])
			}),
			catches: []string{"Delete takes MaxDelete keys, there or not", "Delete takes MaxDelete keys of which half are missing"},
		},
		{
			name: "Delete removes a tree",
			plant: del(func(mem *sdktest.Mem, ctx context.Context, keys []string) error {
				for _, key := range mem.Keys() {
					for _, root := range keys {
						if strings.HasPrefix(key, root+"/") {
							keys = append(keys, key)
						}
					}
				}
				return mem.Delete(ctx, keys)
			}),
			catches: []string{"Delete removes exactly the keys it names, nothing below or beside them"},
		},
		{
			name: "a deleted key stays taken",
			plant: func(mem *sdktest.Mem) sdk.Target {
				var mu sync.Mutex
				dead := map[string]bool{}
				return &broken{
					Mem: mem,
					put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
						mu.Lock()
						defer mu.Unlock()
						if dead[req.Key] {
							return sdk.PutResult{}, sdk.Exists
						}
						return mem.Put(ctx, req)
					},
					delete: func(ctx context.Context, keys []string) error {
						mu.Lock()
						defer mu.Unlock()
						for _, key := range keys {
							dead[key] = true
						}
						return mem.Delete(ctx, keys)
					},
				}
			},
			catches: []string{"a deleted key can be stored again", "a key that was deleted can be created again"},
		},
	}
}

func contextFaults() []fault {
	return []fault{
		{
			name: "contexts are ignored",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{
					Mem: mem,
					put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
						return mem.Put(context.WithoutCancel(ctx), req)
					},
				}
			},
			catches: []string{"a call whose context has ended fails as Cancelled and changes nothing"},
		},
		{
			name: "a cancelled Put leaves what it had",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					res, err := mem.Put(ctx, req)
					if ctx.Err() != nil {
						mem.Plant(req.Key, make([]byte, req.Body.Size()/2))
					}
					return res, err
				}}
			},
			catches: []string{
				"a Put that is cancelled on its way stores the complete object or nothing",
				"a large Put that is cancelled on its way stores the complete object or nothing",
			},
		},
		waitingFault(),
	}
}

// waitingFault is a Put that waits for its store whatever its context says. It is let go when the case has given it up.
func waitingFault() fault {
	store := make(chan struct{})
	return fault{
		name: "a call waits for the store, whatever its context says",
		plant: func(mem *sdktest.Mem) sdk.Target {
			return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				if strings.Contains(req.Key, "/put-") {
					<-store
				}
				return mem.Put(ctx, req)
			}}
		},
		catches: []string{"a call returns soon after its context has ended"},
		hurry:   100 * time.Millisecond,
		after:   func() { close(store) },
	}
}
