package sdktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// Mem is a store in memory that keeps the contract exactly: the real small thing to test against. It is its own Target; any number of
// users may share one, as they would share a bucket. Its clock starts in the year 2000 and advances by a second with each Put.
type Mem struct {
	mu      sync.Mutex
	puts    int
	objects map[string]memObject
}

type memObject struct {
	content  []byte // never modified once stored
	modified time.Time
}

var _ sdk.Target = (*Mem)(nil)

// NewMem is an empty store.
func NewMem() *Mem { return &Mem{objects: map[string]memObject{}} }

// Put stores a copy of the body.
func (m *Mem) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	if err := first(ended(ctx), sdk.CheckKey(req.Key)); err != nil {
		return sdk.PutResult{}, failed("put", req.Key, err)
	}
	var content bytes.Buffer
	content.Grow(int(req.Body.Size()) + bytes.MinRead)
	if _, err := io.Copy(&content, req.Body.Reader()); err != nil {
		return sdk.PutResult{}, failed("put", req.Key, err)
	}
	if err := ended(ctx); err != nil {
		return sdk.PutResult{}, failed("put", req.Key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.objects[req.Key]; taken && req.IfAbsent {
		return sdk.PutResult{}, failed("put", req.Key, sdk.Exists)
	}
	m.puts++
	stored := memObject{content: content.Bytes(), modified: time.Date(2000, 1, 1, 0, 0, m.puts, 0, time.UTC)}
	m.objects[req.Key] = stored
	return sdk.PutResult{Version: strconv.Itoa(m.puts), SHA256: sha256.Sum256(stored.content)}, nil
}

// Get opens an object; what it holds at this moment is what the body yields, whatever happens to the key meanwhile.
func (m *Mem) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	if err := first(ended(ctx), sdk.CheckGet(req)); err != nil {
		return sdk.GetResult{}, failed("get", req.Key, err)
	}
	content, ok := m.Content(req.Key)
	if !ok {
		return sdk.GetResult{}, failed("get", req.Key, sdk.NotFound)
	}
	from, n, err := req.Range(int64(len(content)))
	if err != nil {
		return sdk.GetResult{}, err
	}
	return sdk.GetResult{Body: io.NopCloser(bytes.NewReader(content[from : from+n])), Size: n}, nil
}

// List yields the keys as they were when the listing began.
func (m *Mem) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		for _, obj := range m.snapshot(req) {
			if err := ended(ctx); err != nil {
				yield(sdk.Object{}, failed("list", req.Prefix, err))
				return
			}
			if !yield(obj, nil) {
				return
			}
		}
		if err := ended(ctx); err != nil {
			yield(sdk.Object{}, failed("list", req.Prefix, err))
		}
	}
}

func (m *Mem) snapshot(req sdk.ListRequest) []sdk.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	var objects []sdk.Object
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if strings.HasPrefix(key, req.Prefix) && key > req.StartAfter {
			obj := m.objects[key]
			objects = append(objects, sdk.Object{Key: key, Size: int64(len(obj.content)), Modified: obj.modified})
		}
	}
	return objects
}

// Delete removes the keys, all in one moment.
func (m *Mem) Delete(ctx context.Context, keys []string) error {
	if err := ended(ctx); err != nil {
		return failed("delete", "", err)
	}
	if len(keys) > sdk.MaxDelete {
		return failed("delete", "", fmt.Errorf("%d keys at once: %w", len(keys), sdk.Unsupported))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.objects, key)
	}
	return nil
}

// Content is what a key holds, for a test that looks into the store behind its user's back. It must not be modified.
func (m *Mem) Content(key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	obj, ok := m.objects[key]
	return obj.content, ok
}

// Keys are all keys, ascending.
func (m *Mem) Keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

// Plant stores content behind the user's back: a foreign object, a damaged one.
func (m *Mem) Plant(key string, content []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.puts++
	m.objects[key] = memObject{content: bytes.Clone(content), modified: time.Date(2000, 1, 1, 0, 0, m.puts, 0, time.UTC)}
}

func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", sdk.Cancelled, context.Cause(ctx))
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func failed(op, key string, err error) error {
	return &sdk.Error{Code: sdk.CodeOf(err), Op: op, Key: key, Err: err}
}
