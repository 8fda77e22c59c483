package sdktest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func conditionalFaults() []fault {
	put := func(change func(mem *sdktest.Mem, ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error)) func(*sdktest.Mem) sdk.Target {
		return func(mem *sdktest.Mem) sdk.Target {
			return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) { return change(mem, ctx, req) }}
		}
	}
	return []fault{
		{
			name: "IfAbsent is ignored",
			plant: put(func(mem *sdktest.Mem, ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				req.IfAbsent = false
				return mem.Put(ctx, req)
			}),
			catches: []string{
				"Put with IfAbsent of an existing key fails with Exists and changes nothing",
				"of any number of concurrent Puts with IfAbsent exactly one succeeds, and its object is what is stored",
				"the same holds between two instances of a target",
				"the same holds for objects that do not travel inside a call",
				"a key that another instance has created is taken",
			},
		},
		{
			name: "IfAbsent is only kept by objects that fit into one request of the store",
			plant: put(func(mem *sdktest.Mem, ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				req.IfAbsent = req.IfAbsent && req.Body.Size() <= sdk.MaxInline
				return mem.Put(ctx, req)
			}),
			catches: []string{"the same holds for objects that do not travel inside a call"},
		},
		{
			name: "the key is looked at first and written later",
			plant: func(mem *sdktest.Mem) sdk.Target {
				arrivals := newRendezvous()
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					if _, taken := mem.Content(req.Key); taken && req.IfAbsent {
						return sdk.PutResult{}, sdk.Exists
					}
					if strings.Contains(req.Key, "/raced-") {
						arrivals.pair(req.Key)
					}
					req.IfAbsent = false
					return mem.Put(ctx, req)
				}}
			},
			catches: []string{
				"of any number of concurrent Puts with IfAbsent exactly one succeeds, and its object is what is stored",
				"the same holds between two instances of a target",
			},
		},
		{
			name: "the loser is told PermissionDenied",
			plant: put(func(mem *sdktest.Mem, ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				res, err := mem.Put(ctx, req)
				if errors.Is(err, sdk.Exists) {
					return res, sdk.PermissionDenied
				}
				return res, err
			}),
			catches: []string{"Put with IfAbsent of an existing key fails with Exists and changes nothing"},
		},
		{
			name: "IfAbsent cannot be done",
			plant: put(func(mem *sdktest.Mem, ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				if req.IfAbsent {
					return sdk.PutResult{}, sdk.Unsupported
				}
				return mem.Put(ctx, req)
			}),
			catches: []string{"Put with IfAbsent stores an object under an absent key"},
		},
		{
			name: "the key is reserved before the body is read",
			plant: put(func(mem *sdktest.Mem, ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				if _, taken := mem.Content(req.Key); taken && req.IfAbsent {
					return sdk.PutResult{}, sdk.Exists
				}
				mem.Plant(req.Key, nil)
				content, err := io.ReadAll(req.Body.Reader())
				if err == nil {
					mem.Plant(req.Key, content)
				}
				return sdk.PutResult{}, err
			}),
			catches: []string{"a failed Put with IfAbsent does not take the key"},
		},
	}
}

// rendezvous holds the first caller for a key until the second is there.
type rendezvous struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

func newRendezvous() *rendezvous { return &rendezvous{waiting: map[string]chan struct{}{}} }

func (r *rendezvous) pair(key string) {
	r.mu.Lock()
	other, second := r.waiting[key]
	if second {
		r.waiting[key] = nil
		r.mu.Unlock()
		if other != nil {
			close(other)
		}
		return
	}
	mine := make(chan struct{})
	r.waiting[key] = mine
	r.mu.Unlock()
	<-mine
}
