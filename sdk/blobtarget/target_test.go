package blobtarget_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
)

func TestAListingIsHeldToItsOrderItsPrefixAndItsStart(t *testing.T) {
	for _, c := range []struct {
		name  string
		pages [][]string
		after string
		want  []string
		says  string // of the error, "" = none
	}{
		{"pages in order are one listing", [][]string{{"k/1", "k/2"}, {}, {"k/3"}}, "", []string{"k/1", "k/2", "k/3"}, ""},
		{"what is not after the start is left out", [][]string{{"k/1", "k/2", "k/3"}}, "k/2", []string{"k/3"}, ""},
		{"an object that no key can name is left out", [][]string{{"k/1", "k/my notes.txt", "k/n"}}, "", []string{"k/1", "k/n"}, ""},
		{"a key twice on a page", [][]string{{"k/1", "k/1"}}, "", []string{"k/1"}, `"k/1" twice`},
		{"a page that repeats the end of the one before", [][]string{{"k/1", "k/2"}, {"k/2", "k/3"}}, "", []string{"k/1", "k/2"}, `"k/2" twice`},
		{"keys that jump back", [][]string{{"k/1", "k/3", "k/2"}}, "", []string{"k/1", "k/3"}, `"k/2" after "k/3"`},
		{"keys in the order of a file system's walk", [][]string{{"k/d/x", "k/d-x"}}, "", []string{"k/d/x"}, `"k/d-x" after "k/d/x"`},
		{"a start after which the order is still held", [][]string{{"k/3", "k/1"}}, "k/9", nil, `"k/1" after "k/3"`},
		{"a key without the prefix", [][]string{{"k/1", "l"}}, "", []string{"k/1"}, "does not begin with the prefix"},
		{"a negative size", [][]string{{"k/1?"}}, "", nil, "-1 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := (&script{pages: c.pages}).target(blobtarget.Hooks{})
			keys, err := keysOf(t, target, sdk.ListRequest{Prefix: "k/", StartAfter: c.after})
			if !slices.Equal(keys, c.want) {
				t.Errorf("listed %q, want %q", keys, c.want)
			}
			if c.says != "" {
				wantError(t, err, sdk.Corrupt, "list", "k/", c.says, "order")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestATroubleOnALaterPageEndsTheListingWithAnError(t *testing.T) {
	pages := slices.Repeat([][]string{{}}, 1)
	for i := range 1000 {
		pages[0] = append(pages[0], fmt.Sprintf("k/%04d", i))
	}
	s := &script{pages: append(pages, []string{"k/1"}), code: gcerrors.PermissionDenied}
	hooks := blobtarget.Hooks{BeforeList: func(sdk.ListRequest) func(func(any) bool) error {
		return func(as func(any) bool) error {
			var token string
			if as(&token); token != "" {
				return errStore
			}
			return nil
		}
	}}
	keys, err := keysOf(t, s.target(hooks), sdk.ListRequest{Prefix: "k/"})
	if len(keys) != 1000 {
		t.Errorf("%d keys before the error", len(keys))
	}
	wantError(t, err, sdk.PermissionDenied, "list", "k/", errStore.Error())
}

func TestBeforeListIsGivenTheRequestAndAskedForEachPage(t *testing.T) {
	var given sdk.ListRequest
	var tokens []string
	hooks := blobtarget.Hooks{BeforeList: func(req sdk.ListRequest) func(func(any) bool) error {
		given = req
		return func(as func(any) bool) error {
			var token string
			as(&token)
			tokens = append(tokens, token)
			return nil
		}
	}}
	req := sdk.ListRequest{Prefix: "k", StartAfter: "k1", Limit: 1}
	keys, err := keysOf(t, (&script{pages: [][]string{{"k1"}, {"k2"}, {"k3"}}}).target(hooks), req)
	if err != nil || !slices.Equal(keys, []string{"k2", "k3"}) {
		t.Errorf("listed %q, %v", keys, err)
	}
	if given != req || !slices.Equal(tokens, []string{"", "x", "xx"}) {
		t.Errorf("the hook saw %+v and the pages %q", given, tokens)
	}
}

// CASES A73
func TestRangesMeanTheSameOnEveryStore(t *testing.T) {
	for _, c := range []struct {
		name        string
		off, length int64
		want        string
		code        sdk.Code // Internal = none
	}{
		{"the whole object", 0, -1, "0123456789", sdk.Internal},
		{"to the end", 7, -1, "789", sdk.Internal},
		{"a part", 2, 3, "234", sdk.Internal},
		{"the last byte", 9, 1, "9", sdk.Internal},
		{"past the end", 8, 5, "89", sdk.Internal},
		{"after the last byte", 10, 1, "", sdk.Corrupt},
		{"far after the last byte, to the end", 99, -1, "", sdk.Corrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{object: "0123456789"}
			res, err := s.target(blobtarget.Hooks{}).Get(t.Context(), sdk.GetRequest{Key: "k", Offset: c.off, Length: c.length})
			if c.code != sdk.Internal {
				wantError(t, err, c.code, "get", "k", "of 10 bytes")
			} else {
				have, readErr := io.ReadAll(res.Body)
				if err != nil || readErr != nil || string(have) != c.want || res.Size != int64(len(c.want)) {
					t.Errorf("got %q of %d bytes, %v, %v", have, res.Size, err, readErr)
				}
				res.Body.Close()
			}
			if s.unclosed != 0 {
				t.Error("a reader was left open")
			}
		})
	}
}

// CASES A10
func TestAWriterIsCancelledBeforeItIsClosedWhenTheBodyFails(t *testing.T) {
	content := bytes.Repeat([]byte("x"), 300_000)
	sums := sdk.SumsOf(content)
	for _, c := range []struct {
		name string
		body sdk.Body
		code sdk.Code
	}{
		{"another content", sdk.NewBody(bytes.NewReader(bytes.Repeat([]byte("y"), 300_000)), 300_000, sums), sdk.Corrupt},
		{"too short", sdk.NewBody(bytes.NewReader(content[:200_000]), 300_000, sums), sdk.Corrupt},
		{"unreadable", sdk.NewBody(failingAt{iotest.ErrTimeout}, 300_000, sums), sdk.Corrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			closed := 0
			s := &script{close: func(ctx context.Context) error {
				closed++
				if ctx.Err() == nil {
					t.Error("the writer is closed, and so published, without having been cancelled")
				}
				return ctx.Err()
			}}
			_, err := s.target(blobtarget.Hooks{}).Put(t.Context(), sdk.PutRequest{Key: "k", Body: c.body, IfAbsent: true})
			wantError(t, err, c.code, "put", "k")
			if closed != 1 {
				t.Errorf("closed %d times", closed)
			}
		})
	}
}

type failingAt struct{ err error }

func (f failingAt) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// CASES A10
func TestAPutThatIsCancelledOnItsWayIsNotPublished(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &script{
		write: func(context.Context, []byte) error { cancel(); return nil },
		close: func(ctx context.Context) error {
			if ctx.Err() == nil {
				t.Error("published")
			}
			return ctx.Err()
		},
	}
	_, err := s.target(blobtarget.Hooks{}).Put(ctx, sdk.PutRequest{Key: "k", Body: sdk.BytesBody(make([]byte, 1<<20))})
	wantError(t, err, sdk.Cancelled, "put", "k")
}

func TestARefusedConditionIsExistsOnlyForAConditionalPut(t *testing.T) {
	for _, c := range []struct {
		name     string
		ifAbsent bool
		code     gcerrors.ErrorCode
		early    bool // the refusal comes while the body is written
		want     sdk.Code
	}{
		{"at the end", true, gcerrors.FailedPrecondition, false, sdk.Exists},
		{"on the way", true, gcerrors.FailedPrecondition, true, sdk.Exists},
		{"told as existing", true, gcerrors.AlreadyExists, false, sdk.Exists},
		{"without a condition", false, gcerrors.FailedPrecondition, false, sdk.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{code: c.code, close: func(context.Context) error { return errStore }}
			if c.early {
				s.write = func(context.Context, []byte) error { return errStore }
			}
			_, err := s.target(blobtarget.Hooks{}).Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody([]byte("x")), IfAbsent: c.ifAbsent})
			wantError(t, err, c.want, "put", "k", errStore.Error())
		})
	}
	bucket := memblob.OpenBucket(nil)
	bucket.Close()
	_, err := memory(bucket).Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil), IfAbsent: true})
	wantError(t, err, sdk.Internal, "put", "k", "closed")
}

func TestExistsIsNoAnswerToAPutWithoutACondition(t *testing.T) {
	for _, said := range []error{sdk.Exists, fmt.Errorf("wrapped: %w", &sdk.Error{Code: sdk.Exists})} {
		hooks := blobtarget.Hooks{Put: func(context.Context, sdk.PutRequest) (sdk.PutResult, error) { return sdk.PutResult{}, said }}
		target := (&script{}).target(hooks)
		for ifAbsent, want := range map[bool]sdk.Code{false: sdk.Unavailable, true: sdk.Exists} {
			_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", IfAbsent: ifAbsent})
			if got := sdk.CodeOf(err); got != want {
				t.Errorf("if absent %v: %s, want %s: %v", ifAbsent, got, want, err)
			}
		}
	}
}

// CASES A35
func TestTheFailuresOfADeleteAreJoinedWithTheirKeysAndTheOthersAreDone(t *testing.T) {
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("k/%02d", i))
	}
	var mu sync.Mutex
	var running, most atomic.Int64
	deleted := map[string]bool{}
	s := &script{code: gcerrors.PermissionDenied, delete: func(key string) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if strings.HasSuffix(key, "7") {
			return errStore
		}
		mu.Lock()
		defer mu.Unlock()
		deleted[key] = true
		return nil
	}}
	err := s.target(blobtarget.Hooks{}).Delete(t.Context(), keys)
	var failed []string
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		var e *sdk.Error
		if !errors.As(one, &e) || e.Code != sdk.PermissionDenied || e.Op != "delete" {
			t.Errorf("%v", one)
			continue
		}
		failed = append(failed, e.Key)
	}
	slices.Sort(failed)
	if want := []string{"k/07", "k/17", "k/27", "k/37", "k/47", "k/57", "k/67", "k/77", "k/87", "k/97"}; !slices.Equal(failed, want) {
		t.Errorf("failed: %q, want %q", failed, want)
	}
	if len(deleted) != 90 {
		t.Errorf("%d keys were deleted", len(deleted))
	}
	if most.Load() > 16 {
		t.Errorf("%d requests at once", most.Load())
	}
}

func TestAMissingKeyIsADeletedOneUnlessTheVendorKnowsBetter(t *testing.T) {
	s := &script{code: gcerrors.NotFound, delete: func(string) error { return errStore }}
	if err := s.target(blobtarget.Hooks{}).Delete(t.Context(), []string{"a", "b"}); err != nil {
		t.Error(err)
	}
	noBucket := blobtarget.Hooks{Error: func(error) *sdk.Error { return &sdk.Error{Code: sdk.InvalidConfig, Hint: "no such bucket"} }}
	err := s.target(noBucket).Delete(t.Context(), []string{"a"})
	wantError(t, err, sdk.InvalidConfig, "delete", "a", "no such bucket")
}

func TestAHooksErrorsKeepTheirKeysAndOneWithoutIsThatOfTheCall(t *testing.T) {
	hooks := blobtarget.Hooks{
		Delete: func(context.Context, []string) error {
			return errors.Join(&sdk.Error{Key: "b", Err: errStore}, errors.Join(&sdk.Error{Key: "c", Code: sdk.NoSpace}, errStore))
		},
		Error: func(error) *sdk.Error { return &sdk.Error{Code: sdk.Throttled} },
	}
	err := (&script{}).target(hooks).Delete(t.Context(), []string{"a", "b", "c"})
	all := err.(interface{ Unwrap() []error }).Unwrap()
	if len(all) != 3 {
		t.Fatalf("%v", err)
	}
	wantError(t, all[0], sdk.Throttled, "delete", "b")
	wantError(t, all[1], sdk.NoSpace, "delete", "c")
	wantError(t, all[2], sdk.Throttled, "delete", "", errStore.Error())
}

func TestACallWhoseContextHasEndedTouchesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hook := func(context.Context, sdk.PutRequest) (sdk.PutResult, error) {
		t.Error("the hook was called")
		return sdk.PutResult{}, nil
	}
	for _, hooks := range []blobtarget.Hooks{{}, {Put: hook, Delete: func(context.Context, []string) error { t.Error("the hook was called"); return nil }}} {
		s := &script{}
		target := s.target(hooks)
		_, err := target.Put(ctx, sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil)})
		wantError(t, err, sdk.Cancelled, "put", "k")
		_, err = target.Get(ctx, sdk.GetRequest{Key: "k", Length: -1})
		wantError(t, err, sdk.Cancelled, "get", "k")
		wantError(t, target.Delete(ctx, []string{"k"}), sdk.Cancelled, "delete", "")
		for _, err := range target.List(ctx, sdk.ListRequest{Prefix: "k"}) {
			wantError(t, err, sdk.Cancelled, "list", "k")
		}
		if len(s.calls) > 0 {
			t.Errorf("the store was asked: %q", s.calls)
		}
	}
}

func TestAKeyThatTheDriverWouldStoreUnderAnotherNameIsRefused(t *testing.T) {
	for _, key := range []string{"a../b", "__0x2f__", "a/__0xFf__b"} {
		s := &script{}
		target := s.target(blobtarget.Hooks{})
		_, err := target.Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody(nil)})
		wantError(t, err, sdk.Unsupported, "put", key, "another name")
		_, err = target.Get(t.Context(), sdk.GetRequest{Key: key, Length: -1})
		wantError(t, err, sdk.Unsupported, "get", key)
		wantError(t, target.Delete(t.Context(), []string{"fine", key}), sdk.Unsupported, "delete", key)
		_, err = keysOf(t, target, sdk.ListRequest{Prefix: key})
		wantError(t, err, sdk.Unsupported, "list", key)
		_, err = keysOf(t, target, sdk.ListRequest{StartAfter: key})
		wantError(t, err, sdk.Unsupported, "list", "")
		if len(s.calls) > 0 {
			t.Errorf("the store was asked: %q", s.calls)
		}
	}
	for _, key := range []string{"a..", "..a", "a/..b", "__0x__", "0x2f", "__0xzz__"} {
		if _, err := memory(memblob.OpenBucket(nil)).Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody(nil)}); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}
