package sdk

import (
	"errors"
	"fmt"
	"io"
)

// CheckGet says why a request breaks the contract: a key that CheckKey refuses, a negative offset, a length that is 0 or below -1.
func CheckGet(req GetRequest) error {
	if err := CheckKey(req.Key); err != nil {
		return err
	}
	if req.Offset < 0 || req.Length == 0 || req.Length < -1 {
		return &Error{Code: Unsupported, Err: fmt.Errorf("get of %d bytes at offset %d: want an offset of 0 or more and a length of -1, or of 1 or more", req.Length, req.Offset)}
	}
	return nil
}

// Range gives the bytes [from, from+n) of an object of size bytes that req asks for; Corrupt when the range begins after the last byte.
func (req GetRequest) Range(size int64) (from, n int64, err error) {
	if req.Offset == 0 && req.Length == -1 {
		return 0, size, nil
	}
	if req.Offset >= size {
		return 0, 0, &Error{Code: Corrupt, Op: "get", Key: req.Key, Err: fmt.Errorf("the range begins at byte %d of an object of %d bytes", req.Offset, size)}
	}
	if req.Length == -1 || req.Length > size-req.Offset {
		return req.Offset, size - req.Offset, nil
	}
	return req.Offset, req.Length, nil
}

// sizedReader holds a body to its declared size: one that ends early or goes on answers Corrupt, never a clean io.EOF.
type sizedReader struct {
	io.ReadCloser
	left, size int64
	err        error // sticky
}

func (r *sizedReader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err := r.ReadCloser.Read(p)
	r.left -= int64(n)
	switch {
	case r.left < 0:
		n, err = 0, r.corrupt("goes on after the %d bytes that the store declared", r.size)
	case (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) && r.left > 0:
		err = r.corrupt("ends %d bytes before the end of the %d that the store declared", r.left, r.size)
	}
	r.err = err
	return n, err
}

func (r *sizedReader) corrupt(format string, n ...any) error {
	return &Error{Code: Corrupt, Op: "get", Err: fmt.Errorf("the object "+format, n...)}
}
