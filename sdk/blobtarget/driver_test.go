package blobtarget_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
)

// script is a driver that answers what a test wrote down: the stores that the exam's memory bucket is not.
type script struct {
	driver.Bucket // methods that no test needs are not there

	pages    [][]string // keys of each page of every listing
	object   string     // content of every key
	write    func(ctx context.Context, p []byte) error
	close    func(ctx context.Context) error
	delete   func(key string) error
	code     gcerrors.ErrorCode // of every error
	mu       sync.Mutex
	calls    []string
	unclosed int // readers
}

var errStore = errors.New("the store says no")

func (s *script) target(hooks blobtarget.Hooks) sdk.Target {
	return blobtarget.New(blob.NewBucket(s), hooks)
}

func (s *script) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *script) ErrorCode(error) gcerrors.ErrorCode { return s.code }
func (s *script) ErrorAs(err error, i any) bool      { return errors.As(err, i) }
func (s *script) As(any) bool                        { return false }
func (s *script) Close() error                       { return nil }

func (s *script) ListPaged(_ context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	s.note("list")
	if opts.BeforeList != nil {
		if err := opts.BeforeList(func(i any) bool { *i.(*string) = string(opts.PageToken); return true }); err != nil {
			return nil, err
		}
	}
	n := len(opts.PageToken)
	if n == len(s.pages) {
		return nil, errStore
	}
	page := &driver.ListPage{}
	for _, key := range s.pages[n] {
		size := int64(len(key))
		if strings.HasSuffix(key, "?") {
			size = -1
		}
		page.Objects = append(page.Objects, &driver.ListObject{Key: strings.TrimSuffix(key, "?"), Size: size, ModTime: time.Unix(1, 0)})
	}
	if n+1 < len(s.pages) {
		page.NextPageToken = []byte(strings.Repeat("x", n+1))
	}
	return page, nil
}

func (s *script) NewRangeReader(_ context.Context, _ string, off, n int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	s.note("get")
	if s.object == "" {
		return nil, errStore
	}
	s.unclosed++
	content := s.object[min(off, int64(len(s.object))):]
	if n >= 0 {
		content = content[:min(n, int64(len(content)))]
	}
	return &scriptReader{Reader: strings.NewReader(content), script: s}, nil
}

type scriptReader struct {
	io.Reader
	script *script
}

func (r *scriptReader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: int64(len(r.script.object))}
}
func (r *scriptReader) As(any) bool  { return false }
func (r *scriptReader) Close() error { r.script.unclosed--; return nil }

func (s *script) NewTypedWriter(ctx context.Context, _, _ string, _ *driver.WriterOptions) (driver.Writer, error) {
	s.note("put")
	return &scriptWriter{ctx: ctx, script: s}, nil
}

type scriptWriter struct {
	ctx    context.Context
	script *script
}

func (w *scriptWriter) Write(p []byte) (int, error) {
	if w.script.write != nil {
		if err := w.script.write(w.ctx, p); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (w *scriptWriter) Close() error { return w.script.close(w.ctx) }

func (s *script) Delete(_ context.Context, key string, _ *driver.DeleteOptions) error {
	s.note("delete " + key)
	return s.delete(key)
}

// keysOf lists until the end or an error.
func keysOf(t *testing.T, target sdk.Target, req sdk.ListRequest) (keys []string, err error) {
	t.Helper()
	for obj, err := range target.List(t.Context(), req) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, obj.Key)
	}
	return keys, nil
}

// wantError checks the code, what was being done, and that text and hint hold the words.
func wantError(t *testing.T, err error, code sdk.Code, op, key string, words ...string) {
	t.Helper()
	var e *sdk.Error
	if !errors.As(err, &e) || sdk.CodeOf(err) != code || e.Op != op || e.Key != key {
		t.Errorf("got %#v: %v\nwant %s of %s %q", err, err, code, op, key)
		return
	}
	for _, word := range words {
		if all := e.Error() + " " + e.Hint; !strings.Contains(all, word) {
			t.Errorf("%q does not say %q", all, word)
		}
	}
}

// cutScript is a script whose objects end in an error.
type cutScript struct {
	script
	err error
}

func (s *cutScript) bucket() *blob.Bucket { return blob.NewBucket(s) }

func (s *cutScript) NewRangeReader(ctx context.Context, key string, off, n int64, opts *driver.ReaderOptions) (driver.Reader, error) {
	r, err := s.script.NewRangeReader(ctx, key, off, n, opts)
	cut := r.(*scriptReader)
	cut.Reader = io.MultiReader(cut.Reader, iotest.ErrReader(s.err))
	return cut, err
}
