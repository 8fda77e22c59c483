package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/cairnsync/cairn/sdk"
)

// calls is a store on top of whatever session is ready. Each call passes through it unchanged, but for two things: a hung process is
// reaped, and a call that lost its process says how the process ended.
type calls struct {
	ready func(ctx context.Context, op, key string) (*session, error)
}

// store is what the syncer wants of a target.
type store interface {
	sdk.Target
	Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error)
}

var (
	_ store = (*Supervisor)(nil)
	_ store = (*Store)(nil)
)

// Put implements sdk.Target.
func (c calls) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	s, err := c.ready(ctx, "put", req.Key)
	if err != nil {
		return sdk.PutResult{}, err
	}
	result, err := s.client.Put(ctx, req)
	result.Version = s.mask.bounded(result.Version)
	return result, s.settle(ctx, "put", req.Key, err)
}

// Get implements sdk.Target.
func (c calls) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	s, err := c.ready(ctx, "get", req.Key)
	if err != nil {
		return sdk.GetResult{}, err
	}
	result, err := s.client.Get(ctx, req)
	if err != nil {
		return sdk.GetResult{}, s.settle(ctx, "get", req.Key, err)
	}
	result.Body = &body{ReadCloser: result.Body, ctx: ctx, session: s, key: req.Key}
	return result, nil
}

// Fetch gets an object or a range of it straight into f at off and answers the number of bytes. f lies in the spool.
func (c calls) Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error) {
	s, err := c.ready(ctx, "get", req.Key)
	if err != nil {
		return 0, err
	}
	n, err := s.client.Fetch(ctx, req, f, off)
	return n, s.settle(ctx, "get", req.Key, err)
}

// List implements sdk.Target.
func (c calls) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		s, err := c.ready(ctx, "list", req.Prefix)
		if err != nil {
			yield(sdk.Object{}, err)
			return
		}
		for object, err := range s.client.List(ctx, req) {
			if !yield(object, s.settle(ctx, "list", req.Prefix, err)) || err != nil {
				return
			}
		}
	}
}

// Delete implements sdk.Target.
func (c calls) Delete(ctx context.Context, keys []string) error {
	s, err := c.ready(ctx, "delete", "")
	if err != nil {
		return err
	}
	return s.settle(ctx, "delete", "", s.client.Delete(ctx, keys))
}

// body watches the errors of a reply that is still being read.
type body struct {
	io.ReadCloser
	ctx     context.Context // of the Get, which bounds its reply too
	session *session
	key     string
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.session.settle(b.ctx, "get", b.key, err)
	}
	return n, err
}

// settle looks at the outcome of a call and masks the secrets in it. A process that hangs, or that lost its connection and lives, is reaped by its owner. A call that
// its caller did not cancel, and that ends as cancelled all the same, met the closing of the connection to a process that had ended.
func (s *session) settle(ctx context.Context, op, key string, err error) error {
	err = s.mask.error(err)
	switch {
	case errors.Is(err, sdk.Cancelled) && ctx.Err() == nil && s.proc.hasExited():
		return s.obituary(op, key, nil)
	case errors.Is(err, sdk.PluginHung):
		s.doom("hung during " + op + " and was killed")
	case errors.Is(err, sdk.PluginGone):
		return s.obituary(op, key, err)
	}
	return err
}

// obituary gives the exit a moment to arrive: the connection breaks before the process is reaped.
func (s *session) obituary(op, key string, err error) error {
	if !within(s.opts.Timeouts.Kill, s.proc.exited) {
		s.doom("lost its connection during " + op + " and was killed")
		return err
	}
	return gone(s.spec, op, key, Exit{Reason: s.proc.exit(), Stderr: s.lastWords()}, err)
}

// gone is the error of a call that has no process.
func gone(spec Spec, op, key string, exit Exit, err error) *sdk.Error {
	text := fmt.Sprintf("plugin %q of target %q %s", spec.Plugin, spec.Target, exit.Reason)
	if n := len(exit.Stderr); n > 0 && !exit.whole {
		text += "; its last lines: " + strings.Join(exit.Stderr[max(0, n-5):], " | ")
	}
	if err != nil && !errors.Is(err, sdk.PluginGone) {
		return &sdk.Error{Code: sdk.PluginGone, Op: op, Key: key, Err: fmt.Errorf("%s: %w", text, err)}
	}
	return &sdk.Error{Code: sdk.PluginGone, Op: op, Key: key, Err: errors.New(text)}
}
