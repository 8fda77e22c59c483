package blobtarget

import (
	"context"
	"fmt"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/cairnsync/cairn/sdk"
)

// copyBuffer is what a Copy holds of its body besides what the writer buffers, in bytes.
const copyBuffer = 64 << 10

// write is the portable Put. Closing a blob.Writer publishes what has been written, so every failure cancels it first.
func (t *target) write(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := t.bucket.NewWriter(ctx, req.Key, &blob.WriterOptions{
		ContentType: "application/octet-stream",
		IfNotExist:  req.IfAbsent,
	})
	if err != nil {
		return sdk.PutResult{}, err
	}
	if fault := Copy(ctx, w, req.Body); fault != nil {
		cancel()
		_ = w.Close() // its error only tells that it was cancelled
		return sdk.PutResult{}, existed(req, fault)
	}
	return sdk.PutResult{}, existed(req, w.Close())
}

// Copy is for a Hooks.Put that has a vendor's writer: it writes the body, in one pass that is held to its digest, and stops when ctx ends. An
// error of the body is told rather than what the writer made of it. After an error w must not complete the object.
func Copy(ctx context.Context, w io.Writer, body sdk.Body) error {
	src := &source{ctx: ctx, body: body.Reader()}
	// The bare Writer: with its ReadFrom the driver would choose a buffer of its own.
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, src, make([]byte, min(copyBuffer, max(body.Size(), 1))))
	switch {
	case src.err != nil:
		return src.err
	case err != nil:
		return err
	case n != body.Size():
		return &sdk.Error{Code: sdk.Corrupt, Err: fmt.Errorf("%d of the body's %d bytes were read", n, body.Size())}
	}
	return ctx.Err()
}

// existed reads a failed precondition of a conditional write as Exists. NewWriter's errors do not come here: a closed bucket is a
// failed precondition too.
func existed(req sdk.PutRequest, err error) error {
	code := gcerrors.Code(err)
	if req.IfAbsent && (code == gcerrors.FailedPrecondition || code == gcerrors.AlreadyExists) {
		return &sdk.Error{Code: sdk.Exists, Err: err}
	}
	return err
}

// source is a body that stops when ctx ends, and remembers why it failed.
type source struct {
	ctx  context.Context
	body io.Reader
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err = s.ctx.Err(); s.err != nil {
		return 0, s.err
	}
	n, err := s.body.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
