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

func getFaults() []fault {
	get := func(change func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error)) func(*sdktest.Mem) sdk.Target {
		return func(mem *sdktest.Mem) sdk.Target {
			return &broken{Mem: mem, get: func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) { return change(mem, ctx, req) }}
		}
	}
	return []fault{
		{
			name: "an absent key is an empty object",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				res, err := mem.Get(ctx, req)
				if errors.Is(err, sdk.NotFound) {
					return sdk.GetResult{Body: io.NopCloser(strings.NewReader(""))}, nil
				}
				return res, err
			}),
			catches: []string{"Get of a key that was never stored answers NotFound", "a deleted object is neither read nor listed"},
		},
		{
			name: "the first key that begins so is taken",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				for _, key := range mem.Keys() {
					if strings.HasPrefix(key, req.Key) {
						req.Key = key
					}
				}
				return mem.Get(ctx, req)
			}),
			catches: []string{"Get does not take the beginning of a key for an object"},
		},
		{
			name: "Length is taken for the last byte, as in an HTTP range",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				if req.Length > 0 {
					req.Length++
				}
				return mem.Get(ctx, req)
			}),
			catches: []string{"a range is exactly the bytes asked for"},
		},
		{
			name: "a reader goes on in the object that has replaced its own",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				res, err := mem.Get(ctx, req)
				if err == nil {
					res.Body = io.NopCloser(&follower{mem: mem, key: req.Key})
				}
				return res, err
			}),
			catches: []string{"an object that is replaced while it is read is never a mix of the old and the new"},
		},
		{
			name: "an offset has 24 bits",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				req.Offset %= 1 << 24
				return mem.Get(ctx, req)
			}),
			catches: []string{"ranges of one large object can be read at the same time"},
		},
		{
			name: "a range past the end is refused",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				if content, ok := mem.Content(req.Key); ok && req.Offset+req.Length > int64(len(content)) {
					return sdk.GetResult{}, sdk.Corrupt
				}
				return mem.Get(ctx, req)
			}),
			catches: []string{"a range that reaches past the end yields what there is"},
		},
		{
			name: "a range after the end is empty",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				if content, ok := mem.Content(req.Key); ok && req.Offset >= int64(len(content)) {
					return sdk.GetResult{Body: io.NopCloser(strings.NewReader(""))}, nil
				}
				return mem.Get(ctx, req)
			}),
			catches: []string{"a range that begins after the last byte is Corrupt"},
		},
		{
			name: "the size is that of the object, not of the range",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				res, err := mem.Get(ctx, req)
				content, _ := mem.Content(req.Key)
				res.Size = int64(len(content))
				return res, err
			}),
			catches: []string{"Size is the number of bytes that Body yields"},
		},
		{
			name: "a body closed early fails",
			plant: get(func(mem *sdktest.Mem, ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				res, err := mem.Get(ctx, req)
				if err == nil {
					res.Body = &strict{Reader: res.Body}
				}
				return res, err
			}),
			catches: []string{"a body may be closed before its end"},
		},
		{
			name: "readers of one object share a position",
			plant: func(mem *sdktest.Mem) sdk.Target {
				var mu sync.Mutex
				open := map[string]*oneAtATime{}
				return &broken{Mem: mem, get: func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
					mu.Lock()
					defer mu.Unlock()
					res, err := mem.Get(ctx, req)
					if err != nil {
						return res, err
					}
					if open[req.Key] == nil {
						open[req.Key] = &oneAtATime{Reader: res.Body}
					}
					res.Body = io.NopCloser(open[req.Key])
					return res, nil
				}}
			},
			catches: []string{"Gets of one object at the same time each yield all of it"},
		},
	}
}

// follower reads whatever lies under a key at the moment of each read.
type follower struct {
	mem *sdktest.Mem
	key string
	pos int
}

func (f *follower) Read(p []byte) (int, error) {
	content, _ := f.mem.Content(f.key)
	if f.pos >= len(content) {
		return 0, io.EOF
	}
	n := copy(p, content[f.pos:])
	f.pos += n
	return n, nil
}

// oneAtATime is a reader that may be shared.
type oneAtATime struct {
	mu sync.Mutex
	io.Reader
}

func (r *oneAtATime) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Reader.Read(p)
}

// strict is a body that must be read to its end.
type strict struct {
	io.Reader
	ended bool
}

func (s *strict) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.ended = errors.Is(err, io.EOF)
	return n, err
}

func (s *strict) Close() error {
	if !s.ended {
		return errors.New("closed before the end")
	}
	return nil
}
