package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// nasty is a text that turns a log into something else: escapes for the terminal, lines of its own, a turn of the direction of reading.
const nasty = "no\x1b[2J\t\r\nsuccess: pushed\x00\u202ekcab"

func TestWhatAPluginSaysOfAnErrorIsBoundedAndOnOneLine(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, wire := range map[string]*pb.TargetError{
		"control characters": {Code: 6, Message: nasty, Hint: nasty, Provider: nasty, Attribute: nasty, Op: nasty, Key: nasty},
		"endless texts":      {Code: 6, Message: long, Hint: long, Provider: long, Attribute: long, Op: long, Key: long},
		"a code of no SDK":   {Code: -7, Message: "m"},
		"a huge code":        {Code: 1 << 30, Message: "m"},
		"a pause for ever":   {Code: 6, RetryAfterNanos: 1<<63 - 1},
		"a negative pause":   {Code: 6, RetryAfterNanos: -1 << 63},
	} {
		e := fromWire(wire)
		for _, text := range []string{e.Error(), e.Hint, e.Key, e.Provider, fmt.Sprint(e.Err)} {
			if len(text) > 5*maxErrorText || strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) >= 0 {
				t.Errorf("%s: %d bytes: %.80q", name, len(text), text)
			}
		}
		if !e.Code.Known() || e.RetryAfter < 0 || e.RetryAfter > maxRetryAfter {
			t.Errorf("%s: code %d, pause %v", name, e.Code, e.RetryAfter)
		}
	}
}

// The trailer of a call is as large as the plugin makes it; what does not fit costs the call, not the connection.
func TestATrailerOfTenMiBCostsItsCallOnly(t *testing.T) {
	huge, err := status.New(codes.Internal, "m").WithDetails(&pb.TargetError{Hint: strings.Repeat("h", 10<<20)})
	if err != nil {
		t.Fatal(err)
	}
	first := true
	client, _ := startForeign(t, foreign{del: func(context.Context) (*pb.DeleteReply, error) {
		if first {
			first = false
			return nil, huge.Err()
		}
		return &pb.DeleteReply{}, nil
	}}, Clocks{})
	if err := client.Delete(t.Context(), []string{"k"}); err == nil || errors.Is(err, sdk.PluginGone) || len(err.Error()) > 2*maxErrorText {
		t.Errorf("delete: %.200v", err)
	}
	if err := client.Delete(t.Context(), []string{"k"}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestADescriptionIsBoundedAndReadable(t *testing.T) {
	d, err := describeFromWire(&pb.Description{
		Name: nasty, Version: strings.Repeat("9", 1<<20), Doc: nasty, Features: []string{nasty},
		Schema: &pb.Schema{Attributes: []*pb.Attribute{{Name: "a", Type: nasty, Doc: nasty, Default: nasty, Enum: []string{nasty}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(d); len(text) > 10*maxLabel || strings.ContainsAny(text, "\x1b\t\r\n\x00\u202e") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	many := make([]*pb.Attribute, maxAttributes+1)
	if _, err := describeFromWire(&pb.Description{Name: "x", Schema: &pb.Schema{Attributes: many}}); err == nil {
		t.Error("a schema without end is taken")
	}
}

// The name is in the answer, so that the plugin's author finds it.
func TestASchemaThatNoConfigurationCouldMeetIsRefused(t *testing.T) {
	for _, row := range []struct {
		attribute *pb.Attribute
		says      string // "" = it is taken
	}{
		{&pb.Attribute{Name: "", Type: "string"}, `the attribute "", which no configuration can set: a name is [a-z][a-z0-9_]*`},
		{&pb.Attribute{Name: "A B", Type: "string"}, `the attribute "A B", which no configuration can set`},
		{&pb.Attribute{Name: "a\tb", Type: "string"}, `the attribute "a\tb", which no configuration can set`},
		{&pb.Attribute{Name: "a", Type: "list(string)", Enum: []string{"x"}}, `the attribute "a", with an enum: one is for a string, not for a list(string)`},
		{&pb.Attribute{Name: "a", Type: "bool", Enum: []string{"true"}}, "with an enum"},
		{&pb.Attribute{Name: "a", Type: "secret", Enum: []string{"x"}}, "with an enum"},
		{&pb.Attribute{Name: "a", Type: "list(string)", Folder: true}, `the attribute "a", which is a folder: one is a string, not a list(string)`},
		{&pb.Attribute{Name: "a", Type: "int", Default: "nonsense"}, `the attribute "a", whose default "nonsense" is no int`},
		{&pb.Attribute{Name: "a", Type: "bool", Default: "maybe"}, `is no bool`},
		{&pb.Attribute{Name: "a", Type: "duration", Default: "10"}, `is no duration`},
		{&pb.Attribute{Name: "a", Type: "size", Default: "16MB"}, `is no size`},
		{&pb.Attribute{Name: "a", Type: "secret", Default: "x"}, "with a default: a secret has none"},
		{&pb.Attribute{Name: "a", Type: "map(string)", Default: "{}"}, "with a default"},
		{&pb.Attribute{Name: "a", Type: "string", Default: "x", Required: true}, "required and has a default"},
		{&pb.Attribute{Name: "a", Type: "string", Default: "x", Enum: []string{"y"}}, `whose default "x" is none of its enum`},

		{&pb.Attribute{Name: "a", Type: "string", Default: "x", Enum: []string{"x", "y"}}, ""},
		{&pb.Attribute{Name: "a_1", Type: "int", Default: "-7"}, ""},
		{&pb.Attribute{Name: "a", Default: "x", Enum: []string{"x"}}, ""},
		{&pb.Attribute{Name: "a", Type: "string", Folder: true, Required: true}, ""},
		{&pb.Attribute{Name: "a", Type: "of a later contract", Default: "x"}, ""},
	} {
		_, err := describeFromWire(&pb.Description{Name: "x", Schema: &pb.Schema{Attributes: []*pb.Attribute{row.attribute}}})
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v: %v, want %q", row.attribute, err, row.says)
		}
	}
}

func TestOnlyTheFirstHundredDiagnosticsAreTaken(t *testing.T) {
	found := &pb.Diagnostics{}
	for range 1_000_000 {
		found.Errors = append(found.Errors, &pb.TargetError{Code: pb.ErrorCode_INVALID_CONFIG})
	}
	all := leaves(fromDiagnostics(found))
	if len(all) != maxDiagnostics+1 || !strings.Contains(all[maxDiagnostics].Error(), "and 999900 more") {
		t.Errorf("%d, the last %v", len(all), all[len(all)-1])
	}
}

func TestADeleteIsAnsweredForTheKeysThatWereAsked(t *testing.T) {
	answer := func(keys ...string) error {
		client, _ := startForeign(t, foreign{del: func(context.Context) (*pb.DeleteReply, error) {
			reply := &pb.DeleteReply{}
			for _, key := range keys {
				reply.Errors = append(reply.Errors, &pb.TargetError{Code: pb.ErrorCode_PERMISSION_DENIED, Key: key})
			}
			return reply, nil
		}}, Clocks{})
		return client.Delete(t.Context(), []string{"a", "b"})
	}
	if err := answer("b"); !errors.Is(err, sdk.PermissionDenied) {
		t.Errorf("one of them: %v", err)
	}
	for name, keys := range map[string][]string{"another key": {"c"}, "no key": {""}, "a key twice": {"a", "a"}} {
		if err := answer(keys...); err == nil || errors.Is(err, sdk.PermissionDenied) || !strings.Contains(err.Error(), "breaks its contract") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFloodOfEventsIsReadSlowlyAndStillEndsWell(t *testing.T) {
	const events = 10 * eventBurst
	client, _ := startForeign(t, foreign{put: func(s grpc.ServerStreamingServer[pb.PutEvent]) error {
		for i := range int64(events) {
			if err := s.Send(&pb.PutEvent{Event: &pb.PutEvent_Progress{Progress: &pb.Progress{Bytes: i}}}); err != nil {
				return err
			}
		}
		done := &pb.PutEvent{Event: &pb.PutEvent_Done{Done: &pb.PutDone{Version: nasty}}}
		return errors.Join(s.Send(done), s.Send(done), s.Send(&pb.PutEvent{})) // and goes on after its Done
	}}, Clocks{})
	res, err := client.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody([]byte("x"))})
	if err != nil || strings.ContainsAny(res.Version, "\x1b\r\n") {
		t.Errorf("%q, %v", res.Version, err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var p pace
		for range events {
			p.event(t.Context().Done())
		}
		if took, want := time.Since(began), (events-eventBurst)/eventGroup*eventPause; took < want || took > want+eventPause {
			t.Errorf("%d events take %v, want %v", events, took, want)
		}
	})
}

func TestTheFailuresOfADeleteSayWhyWithinBounds(t *testing.T) {
	reply, keys := &pb.DeleteReply{}, []string{}
	for i := range sdk.MaxDelete {
		keys = append(keys, fmt.Sprintf("pack/%03d", i))
		reply.Errors = append(reply.Errors, &pb.TargetError{Code: pb.ErrorCode_PERMISSION_DENIED, Key: keys[i], Message: strings.Repeat("m", 7<<10)})
	}
	err := deleteErrors(reply, keys)
	if n := len(leaves(err)); n != sdk.MaxDelete || !errors.Is(err, sdk.PermissionDenied) {
		t.Errorf("%d failures of %d", n, sdk.MaxDelete)
	}
	if text := err.Error(); len(text) > 2*maxDeleteText || !strings.Contains(text, "mmm") || !strings.Contains(text, keys[sdk.MaxDelete-1]) {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

func TestAnAttributeOfASchemaIsThereOnce(t *testing.T) {
	twice := []*pb.Attribute{{Name: "password", Type: "secret"}, {Name: "password", Type: "string"}}
	if _, err := describeFromWire(&pb.Description{Name: "x", Schema: &pb.Schema{Attributes: twice}}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
	d, err := describeFromWire(&pb.Description{Name: "x", Schema: &pb.Schema{Attributes: []*pb.Attribute{{Name: "a", Enum: make([]string, 1_000_000)}}}})
	if err != nil || len(d.Schema.Attributes[0].Enum) > maxAttributes {
		t.Errorf("%v, an enum of %d", err, len(d.Schema.Attributes[0].Enum))
	}
}

func TestBytesThatWereToGoToTheSpoolAreNotReadOnTheWire(t *testing.T) {
	client, spool := startForeign(t, foreign{get: func(_ *pb.GetRequest, s grpc.ServerStreamingServer[pb.GetEvent]) error {
		err := s.Send(open(5))
		for err == nil {
			err = s.Send(data("hello"))
		}
		return err
	}}, Clocks{})
	f, off := spoolFile(t, spool, bigContent())
	if _, err := client.Fetch(t.Context(), sdk.GetRequest{Key: "k", Length: -1}, f, off); err == nil || !strings.Contains(err.Error(), "breaks its contract") {
		t.Errorf("got %v", err)
	}
}

// always is a stream that has a message whenever it is asked.
type always struct {
	grpc.ClientStream
	ctx context.Context
}

func (a always) Context() context.Context { return a.ctx }

func (always) RecvMsg(any) error { return nil }

func TestWhatGoPluginCallsBesideIsHeldInBounds(t *testing.T) {
	asked := map[string]int{}
	start := func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		asked[method]++
		return always{ctx: ctx}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := aside(t.Context(), nil, nil, "/plugin.GRPCBroker/StartStream", start); status.Code(err) != codes.Unimplemented || len(asked) > 0 {
			t.Errorf("the broker: %v, asked were %v", err, asked)
		}
		for method, want := range map[string]time.Duration{
			"/plugin.GRPCStdio/StreamStdio": (10*eventBurst - eventBurst) / eventGroup * eventPause,
			pb.Target_Put_FullMethodName:    0, // its events are paced where they are read
		} {
			stream, err := aside(t.Context(), nil, nil, method, start)
			if err != nil || asked[method] != 1 {
				t.Fatal(err, asked)
			}
			began := time.Now()
			for range 10 * eventBurst {
				if err := stream.RecvMsg(nil); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took < want || took > want+eventPause {
				t.Errorf("%s: 20,000 messages take %v, want %v", method, took, want)
			}
		}
	})
}
