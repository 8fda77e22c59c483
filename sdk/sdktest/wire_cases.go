package sdktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

func wireCases() []Case {
	return []Case{
		{"a Get into a spool file writes exactly the object's bytes, exactly where it is told to", Process, fetchInto},
		{"a body is a range of a spool file: nothing before or behind it is stored", Process, putRange},
		{"a spool file that is no regular file is refused, and at once", Process, irregularSpool},
		{"a spool file that is not there is an error of that call only", Process, missingSpool},
		{"an error crosses the wire with its code, what was done to what, and a text that can be shown", Process, errorsCross},
	}
}

// spoolFile makes a file in the spool that holds p.
func (e *Env) spoolFile(p []byte) (f *os.File, done func(), err error) {
	if e.Spool == "" {
		return nil, nil, errors.New("the exam of a process needs a spool")
	}
	if f, err = os.CreateTemp(e.Spool, "exam-*"); err != nil {
		return nil, nil, err
	}
	done = func() {
		f.Close()
		_ = os.Remove(f.Name()) // the spool's owner empties it at the next start
	}
	if _, err = f.Write(p); err != nil {
		done()
		return nil, nil, err
	}
	return f, done, nil
}

func fetchInto(ctx context.Context, e *Env) error {
	return e.withConfigured(ctx, func(i Instance) error {
		want := content(2<<20+77, 1)
		if err := e.put(ctx, "fetched", want); err != nil {
			return err
		}
		for _, r := range []struct{ at, offset, length int64 }{{0, 0, -1}, {1000, 5, 1_500_000}, {4096, 2 << 20, 1000}, {1, 1, -1}} {
			if err := e.fetched(ctx, i, want, r.at, sdk.GetRequest{Key: e.key("fetched"), Offset: r.offset, Length: r.length}); err != nil {
				return fmt.Errorf("fetch of %d bytes at %d to byte %d of a file: %w", r.length, r.offset, r.at, err)
			}
		}
		return nil
	})
}

// fetched looks at every byte of the file, also at those that were none of the plugin's business.
func (e *Env) fetched(ctx context.Context, i Instance, object []byte, at int64, req sdk.GetRequest) error {
	const size = 3 << 20
	f, done, err := e.spoolFile(bytes.Repeat([]byte{0xa5}, size))
	if err != nil {
		return err
	}
	defer done()
	from, n, err := req.Range(int64(len(object)))
	if err != nil {
		return err
	}
	got, err := i.Fetch(ctx, req, f, at)
	if err != nil {
		return err
	}
	have, err := io.ReadAll(io.NewSectionReader(f, 0, size+1))
	switch untouched := []byte{0xa5}; {
	case err != nil:
		return err
	case got != n:
		return fmt.Errorf("%d bytes; want %d", got, n)
	case !bytes.Equal(have[at:at+n], object[from:from+n]):
		return errors.New("the file does not hold the object's bytes")
	case len(have) != size || bytes.Count(have[:at], untouched) != int(at) || bytes.Count(have[at+n:], untouched) != int(size-at-n):
		return errors.New("the file was changed outside of the range")
	}
	return nil
}

func putRange(ctx context.Context, e *Env) error {
	return e.withConfigured(ctx, func(i Instance) error {
		const n = sdk.MaxInline + 1
		all := content(3*n, 1)
		f, done, err := e.spoolFile(all)
		if err != nil {
			return err
		}
		defer done()
		for _, off := range []int{0, 1, n, 2 * n} {
			want := all[off : off+n]
			if _, err := i.Put(ctx, sdk.PutRequest{Key: e.key("range"), Body: sdk.FileBody(f, int64(off), n, sdk.SumsOf(want))}); err != nil {
				return fmt.Errorf("put of %d bytes at %d of a file: %w", n, off, err)
			}
			if err := e.holds(ctx, e.Target, "range", want); err != nil {
				return fmt.Errorf("put of %d bytes at %d of a file: %w", n, off, err)
			}
		}
		return nil
	})
}

// irregularSpool puts a FIFO, which would hold the call for ever, and a link, which leads out of the spool, in the place of a spool file.
func irregularSpool(ctx context.Context, e *Env) error {
	return e.withConfigured(ctx, func(i Instance) error {
		want := content(sdk.MaxInline+1, 1)
		f, done, err := e.spoolFile(want)
		if err != nil {
			return err
		}
		defer done()
		outside, err := os.CreateTemp("", "cairn-exam-*")
		if err != nil {
			return err
		}
		defer func() {
			outside.Close()
			_ = os.Remove(outside.Name()) // it is in the temporary folder
		}()
		if _, err := outside.Write(want); err != nil {
			return err
		}
		for _, irregular := range []struct {
			what string
			make func(path string) error
		}{
			{"a link out of the spool", func(path string) error { return os.Symlink(outside.Name(), path) }},
			{"a FIFO", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
			{"a directory", func(path string) error { return os.Mkdir(path, 0o700) }},
		} {
			what := irregular.what
			if err := errors.Join(os.Remove(f.Name()), irregular.make(f.Name())); err != nil {
				return fmt.Errorf("make %s: %w", what, err)
			}
			soon, cancel := context.WithTimeout(ctx, answersSoon)
			_, err := i.Put(soon, sdk.PutRequest{Key: e.key("irregular"), Body: sdk.FileBody(f, 0, int64(len(want)), sdk.SumsOf(want))})
			late := soon.Err()
			cancel()
			switch {
			case err == nil:
				return fmt.Errorf("put from %s succeeds", what)
			case late != nil:
				return fmt.Errorf("put from %s has not been refused within %s", what, answersSoon)
			}
			if err := e.absent(ctx, "irregular"); err != nil {
				return err
			}
		}
		return e.works(ctx, i, "after-irregular")
	})
}

func missingSpool(ctx context.Context, e *Env) error {
	return e.withConfigured(ctx, func(i Instance) error {
		want := content(sdk.MaxInline+1, 1)
		f, done, err := e.spoolFile(want)
		if err != nil {
			return err
		}
		defer done()
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
		soon, cancel := context.WithTimeout(ctx, answersSoon)
		defer cancel()
		_, err = i.Put(soon, sdk.PutRequest{Key: e.key("missing"), Body: sdk.FileBody(f, 0, int64(len(want)), sdk.SumsOf(want))})
		if err == nil || soon.Err() != nil || errors.Is(err, sdk.PluginGone) {
			return fmt.Errorf("put from %s, which is not there: %v", filepath.Base(f.Name()), err)
		}
		if err := e.absent(ctx, "missing"); err != nil {
			return err
		}
		return e.works(ctx, i, "after-missing")
	})
}

func errorsCross(ctx context.Context, e *Env) error {
	return e.withConfigured(ctx, func(i Instance) error {
		own := e.through(i)
		if err := own.put(ctx, "there", []byte("x")); err != nil {
			return err
		}
		_, _, absent := get(ctx, i, whole(e.key("absent")))
		_, _, after := get(ctx, i, sdk.GetRequest{Key: e.key("there"), Offset: 100, Length: 1})
		for _, c := range []struct {
			err     error
			op, key string
			code    sdk.Code
		}{
			{absent, "get", e.key("absent"), sdk.NotFound},
			{after, "get", e.key("there"), sdk.Corrupt},
			{own.create(ctx, i, "there", []byte("y")), "put", e.key("there"), sdk.Exists},
		} {
			what := c.op + " of " + c.key
			if c.code == sdk.Exists && errors.Is(c.err, sdk.Unsupported) {
				continue // the level Conditional says so
			}
			if err := wantCode(c.err, c.code, what); err != nil {
				return err
			}
			var fault *sdk.Error
			if !errors.As(c.err, &fault) || fault.Op != c.op || fault.Key != c.key || fault.RetryAfter < 0 || fault.RetryAfter > time.Hour {
				return fmt.Errorf("the error of %s does not say what was done to what: %#v", what, fault)
			}
			if err := presentable(c.err, what); err != nil {
				return err
			}
		}
		return nil
	})
}
