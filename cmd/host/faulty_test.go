package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing/iotest"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// faultyPlugin is the name under which this test binary plays a plugin: a folder as a store, with faults as the configuration says.
const faultyPlugin = "cairn-plugin-faulty"

type faultyConfig struct {
	Path    string `cairn:"path,required" doc:"the folder that holds the objects"`
	Percent int64  `cairn:"percent" default:"0" doc:"of a hundred calls so many fail: half of them are never made, of the others only the reply is lost"`
	Seed    int64  `cairn:"seed" default:"1" doc:"the draw of the faults"`
	Lies    bool   `cairn:"lies" default:"false" doc:"take every create, as if nobody had asked for a condition"`
	Locked  bool   `cairn:"locked" default:"false" doc:"deny every delete"`
	Down    bool   `cairn:"down" default:"false" doc:"answer that the credentials are not accepted"`
	Calls   string `cairn:"calls" default:"" doc:"file that gets a line for each call and one for each fault"`
}

// playFaulty is the plugin's main.
func playFaulty() {
	rpc.Serve(sdk.Plugin[faultyConfig]{
		Name: "faulty", Version: "0.1.0", Doc: "a folder that fails",
		Open: func(_ context.Context, _ sdk.Env, cfg faultyConfig) (sdk.Target, error) { return openFaulty(cfg) },
	})
}

func openFaulty(cfg faultyConfig) (sdk.Target, error) {
	calls := io.Discard
	if cfg.Calls != "" {
		f, err := os.OpenFile(cfg.Calls, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		calls = f
	}
	var store sdk.Target = folder(cfg.Path)
	if cfg.Lies {
		store = unconditional{store}
	}
	d := &dice{locked: cfg.Locked, down: cfg.Down, percent: cfg.Percent, calls: calls, rand: mathrand.New(mathrand.NewPCG(uint64(cfg.Seed), uint64(os.Getpid())))}
	return &sdktest.Faulty{Target: store, Before: d.before, After: d.after, Body: d.body}, nil
}

// dice draws the faults.
type dice struct {
	percent      int64
	locked, down bool

	mu    sync.Mutex
	calls io.Writer
	rand  *mathrand.Rand
}

// fault draws one, and notes it.
func (d *dice) fault(percent int64, call sdktest.Call) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rand.Int64N(100) >= percent {
		return false
	}
	fmt.Fprintln(d.calls, "fault:", call.Op, call.Key)
	return true
}

// before fails half of the calls that shall fail, and notes every call.
func (d *dice) before(_ context.Context, call sdktest.Call) error {
	d.mu.Lock()
	fmt.Fprintln(d.calls, "call:", call.Op, call.Key)
	d.mu.Unlock()
	switch {
	case d.down:
		return &sdk.Error{Code: sdk.Unauthenticated, Op: call.Op, Key: call.Key, Provider: "InvalidKey", Hint: "renew the key"}
	case d.locked && call.Op == "delete":
		return &sdk.Error{Code: sdk.PermissionDenied, Op: call.Op, Key: call.Key, Provider: "AccessDenied", Hint: "grant it"}
	}
	if d.fault(d.percent/2, call) {
		return &sdk.Error{Code: sdk.Unavailable, Op: call.Op, Key: call.Key, Err: errors.New("planted: the call is not made")}
	}
	return nil
}

// after loses replies, refusals too; the chance is a little higher, for it counts among the calls that were made. The reply of a Get that
// found something is its body.
func (d *dice) after(_ context.Context, call sdktest.Call, err error) error {
	if (call.Op != "get" || err != nil) && d.fault(d.percent*100/(200-d.percent), call) {
		return &sdk.Error{Code: sdk.Throttled, Op: call.Op, Key: call.Key, Err: errors.New("planted: the reply is lost")}
	}
	return err
}

// body breaks the connection off after the first bytes of what a Get yields.
func (d *dice) body(call sdktest.Call, body io.ReadCloser) io.ReadCloser {
	if !d.fault(d.percent*100/(200-d.percent), call) {
		return body
	}
	lost := &sdk.Error{Code: sdk.Unavailable, Op: call.Op, Key: call.Key, Err: errors.New("planted: the connection is lost")}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, 10), iotest.ErrReader(lost)), body}
}

// unconditional takes every create.
type unconditional struct{ sdk.Target }

// Put replaces what is there.
func (u unconditional) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	req.IfAbsent = false
	return u.Target.Put(ctx, req)
}

// folder is a store of objects as files: enough to be shared by processes and looked into from outside.
type folder string

var _ sdk.Target = folder("")

// Put links a finished file to its name, or renames it there.
func (d folder) Put(_ context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	final := filepath.Join(string(d), req.Key)
	if err := os.MkdirAll(filepath.Dir(final), 0o700); err != nil {
		return sdk.PutResult{}, err
	}
	temp := filepath.Join(filepath.Dir(final), "~"+rand.Text())
	defer os.Remove(temp) // a rename has taken it away
	if err := write(temp, req.Body.Reader()); err != nil {
		return sdk.PutResult{}, err
	}
	if !req.IfAbsent {
		return sdk.PutResult{}, os.Rename(temp, final)
	}
	err := os.Link(temp, final)
	if errors.Is(err, fs.ErrExist) {
		return sdk.PutResult{}, sdk.Exists
	}
	return sdk.PutResult{}, err
}

func write(path string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// Get opens a file.
func (d folder) Get(_ context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	f, err := os.Open(filepath.Join(string(d), req.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return sdk.GetResult{}, sdk.NotFound
	}
	if err != nil {
		return sdk.GetResult{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return sdk.GetResult{}, errors.Join(err, f.Close())
	}
	from, n, err := req.Range(info.Size())
	if err != nil {
		return sdk.GetResult{}, errors.Join(err, f.Close())
	}
	return sdk.GetResult{Size: n, Body: struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, from, n), f}}, nil
}

// List walks the folder and puts the keys in order.
func (d folder) List(_ context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		objects, err := d.objects(req)
		for _, obj := range objects {
			if !yield(obj, nil) {
				return
			}
		}
		if err != nil {
			yield(sdk.Object{}, err)
		}
	}
}

func (d folder) objects(req sdk.ListRequest) (objects []sdk.Object, err error) {
	err = filepath.WalkDir(string(d), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since, or the store is still empty
		}
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), "~") {
			return err
		}
		key, err := filepath.Rel(string(d), path)
		if err != nil || !strings.HasPrefix(key, req.Prefix) || key <= req.StartAfter {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			objects = append(objects, sdk.Object{Key: key, Size: info.Size(), Modified: info.ModTime()})
		}
		return err
	})
	slices.SortFunc(objects, func(a, b sdk.Object) int { return strings.Compare(a.Key, b.Key) })
	return objects, err
}

// Delete removes files.
func (d folder) Delete(_ context.Context, keys []string) error {
	var errs []error
	for _, key := range keys {
		if err := os.Remove(filepath.Join(string(d), key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, &sdk.Error{Key: key, Err: err})
		}
	}
	return errors.Join(errs...)
}
