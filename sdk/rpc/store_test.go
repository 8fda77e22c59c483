package rpc

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cairnsync/cairn/sdk"
)

// store is as little of a target as the tests of this package need; sdktest.Mem, the real one, imports this package.
type store struct {
	puts    atomic.Int64
	mu      sync.Mutex
	objects map[string][]byte
}

func newStore() *store { return &store{objects: map[string][]byte{}} }

func (s *store) content(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key]
}

func (s *store) plant(key string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = content
}

func (s *store) Put(_ context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	s.puts.Add(1)
	content, err := io.ReadAll(req.Body.Reader())
	if err != nil {
		return sdk.PutResult{}, err
	}
	s.plant(req.Key, content)
	return sdk.PutResult{Version: "v1", SHA256: req.Body.SHA256()}, nil
}

func (s *store) Get(_ context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	content := s.content(req.Key)
	if content == nil {
		return sdk.GetResult{}, sdk.NotFound
	}
	from, n, err := req.Range(int64(len(content)))
	return sdk.GetResult{Body: io.NopCloser(bytes.NewReader(content[from : from+n])), Size: n}, err
}

func (s *store) List(context.Context, sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		s.mu.Lock()
		var keys []string
		for key := range s.objects {
			keys = append(keys, key)
		}
		s.mu.Unlock()
		slices.Sort(keys)
		for _, key := range keys {
			if !yield(sdk.Object{Key: key}, nil) {
				return
			}
		}
	}
}

func (s *store) Delete(_ context.Context, keys []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.objects, key)
	}
	return nil
}
