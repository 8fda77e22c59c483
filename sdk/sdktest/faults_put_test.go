package sdktest_test

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// raw stores what the body's source yields, unchecked.
func raw(mem *sdktest.Mem, req sdk.PutRequest) (sdk.PutResult, error) {
	if _, taken := mem.Content(req.Key); taken && req.IfAbsent {
		return sdk.PutResult{}, sdk.Exists
	}
	content, err := io.ReadAll(req.Body.Section())
	mem.Plant(req.Key, content)
	return sdk.PutResult{}, err
}

func putFaults() []fault {
	return []fault{
		{
			name: "objects above 5 MiB are cut there",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					if req.Body.Size() <= 5<<20 {
						return mem.Put(ctx, req)
					}
					mem.Plant(req.Key, make([]byte, 5<<20))
					return sdk.PutResult{}, nil
				}}
			},
			catches: []string{
				"Put stores an object that Get reads back byte for byte, whatever its size",
				"an object of MaxObject bytes is stored and read back byte for byte",
				"sizes around the usual limits of stores make no difference",
			},
		},
		{
			name: "keys are folded to lower case",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					req.Key = strings.ToLower(req.Key)
					return mem.Put(ctx, req)
				}}
			},
			catches: []string{"Put takes keys of every allowed byte and of the greatest length"},
		},
		{
			name: "only the hot class is known",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					if req.Class == sdk.ClassBulk {
						return sdk.PutResult{}, sdk.Unsupported
					}
					return mem.Put(ctx, req)
				}}
			},
			catches: []string{"Put stores objects of both classes"},
		},
		{
			name: "Put never replaces",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					req.IfAbsent = true
					return mem.Put(ctx, req)
				}}
			},
			catches: []string{
				"Put of an existing key without IfAbsent replaces it", "the same Put may come again",
				"an object that was created can be replaced without IfAbsent",
			},
		},
		{
			name: "a replaced object is written in place, so that a reader sees half of it",
			plant: func(mem *sdktest.Mem) sdk.Target {
				var mu sync.Mutex
				half := int64(-1)           // the size of a half object that waits for a reader
				seen := make(chan struct{}) // closed by the first that reads it; no more tearing then, for the readers may be gone
				tear := func(key string) bool {
					mu.Lock()
					defer mu.Unlock()
					old, replaces := mem.Content(key)
					select {
					case <-seen:
						return false
					default:
					}
					if replaces {
						mem.Plant(key, old[:len(old)/2])
						half = int64(len(old) / 2)
					}
					return replaces
				}
				return &broken{
					Mem: mem,
					put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
						if tear(req.Key) {
							<-seen
						}
						return mem.Put(ctx, req)
					},
					get: func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
						mu.Lock()
						defer mu.Unlock()
						res, err := mem.Get(ctx, req)
						if res.Size == half {
							close(seen)
							half = -1
						}
						return res, err
					},
				}
			},
			catches: []string{"a reader sees the old state or the complete object, never a part", "a large object that is replaced is never seen in part"},
		},
		{
			name: "the digest of the body is not looked at",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(_ context.Context, req sdk.PutRequest) (sdk.PutResult, error) { return raw(mem, req) }}
			},
			catches: []string{
				"a body whose digest does not agree is never stored", "a body that ends early is never stored",
				"a body whose file ends early is never stored", "a large body that is damaged at its very end is never stored",
				"a Put that fails leaves the old object as it was", "a failed Put with IfAbsent does not take the key",
			},
		},
		{
			name: "a read error of the body is told, but the object is closed as if it were complete",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(_ context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					content, err := io.ReadAll(req.Body.Reader())
					mem.Plant(req.Key, content)
					return sdk.PutResult{}, err
				}}
			},
			catches: []string{"a body that ends early is never stored", "a body whose digest does not agree is never stored"},
		},
		{
			name: "Put empties the old object before it reads the body",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					if !req.IfAbsent {
						mem.Plant(req.Key, nil)
					}
					return mem.Put(ctx, req)
				}}
			},
			catches: []string{"a Put that fails leaves the old object as it was"},
		},
		{
			name: "the digest answered is that of something else",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					_, err := mem.Put(ctx, req)
					return sdk.PutResult{SHA256: sdk.SumsOf([]byte("else")).SHA256}, err
				}}
			},
			catches: []string{"a digest that Put answers is that of the content"},
		},
		{
			name: "the version is that of the key, not of its content",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					res, err := mem.Put(ctx, req)
					res.Version = req.Key
					return res, err
				}}
			},
			catches: []string{"a version that Put answers is a name for this content, in printable text"},
		},
		{
			name: "the version is sixteen raw bytes",
			plant: func(mem *sdktest.Mem) sdk.Target {
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					res, err := mem.Put(ctx, req)
					res.Version = string(res.SHA256[:16])
					return res, err
				}}
			},
			catches: []string{"a version that Put answers is a name for this content, in printable text"},
		},
		{
			name: "objects of one size share a buffer",
			plant: func(mem *sdktest.Mem) sdk.Target {
				var mu sync.Mutex
				bySize := map[int64]string{}
				return &broken{Mem: mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					res, err := mem.Put(ctx, req)
					mu.Lock()
					defer mu.Unlock()
					if other := bySize[req.Body.Size()]; other != "" && err == nil {
						was, _ := mem.Content(other)
						mem.Plant(req.Key, was)
					}
					bySize[req.Body.Size()] = req.Key
					return res, err
				}}
			},
			catches: []string{"Puts at the same time do not mix", "64 Puts at the same time each store their own object"},
		},
	}
}
