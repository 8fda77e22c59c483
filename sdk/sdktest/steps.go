package sdktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// key is a key of this case.
func (e *Env) key(name string) string { return e.Prefix + "/" + name }

// body is content as a body that this target can take, with sums that may be those of something else. done gives its file back.
func (e *Env) body(content []byte, sums sdk.Sums) (body sdk.Body, done func(), err error) {
	size := int64(len(content))
	if size <= sdk.MaxInline || e.Spool == "" {
		return sdk.NewBody(bytes.NewReader(content), size, sums), func() {}, nil
	}
	f, err := os.CreateTemp(e.Spool, "exam-*")
	if err != nil {
		return sdk.Body{}, nil, err
	}
	done = func() {
		f.Close()
		_ = os.Remove(f.Name()) // the spool's owner empties it at the next start
	}
	if _, err := f.Write(content); err != nil {
		done()
		return sdk.Body{}, nil, err
	}
	return sdk.FileBody(f, 0, size, sums), done, nil
}

// store puts content with its own sums.
func (e *Env) store(ctx context.Context, req sdk.PutRequest, content []byte) (sdk.PutResult, error) {
	body, done, err := e.body(content, sdk.SumsOf(content))
	if err != nil {
		return sdk.PutResult{}, err
	}
	defer done()
	req.Body = body
	return e.Target.Put(ctx, req)
}

// put stores content under a name of this case and must succeed.
func (e *Env) put(ctx context.Context, name string, content []byte) error {
	if _, err := e.store(ctx, sdk.PutRequest{Key: e.key(name)}, content); err != nil {
		return fmt.Errorf("put %s (%d bytes): %w", name, len(content), err)
	}
	return nil
}

// putAll stores a small object under each name, several at once.
func (e *Env) putAll(ctx context.Context, names ...string) error {
	const atOnce = 16
	return together(atOnce, func(worker int) error {
		for i := worker; i < len(names); i += atOnce {
			if err := e.put(ctx, names[i], []byte(names[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// get reads a request to its end. size is what the target declared.
func get(ctx context.Context, t sdk.Target, req sdk.GetRequest) (content []byte, size int64, err error) {
	res, err := t.Get(ctx, req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	content, err = io.ReadAll(res.Body)
	return content, res.Size, err
}

func whole(key string) sdk.GetRequest { return sdk.GetRequest{Key: key, Length: -1} }

// holds fails unless target has exactly this content under name.
func (e *Env) holds(ctx context.Context, target sdk.Target, name string, want []byte) error {
	have, size, err := get(ctx, target, whole(e.key(name)))
	switch {
	case err != nil:
		return fmt.Errorf("read %s back: %w", name, err)
	case size != int64(len(have)):
		return fmt.Errorf("read %s back: %d bytes declared, %d came", name, size, len(have))
	case !bytes.Equal(have, want):
		return fmt.Errorf("read %s back: %d bytes that are not the %d bytes stored", name, len(have), len(want))
	}
	return nil
}

// absent fails unless the target says that name is not there.
func (e *Env) absent(ctx context.Context, name string) error {
	_, _, err := get(ctx, e.Target, whole(e.key(name)))
	return wantCode(err, sdk.NotFound, "get of "+name)
}

// list gives the keys of a listing, which must succeed.
func (e *Env) list(ctx context.Context, req sdk.ListRequest) (keys []string, err error) {
	for obj, err := range e.Target.List(ctx, req) {
		if err != nil {
			return keys, fmt.Errorf("list %q after %q: %w", req.Prefix, req.StartAfter, err)
		}
		keys = append(keys, obj.Key)
	}
	return keys, nil
}

func wantCode(err error, code sdk.Code, what string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s succeeds; want %s", what, code)
	case sdk.CodeOf(err) != code:
		return fmt.Errorf("%s answers %s; want %s: %w", what, sdk.CodeOf(err), code, err)
	}
	return nil
}

// together runs n workers at once and joins their errors.
func together(n int, work func(worker int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// second is another instance of the same store.
func (e *Env) second(ctx context.Context) (sdk.Target, error) {
	if e.Reopen == nil {
		return nil, skipped("there is no second instance of this target")
	}
	again, err := e.Reopen(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the store again: %w\n%s", err, firstIsOpen)
	}
	return again, nil
}

// promptly fails unless call returns within e.soon of the end of its context. A call that never returns is left behind.
func (e *Env) promptly(what string, call func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	late := time.NewTimer(e.soon)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		return fmt.Errorf("%s has not returned %s after its context ended", what, e.soon)
	}
}
