package blobtarget

import (
	"context"
	"errors"
	"io"

	"gocloud.dev/blob"

	"github.com/cairnsync/cairn/sdk"
)

// open asks the store for exactly the range that was asked for. The size of the whole object comes with the answer, and with it the
// number of bytes that the body will yield.
func (t *target) open(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	r, err := t.bucket.NewRangeReader(ctx, req.Key, req.Offset, req.Length, nil)
	if err != nil {
		return sdk.GetResult{}, err
	}
	_, n, err := req.Range(r.Size())
	if err != nil {
		_ = r.Close() // the range is outside, whatever the close says
		return sdk.GetResult{}, err
	}
	return sdk.GetResult{Size: n, Body: &object{ctx: ctx, target: t, key: req.Key, reader: r}}, nil
}

// object is an open object. It offers Read and Close only: blob.Reader's WriteTo would allocate a buffer of 1 MiB for each.
type object struct {
	ctx    context.Context
	target *target
	key    string
	reader *blob.Reader
}

func (o *object) Read(p []byte) (int, error) {
	n, err := o.reader.Read(p)
	if err != nil && err != io.EOF {
		err = o.target.failed(o.ctx, "get", o.key, short(err))
	}
	return n, err
}

func (o *object) Close() error { return o.reader.Close() }

// short gives an object that ends before its declared size the code that the contract has for it.
func short(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &sdk.Error{Code: sdk.Corrupt, Err: err}
	}
	return err
}
