package sdk_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
)

// shelfConfig is what an operator writes in the config block of a target.
type shelfConfig struct {
	Label    string   `cairn:"label,required" doc:"what to call the shelf in logs"`
	Capacity sdk.Size `cairn:"capacity" default:"64MiB" doc:"how much it holds"`
}

// shelf is a store in memory. A real plugin has its vendor's client here.
type shelf struct {
	log      hclog.Logger
	capacity int64

	mu    sync.Mutex
	items map[string]item
}

type item struct {
	content  []byte
	modified time.Time
}

var _ sdk.Target = (*shelf)(nil)

// openShelf does no I/O: a store that is down must not keep the plugin from starting.
func openShelf(_ context.Context, env sdk.Env, cfg shelfConfig) (sdk.Target, error) {
	log := env.Log.With("label", cfg.Label)
	return &shelf{log: log, capacity: int64(cfg.Capacity), items: map[string]item{}}, nil
}

func validateShelf(cfg shelfConfig) error {
	if cfg.Capacity < 1<<10 {
		return &sdk.Error{Code: sdk.InvalidConfig, Attribute: "capacity", Err: fmt.Errorf("%s is too small to be useful", cfg.Capacity), Hint: "give it 1KiB or more"}
	}
	return nil
}

// Put reads all of the body before it takes the lock: Reader fails instead of completing a damaged body, and then nothing is stored.
func (s *shelf) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	if err := ctx.Err(); err != nil {
		return sdk.PutResult{}, err
	}
	content, err := io.ReadAll(req.Body.Reader())
	if err != nil {
		return sdk.PutResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, taken := s.items[req.Key]
	if taken && req.IfAbsent {
		return sdk.PutResult{}, &sdk.Error{Code: sdk.Exists, Op: "put", Key: req.Key}
	}
	if s.used()-len(old.content)+len(content) > int(s.capacity) {
		return sdk.PutResult{}, &sdk.Error{Code: sdk.NoSpace, Op: "put", Key: req.Key, Hint: "raise capacity"}
	}
	s.items[req.Key] = item{content: content, modified: time.Now()}
	s.log.Debug("object stored", "key", req.Key, "bytes", len(content))
	return sdk.PutResult{}, nil
}

func (s *shelf) used() (n int) {
	for _, item := range s.items {
		n += len(item.content)
	}
	return n
}

// Get leaves the arithmetic of ranges to the SDK.
func (s *shelf) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	if err := ctx.Err(); err != nil {
		return sdk.GetResult{}, err
	}
	s.mu.Lock()
	item, ok := s.items[req.Key]
	s.mu.Unlock()
	if !ok {
		return sdk.GetResult{}, &sdk.Error{Code: sdk.NotFound, Op: "get", Key: req.Key}
	}
	from, n, err := req.Range(int64(len(item.content)))
	if err != nil {
		return sdk.GetResult{}, err
	}
	return sdk.GetResult{Body: io.NopCloser(bytes.NewReader(item.content[from : from+n])), Size: n}, nil
}

// List yields from a copy, so that the caller may take its time.
func (s *shelf) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		s.mu.Lock()
		items := maps.Clone(s.items)
		s.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(items)) {
			if err := ctx.Err(); err != nil {
				yield(sdk.Object{}, err)
				return
			}
			if !strings.HasPrefix(key, req.Prefix) || key <= req.StartAfter {
				continue
			}
			if !yield(sdk.Object{Key: key, Size: int64(len(items[key].content)), Modified: items[key].modified}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(sdk.Object{}, err)
		}
	}
}

// Delete takes a missing key for done.
func (s *shelf) Delete(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.items, key)
	}
	return nil
}

func shelfPlugin() sdk.Plugin[shelfConfig] {
	return sdk.Plugin[shelfConfig]{
		Name:     "shelf",
		Version:  "0.1.0",
		Doc:      "keeps objects in memory until it ends",
		Validate: validateShelf,
		Open:     openShelf,
	}
}

// A complete plugin: a configuration, four methods, and a main that is one line,
//
//	func main() { rpc.Serve(shelfPlugin()) }
//
// Here it is served inside the process instead, and used as the host would.
func Example() {
	ctx := context.Background()
	client, stop, err := rpc.InProcess(ctx, shelfPlugin(), hclog.NewNullLogger(), rpc.Clocks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = stop() }()

	fmt.Println(client.Validate(ctx, []byte(`{"capacity": "10B"}`)))
	fmt.Println(client.Validate(ctx, []byte(`{"label": "top", "capacity": "10B"}`)))
	if err := client.Configure(ctx, rpc.Configuration{Target: "offsite", Config: []byte(`{"label": "top"}`)}); err != nil {
		fmt.Println(err)
		return
	}
	create := sdk.PutRequest{Key: "commit/1", Body: sdk.BytesBody([]byte("hello")), IfAbsent: true}
	for range 2 {
		_, err = client.Put(ctx, create)
		fmt.Println("create:", err)
	}
	res, err := client.Get(ctx, sdk.GetRequest{Key: "commit/1", Offset: 1, Length: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = res.Body.Close() }()
	part, err := io.ReadAll(res.Body)
	fmt.Printf("get: %q %v\n", part, err)
	// Output:
	// label: invalid configuration: a value is required
	// capacity: invalid configuration: 10B is too small to be useful
	// create: <nil>
	// create: put commit/1: already exists
	// get: "ell" <nil>
}
