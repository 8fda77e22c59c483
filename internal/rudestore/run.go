package rudestore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// patience bounds the wait for something that must happen at once: a loaded machine is slow, a broken target waits for ever.
const patience = 30 * time.Second

// Run puts a plugin's target through the exam on a good store and through every scenario, each on a store of its own. open makes the target
// for a server, with the vendor's client as the plugin has it in production, and has it closed when its test ends.
func Run(t *testing.T, d Dialect, open func(t *testing.T, server Server) sdk.Target) {
	t.Helper()
	t.Run("the exam", func(t *testing.T) { exam(t, d, open) })
	t.Run("how often a Put reads its body", func(t *testing.T) { readsOfPut(t, d, open) })
	for _, s := range Scenarios() {
		if s.of(d) {
			t.Run(s.Name, func(t *testing.T) { s.run(t, d, open) })
		}
	}
}

func exam(t *testing.T, d Dialect, open func(*testing.T, Server) sdk.Target) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		server := New(d).Start(t)
		return &sdktest.Env{
			Target: sdk.Guard(open(t, server)),
			Reopen: func(context.Context) (sdk.Target, error) { return sdk.Guard(open(t, server)), nil },
		}
	})
}

// readsOfPut counts the bytes that a plugin reads of a body. Once is enough where the store checks the digest that the body comes with.
func readsOfPut(t *testing.T, d Dialect, open func(*testing.T, Server) sdk.Target) {
	store := New(d)
	target := open(t, store.Start(t))
	content := bytes.Repeat([]byte("sixteen bytes.. "), 1<<16) // 1 MiB
	source := &counted{ReaderAt: bytes.NewReader(content)}
	body := sdk.NewBody(source, int64(len(content)), sdk.SumsOf(content))
	if _, err := target.Put(t.Context(), sdk.PutRequest{Key: "read/often", Body: body, Class: sdk.ClassBulk}); err != nil {
		t.Fatal(err)
	}
	times := float64(source.bytes.Load()) / float64(len(content))
	t.Logf("%s: %.3f bytes are read for each byte of the body", d, times)
	if most := map[Dialect]float64{S3: 1, GCS: 2, Azure: 2}[d]; times < 1 || times > most {
		t.Errorf("%s reads its body %.3f times; want at most %v", d, times, most)
	}
	if kept, _ := store.Content("read/often"); !bytes.Equal(kept, content) {
		t.Errorf("%d bytes are stored that are not the %d of the body", len(kept), len(content))
	}
}

type counted struct {
	io.ReaderAt
	bytes atomic.Int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.bytes.Add(int64(n))
	return n, err
}

const (
	newKey  = "rude/new"
	keptKey = "rude/kept/1"
)

// kept are the objects that every scenario begins with.
func kept() map[string][]byte {
	objects := map[string][]byte{}
	for i, key := range []string{keptKey, "rude/kept/2", "rude/kept/3", "rude/kept/4", "rude/kept/5"} {
		objects[key] = bytes.Repeat([]byte{byte('a' + i)}, 50_000+i)
	}
	return objects
}

// content of the Put of a scenario: more than the buffers of a connection hold.
func content() []byte { return bytes.Repeat([]byte("0123456789abcdef"), 1<<16) }

// run is one scenario.
func (s Scenario) run(t *testing.T, d Dialect, open func(*testing.T, Server) sdk.Target) {
	store := New(d)
	if s.Page > 0 {
		store.page = s.Page
	}
	for key, content := range kept() {
		store.Plant(key, content)
	}
	target := sdk.Guard(open(t, s.serverFor(t, store)))
	store.Misbehave(s.Fault)
	err := s.call(t, store, target)
	s.judge(t, s.expect(d), err)
	if n := store.Requests(); n != s.expect(d).Requests {
		t.Errorf("%d requests; want %d: only the host retries", n, s.expect(d).Requests)
	}
	if n := store.Strays(); n > 0 {
		t.Errorf("%d requests for something else than this bucket", n)
	}
	s.judgeStore(t, store)
	if s.Refused {
		return
	}
	store.Misbehave(Fault{})
	if err := s.make(t.Context(), target); s.Stored && s.IfAbsent && !errors.Is(err, sdk.Exists) || !(s.Stored && s.IfAbsent) && err != nil {
		t.Errorf("the same call on a good day answers %v", err)
	}
}

func (s Scenario) serverFor(t *testing.T, store *Store) (server Server) {
	t.Helper()
	if s.Refused {
		t.Run("a server that is gone", func(t *testing.T) { server = store.Start(t) })
	} else {
		server = store.Start(t)
	}
	if s.Chain {
		server.AccessKey, server.SecretKey = "", ""
	}
	return server
}

// call makes the call, and gives it up when the scenario says so.
func (s Scenario) call(t *testing.T, store *Store, target sdk.Target) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.make(ctx, target) }()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	arrived := store.arrived
	if !s.GivesUp {
		arrived = nil
	}
	for {
		select {
		case <-arrived:
			cancel()
			arrived = nil
		case err := <-done:
			return err
		case <-limit.C:
			cancel()
			t.Fatalf("the call has not ended after %v", patience)
		}
	}
}

// make is the call itself.
func (s Scenario) make(ctx context.Context, target sdk.Target) error {
	switch s.Call {
	case Put:
		_, err := target.Put(ctx, sdk.PutRequest{Key: newKey, Body: sdk.BytesBody(content()), IfAbsent: s.IfAbsent})
		return err
	case Get:
		return getKept(ctx, target)
	case List:
		return listKept(ctx, target)
	case Delete:
		return target.Delete(ctx, []string{keptKey})
	default:
		return errors.New("no such call")
	}
}

func getKept(ctx context.Context, target sdk.Target) error {
	res, err := target.Get(ctx, sdk.GetRequest{Key: keptKey, Length: -1})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	have, err := io.ReadAll(res.Body)
	if err == nil && !bytes.Equal(have, kept()[keptKey]) {
		return errors.New("other bytes came, and nobody noticed")
	}
	return err
}

func listKept(ctx context.Context, target sdk.Target) error {
	var keys []string
	for obj, err := range target.List(ctx, sdk.ListRequest{Prefix: "rude/"}) {
		if err != nil {
			return err
		}
		keys = append(keys, obj.Key)
	}
	if !slices.Equal(keys, slices.Sorted(maps.Keys(kept()))) {
		return errors.New("a listing without an error is complete, this one is not")
	}
	return nil
}

// judge compares an error with the expected one.
func (s Scenario) judge(t *testing.T, want Expect, err error) {
	t.Helper()
	if want.Err == nil {
		if err != nil {
			t.Errorf("answers %v; want success", err)
		}
		return
	}
	if err == nil {
		t.Errorf("succeeds; want %v", want.Err)
		return
	}
	if code := sdk.CodeOf(err); code != want.Err {
		t.Errorf("answers %s; want %s: %v", code, want.Err, err)
	}
	var told *sdk.Error
	if !errors.As(err, &told) {
		t.Errorf("the error is no *sdk.Error: %v", err)
		return
	}
	if told.RetryAfter != want.RetryAfter {
		t.Errorf("retry after %v; want %v: %v", told.RetryAfter, want.RetryAfter, err)
	}
	if s.Fault.Do == answer && told.Provider == "" {
		t.Errorf("the vendor's own words are lost: %v", err)
	}
	if s.Call == Delete && s.Fault.Do == refuseKeys && told.Key != keptKey {
		t.Errorf("key %q; want %q: %v", told.Key, keptKey, err)
	}
}

// judgeStore looks at what is stored afterwards.
func (s Scenario) judgeStore(t *testing.T, store *Store) {
	t.Helper()
	want := kept()
	switch {
	case s.Call == Put && (s.Stored || s.Expect.Err == nil):
		want[newKey] = content()
	case s.Call == Delete && s.Stored:
		delete(want, keptKey)
	}
	if have := store.Keys(); !slices.Equal(have, slices.Sorted(maps.Keys(want))) {
		t.Errorf("stored are %q; want %q", have, slices.Sorted(maps.Keys(want)))
		return
	}
	for key, content := range want {
		if have, _ := store.Content(key); !bytes.Equal(have, content) {
			t.Errorf("%s holds %d bytes that are not the %d it should", key, len(have), len(content))
		}
	}
}
