package sdk

import (
	"context"
	"fmt"
	"iter"
	"strings"
)

// Guard holds both sides of a Target to the contract: arguments are checked before the inner Target sees them, bodies are held to the
// size that was declared, a Put whose store attests another digest than the body's is Corrupt, and a listing that is out of order, or holds
// what was not asked for, ends in an error that calls it the plugin's defect. The SDK puts it around every plugin's Target, and the host around whatever a plugin in any language answers.
func Guard(t Target) Target { return guard{t} }

type guard struct{ inner Target }

func (g guard) Put(ctx context.Context, req PutRequest) (PutResult, error) {
	if err := checkPut(req); err != nil {
		return PutResult{}, fill(err, "put", req.Key)
	}
	res, err := g.inner.Put(ctx, req)
	if sent := req.Body.SHA256(); err == nil && res.SHA256 != [32]byte{} && res.SHA256 != sent {
		return PutResult{}, &Error{
			Code: Corrupt, Op: "put", Key: req.Key, Err: fmt.Errorf("the store attests the SHA-256 %x of what it stored, and %x was sent", res.SHA256, sent),
		}
	}
	return res, err
}

func checkPut(req PutRequest) error {
	if err := CheckKey(req.Key); err != nil {
		return err
	}
	if size := req.Body.Size(); size < 0 || size > MaxObject {
		return &Error{Code: Unsupported, Err: fmt.Errorf("an object of %d bytes; at most %d are allowed", size, MaxObject)}
	}
	return nil
}

func (g guard) Get(ctx context.Context, req GetRequest) (GetResult, error) {
	if err := CheckGet(req); err != nil {
		return GetResult{}, fill(err, "get", req.Key)
	}
	res, err := g.inner.Get(ctx, req)
	switch {
	case err != nil:
		return GetResult{}, err
	case res.Body == nil:
		return GetResult{}, defect("get", req.Key, "answers neither a body nor an error")
	case res.Size < 0 || req.Length > 0 && res.Size > req.Length:
		res.Body.Close()
		return GetResult{}, defect("get", req.Key, "declares %d bytes where %d were asked for", res.Size, req.Length)
	}
	res.Body = &sizedReader{ReadCloser: res.Body, left: res.Size, size: res.Size}
	return res, nil
}

func (g guard) List(ctx context.Context, req ListRequest) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, part := range []string{req.Prefix, req.StartAfter} {
			if err := CheckPrefix(part); err != nil {
				yield(Object{}, fill(err, "list", req.Prefix))
				return
			}
		}
		last := req.StartAfter
		for obj, err := range g.inner.List(ctx, req) {
			if err == nil {
				err = checkListed(req, last, obj)
			}
			if err != nil {
				yield(Object{}, err)
				return
			}
			last = obj.Key
			if CheckKey(obj.Key) == nil && !yield(obj, nil) {
				return
			}
		}
	}
}

func checkListed(req ListRequest, last string, obj Object) error {
	switch {
	case !strings.HasPrefix(obj.Key, req.Prefix):
		return defect("list", req.Prefix, "lists %q, which does not begin with the prefix", obj.Key)
	case obj.Key <= last:
		return defect("list", req.Prefix, "lists %q after %q", obj.Key, last)
	case obj.Size < 0:
		return defect("list", req.Prefix, "lists %q with a size of %d bytes", obj.Key, obj.Size)
	}
	return nil
}

func (g guard) Delete(ctx context.Context, keys []string) error {
	if len(keys) > MaxDelete {
		return &Error{Code: Unsupported, Op: "delete", Err: fmt.Errorf("%d keys at once; at most %d are allowed", len(keys), MaxDelete)}
	}
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return fill(err, "delete", key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return g.inner.Delete(ctx, keys)
}

// fill adds what was being done to a fault of an argument.
func fill(err error, op, key string) error {
	if e, ok := err.(*Error); ok {
		e.Op, e.Key = op, key
	}
	return err
}

func defect(op, key, format string, args ...any) error {
	return &Error{Code: Internal, Op: op, Key: key, Err: fmt.Errorf("the plugin breaks its contract: it "+format, args...)}
}
