package rpc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// failing answers every call with one error.
type failing struct{ err error }

func (f failing) Put(context.Context, sdk.PutRequest) (sdk.PutResult, error) {
	return sdk.PutResult{}, f.err
}

func (f failing) Get(context.Context, sdk.GetRequest) (sdk.GetResult, error) {
	return sdk.GetResult{}, f.err
}

func (f failing) List(context.Context, sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) { yield(sdk.Object{}, f.err) }
}

func (f failing) Delete(context.Context, []string) error { return f.err }

func TestAnErrorCrossesTheWireWholeFromEveryMethod(t *testing.T) {
	sent := &sdk.Error{
		Code: sdk.Throttled, Op: "upload", Key: "k", Attribute: "a.b", Provider: "SlowDown, request 7", Hint: "ask for more",
		RetryAfter: 3 * time.Second, Err: errors.New("too fast"),
	}
	client, _ := serveTarget(t, failing{sent}, Clocks{})
	for method, err := range callAll(t.Context(), client, "k") {
		var got *sdk.Error
		if !errors.As(err, &got) {
			t.Errorf("%s: %v is not an *sdk.Error", method, err)
			continue
		}
		if got.Err == nil || got.Err.Error() != "too fast" {
			t.Errorf("%s: cause %v", method, got.Err)
		}
		same := *got
		same.Err = sent.Err
		if !reflect.DeepEqual(&same, sent) {
			t.Errorf("%s: %+v; want %+v", method, got, sent)
		}
		if got.Error() != sent.Error() || !errors.Is(err, sdk.Throttled) {
			t.Errorf("%s reads %q; want %q", method, got, sent)
		}
	}
}

// callAll makes one call of each method and gives their errors.
func callAll(ctx context.Context, target sdk.Target, key string) map[string]error {
	errs := map[string]error{}
	_, errs["put"] = target.Put(ctx, sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte("x"))})
	_, errs["get"] = target.Get(ctx, sdk.GetRequest{Key: key, Length: -1})
	for _, err := range target.List(ctx, sdk.ListRequest{Prefix: key}) {
		errs["list"] = err
	}
	errs["delete"] = target.Delete(ctx, []string{key})
	return errs
}

func TestEveryCodeSurvivesTheWireSaveThoseOfTheHost(t *testing.T) {
	for code := sdk.Internal; code.Known(); code++ {
		want := code
		if code == sdk.PluginGone || code == sdk.PluginHung {
			want = sdk.Internal
		}
		client, _ := serveTarget(t, failing{fmt.Errorf("outer: %w", &sdk.Error{Code: code})}, Clocks{})
		for method, err := range callAll(t.Context(), client, "k") {
			if err == nil || sdk.CodeOf(err) != want {
				t.Errorf("%s with %s: %v", method, code, err)
			}
		}
	}
}

func TestAnErrorWithoutACodeIsInternalAndKeepsItsText(t *testing.T) {
	client, _ := serveTarget(t, failing{errors.New("disk on fire")}, Clocks{})
	for method, err := range callAll(t.Context(), client, "k") {
		if err == nil || sdk.CodeOf(err) != sdk.Internal || !strings.Contains(err.Error(), "disk on fire") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestACodeOfTheFutureIsInternal(t *testing.T) {
	for _, n := range []pb.ErrorCode{14, 200, 255, 256, 257, 1 << 30, -1} {
		if got := fromWire(&pb.TargetError{Code: n, Message: "m"}); got.Code != sdk.Internal {
			t.Errorf("code %d is read as %s", n, got.Code)
		}
	}
}

func TestWhateverAnErrorHoldsItCanBeSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		err := errors.New(text.Draw(t, "cause"))
		for range rapid.IntRange(0, 3).Draw(t, "layers") {
			switch rapid.IntRange(0, 2).Draw(t, "layer") {
			case 0:
				err = &sdk.Error{
					Code: sdk.Code(rapid.IntRange(0, 20).Draw(t, "code")), Op: text.Draw(t, "op"), Key: text.Draw(t, "key"),
					Hint: text.Draw(t, "hint"), RetryAfter: time.Duration(rapid.Int64().Draw(t, "after")), Err: err,
				}
			case 1:
				err = fmt.Errorf("%s: %w", text.Draw(t, "wrap"), err)
			case 2:
				err = errors.Join(err, sdk.Code(rapid.IntRange(0, 20).Draw(t, "joined")))
			}
		}
		wire := toWire(err)
		if _, fault := proto.Marshal(wire); fault != nil {
			t.Fatalf("%v cannot be sent: %v", err, fault)
		}
		got := fromWire(wire)
		want := sdk.CodeOf(err)
		if !want.Known() || want == sdk.PluginGone || want == sdk.PluginHung {
			want = sdk.Internal
		}
		if got.Code != want || got.RetryAfter < 0 {
			t.Fatalf("%v arrives as %+v", err, got)
		}
	})
}

func TestAHugeErrorTextIsCut(t *testing.T) {
	client, _ := serveTarget(t, failing{&sdk.Error{Code: sdk.Unavailable, Err: errors.New(strings.Repeat("<html>", 1<<20))}}, Clocks{})
	for method, err := range callAll(t.Context(), client, "k") {
		if !errors.Is(err, sdk.Unavailable) || len(err.Error()) > 2*maxErrorText {
			t.Errorf("%s: %s, %d bytes of text", method, sdk.CodeOf(err), len(err.Error()))
		}
	}
}

// someFail refuses two of the keys of a delete.
type someFail struct{ failing }

func (someFail) Delete(context.Context, []string) error {
	return errors.Join(
		&sdk.Error{Code: sdk.PermissionDenied, Op: "delete", Key: "b"},
		errors.Join(&sdk.Error{Code: sdk.Throttled, Key: "d", RetryAfter: time.Second}),
	)
}

// CASES A35
func TestDeleteTellsEachKeyThatFailed(t *testing.T) {
	client, _ := serveTarget(t, someFail{}, Clocks{})
	err := client.Delete(t.Context(), []string{"a", "b", "c", "d"})
	failed := map[string]sdk.Code{}
	for _, one := range leaves(err) {
		var e *sdk.Error
		if errors.As(one, &e) {
			failed[e.Key] = e.Code
		}
	}
	if want := map[string]sdk.Code{"b": sdk.PermissionDenied, "d": sdk.Throttled}; !reflect.DeepEqual(failed, want) {
		t.Errorf("failed: %v; want %v", failed, want)
	}
}
