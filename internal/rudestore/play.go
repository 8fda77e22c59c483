package rudestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// patience bounds the wait for something that must happen at once: a loaded machine is slow, a broken target waits for ever.
const patience = 30 * time.Second

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

// content of the Put of a scenario: 1 MiB, or 32, which is more than the buffers at both ends of a connection hold.
func (s Scenario) content() []byte {
	n := 1 << 16
	if s.Large {
		n <<= 5
	}
	return bytes.Repeat([]byte("0123456789abcdef"), n)
}

// before is what the store holds when the scenario begins.
func (s Scenario) before() map[string][]byte {
	objects := kept()
	if s.Taken {
		objects[newKey] = []byte("somebody else's")
	}
	return objects
}

// complaints are what a target did wrong.
type complaints []string

func (c *complaints) addf(format string, args ...any) { *c = append(*c, fmt.Sprintf(format, args...)) }

// play is one scenario, on a store of its own.
func (s Scenario) play(t *testing.T, d Dialect, open func(*testing.T, Server) sdk.Target) (c complaints) {
	t.Helper()
	store := New(d)
	if s.Page > 0 {
		store.page = s.Page
	}
	for key, content := range s.before() {
		store.Plant(key, content)
	}
	target := sdk.Guard(open(t, s.serverFor(t, store)))
	store.Misbehave(s.Fault)
	want := s.expect(d)
	err, ended := s.call(t.Context(), store, target)
	if !ended {
		return complaints{"the call does not end"}
	}
	s.judge(&c, want, err)
	if n := store.Requests(); n != want.Requests {
		c.addf("%d requests; want %d: only the host retries", n, want.Requests)
	}
	if n := store.Strays(); n > 0 {
		c.addf("%d requests for something else than this bucket", n)
	}
	s.judgeStore(&c, store, want)
	if !s.Refused {
		store.Misbehave(Fault{})
		s.judgeAfterwards(&c, s.make(t.Context(), target))
	}
	return c
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

// call makes the call, and gives it up when the scenario says so. It tells whether the call came to an end.
func (s Scenario) call(ctx context.Context, store *Store, target sdk.Target) (outcome error, ended bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.make(ctx, target) }()
	limit := time.NewTimer(cmp.Or(s.patience, patience))
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
			return err, true
		case <-limit.C:
			return nil, false
		}
	}
}

// make is the call itself.
func (s Scenario) make(ctx context.Context, target sdk.Target) error {
	switch s.Call {
	case Put:
		_, err := target.Put(ctx, sdk.PutRequest{Key: newKey, Body: sdk.BytesBody(s.content()), IfAbsent: s.IfAbsent})
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
func (s Scenario) judge(c *complaints, want Expect, err error) {
	switch {
	case want.Err == nil && err != nil:
		c.addf("answers %v; want success", err)
		return
	case want.Err == nil:
		return
	case err == nil:
		c.addf("succeeds; want %v", want.Err)
		return
	}
	if code := sdk.CodeOf(err); code != want.Err {
		c.addf("answers %s; want %s: %v", code, want.Err, err)
	}
	var told *sdk.Error
	if !errors.As(err, &told) {
		c.addf("the error is no *sdk.Error: %v", err)
		return
	}
	if told.RetryAfter != want.RetryAfter {
		c.addf("retry after %v; want %v: %v", told.RetryAfter, want.RetryAfter, err)
	}
	if s.Fault.Do == answer && told.Provider == "" {
		c.addf("the vendor's own words are lost: %v", err)
	}
	if s.Fault.Do == refuseKeys && told.Key != keptKey {
		c.addf("key %q; want %q: %v", told.Key, keptKey, err)
	}
}

// judgeStore looks at what is stored after the call.
func (s Scenario) judgeStore(c *complaints, store *Store, want Expect) {
	objects := s.before()
	switch {
	case s.Call == Put && (s.Stored || want.Err == nil):
		objects[newKey] = s.content()
	case s.Call == Delete && s.Stored:
		delete(objects, keptKey)
	}
	if have := store.Keys(); !slices.Equal(have, slices.Sorted(maps.Keys(objects))) {
		c.addf("stored are %q; want %q", have, slices.Sorted(maps.Keys(objects)))
		return
	}
	for key, content := range objects {
		if have, _ := store.Content(key); !bytes.Equal(have, content) {
			c.addf("%s holds %d bytes that are not the %d it should", key, len(have), len(content))
		}
	}
}

// judgeAfterwards looks at what the same call answers once the store is good again: the bad day must not have spoilt the target.
func (s Scenario) judgeAfterwards(c *complaints, err error) {
	switch exists := s.IfAbsent && (s.Stored || s.Taken); {
	case exists && !errors.Is(err, sdk.Exists):
		c.addf("the same call on a good day answers %v; want %v", err, sdk.Exists)
	case !exists && err != nil:
		c.addf("the same call on a good day answers %v", err)
	}
}
