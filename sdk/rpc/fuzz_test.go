package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unicode"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// hostile is a connection to a plugin that answers every call with the frames at hand: each a message of whatever type is awaited, the last one
// perhaps the detail of a status.
type hostile struct {
	frames [][]byte
	code   codes.Code // how calls end
}

// framesOf cuts data into frames: two bytes of length before each.
func framesOf(data []byte) (frames [][]byte) {
	for len(data) >= 2 && len(frames) < 64 {
		n := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
		frames, data = append(frames, data[2:2+n]), data[2+n:]
	}
	return frames
}

func framed(messages ...proto.Message) (data []byte) {
	for _, m := range messages {
		frame, err := proto.Marshal(m)
		if err != nil {
			panic(err) // unreachable: they are written below
		}
		data = append(binary.BigEndian.AppendUint16(data, uint16(len(frame))), frame...)
	}
	return data
}

// end is the status of a call: its detail is the frame.
func (h hostile) end(frame []byte) error {
	st := status.New(h.code, string(frame))
	detail := &pb.TargetError{}
	if proto.Unmarshal(frame, detail) == nil {
		if with, err := st.WithDetails(detail); err == nil {
			st = with
		}
	}
	return st.Err()
}

func (h hostile) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	if len(h.frames) == 0 || h.code != codes.OK {
		return h.end(append([][]byte{nil}, h.frames...)[len(h.frames)])
	}
	if err := proto.Unmarshal(h.frames[0], reply.(proto.Message)); err != nil {
		return status.Error(codes.Internal, err.Error()) // as gRPC has it
	}
	return nil
}

func (h hostile) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &hostileStream{hostile: h, ctx: ctx}, nil
}

type hostileStream struct {
	hostile
	ctx context.Context
}

func (s *hostileStream) Header() (metadata.MD, error) { return nil, nil }
func (s *hostileStream) Trailer() metadata.MD         { return nil }
func (s *hostileStream) CloseSend() error             { return nil }
func (s *hostileStream) Context() context.Context     { return s.ctx }
func (s *hostileStream) SendMsg(any) error            { return nil }

func (s *hostileStream) RecvMsg(m any) error {
	if len(s.frames) == 0 {
		return io.EOF
	}
	frame := s.frames[0]
	s.frames = s.frames[1:]
	if len(s.frames) == 0 && s.code != codes.OK {
		return s.end(frame)
	}
	if err := proto.Unmarshal(frame, m.(proto.Message)); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// FuzzAnswersOfAHostilePlugin: whatever a plugin sends, each call of the host ends, what it says of an error is bounded and printable, and an object is
// read to its end only with the size that was declared.
func FuzzAnswersOfAHostilePlugin(f *testing.F) {
	data := []byte("content")
	sum := sdk.BytesBody(data).SHA256()
	detail := &pb.TargetError{Code: pb.ErrorCode_THROTTLED, Message: nasty, Key: "k", RetryAfterNanos: -1}
	for _, seed := range [][]byte{
		framed(&pb.GetEvent{Event: &pb.GetEvent_Open{Open: &pb.GetOpen{Size: 7}}}, &pb.GetEvent{Event: &pb.GetEvent_Data{Data: data}},
			&pb.GetEvent{Event: &pb.GetEvent_End{End: &pb.GetEnd{Size: 7, Sha256: sum[:]}}}),
		framed(&pb.GetEvent{Event: &pb.GetEvent_Open{Open: &pb.GetOpen{Size: -7}}}, detail),
		framed(&pb.PutEvent{Event: &pb.PutEvent_Progress{Progress: &pb.Progress{Bytes: -1}}}, &pb.PutEvent{Event: &pb.PutEvent_Done{Done: &pb.PutDone{Version: nasty, Sha256: sum[:5]}}}),
		framed(&pb.ListPage{Objects: []*pb.Object{{Key: "a", Size: -1, ModifiedUnixNano: -1}, {Key: "a"}}}, &pb.ListPage{End: true}),
		framed(&pb.DeleteReply{Errors: []*pb.TargetError{detail, detail}}), framed(detail),
		framed(&pb.Description{Name: nasty, Schema: &pb.Schema{Attributes: []*pb.Attribute{{Name: "a", Type: nasty}, {Name: "a"}}}}),
		framed(&pb.Diagnostics{Errors: []*pb.TargetError{detail}}),
		framed(&pb.ConfigureReply{Proofs: []*pb.Proof{{Root: "spool", Nonce: []byte("guess")}}, Diagnostics: &pb.Diagnostics{Errors: []*pb.TargetError{detail}}}),
		framed(&pb.DrainReply{Running: -1}), nil,
	} {
		f.Add(seed, uint32(codes.OK))
		f.Add(seed, uint32(codes.ResourceExhausted))
	}
	spool := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, code uint32) {
		ending := codes.Code(code % 17)
		if ending == codes.DeadlineExceeded {
			return // a call waits a second for its own clock then, see strikes
		}
		h := hostile{frames: framesOf(data), code: ending}
		client := NewClient(h, Clocks{})
		ctx := t.Context()
		d, err := client.Describe(ctx)
		wantBounded(t, "describe", err)
		if err == nil && (d.Name == "" || len(d.Schema.Attributes) > maxAttributes) {
			t.Errorf("a description of %+v is taken", d)
		}
		wantBounded(t, "validate", client.Validate(ctx, nil))
		if client.Configure(ctx, Configuration{Target: "t", Spool: spool}) == nil {
			t.Error("a nonce that the plugin cannot know is proven")
		}
		_, err = client.Put(ctx, sdk.PutRequest{Key: "k", Body: sdk.BytesBody([]byte("content"))})
		wantBounded(t, "put", err)
		wantBounded(t, "delete", client.Delete(ctx, []string{"k", "l"}))
		for obj, err := range client.List(ctx, sdk.ListRequest{Prefix: "k"}) {
			wantBounded(t, "list", err)
			if err == nil && (obj.Size < 0 || len(obj.Key) > sdk.MaxKey) {
				t.Errorf("an object %+v is listed", obj)
			}
		}
		wantWholeGet(t, client)
		_, err = client.Drain(ctx, 0)
		wantBounded(t, "drain", err)
	})
}

func wantWholeGet(t *testing.T, client *Client) {
	t.Helper()
	res, err := client.Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
	wantBounded(t, "get", err)
	if err != nil {
		return
	}
	n, err := io.Copy(io.Discard, res.Body)
	wantBounded(t, "read", err)
	if err == nil && n != res.Size {
		t.Errorf("%d bytes are read, %d were declared", n, res.Size)
	}
	wantBounded(t, "close", res.Body.Close())
}

// wantBounded: an error has a code that a host knows, and a text that a log can hold.
func wantBounded(t *testing.T, op string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if len(err.Error()) > 64*maxErrorText {
		t.Errorf("%s: an error of %d bytes", op, len(err.Error()))
	}
	for _, one := range leaves(err) {
		e, ok := errors.AsType[*sdk.Error](one)
		if !ok {
			continue
		}
		if !e.Code.Known() || e.RetryAfter < 0 || e.RetryAfter > maxRetryAfter {
			t.Errorf("%s: code %d, pause %v", op, e.Code, e.RetryAfter)
		}
		for _, r := range e.Error() + e.Hint + e.Provider {
			if !unicode.IsGraphic(r) {
				t.Errorf("%s: %q", op, e.Error())
				break
			}
		}
	}
}

// serverSide is a stream to a hostile host, who reads everything.
type serverSide[E any] struct {
	grpc.ServerStream
	ctx context.Context
}

func (s serverSide[E]) Context() context.Context { return s.ctx }
func (s serverSide[E]) Send(*E) error            { return nil }

// FuzzRequestsOfAHostileHost: whatever a plugin is asked, it answers, and it touches no file but those below the directory that it has proven to see.
func FuzzRequestsOfAHostileHost(f *testing.F) {
	at := &pb.FileRange{Root: "spool", Path: "../outside", Offset: 1}
	for _, seed := range []proto.Message{
		&pb.PutRequest{Key: "k", Size: 3, Source: &pb.PutRequest_Inline{Inline: []byte("abc")}, Sha256: []byte{1}}, &pb.PutRequest{Key: "k", Size: 1 << 62, Source: &pb.PutRequest_File{File: at}},
		&pb.GetRequest{Key: "k", Length: -1, Sink: at}, &pb.GetRequest{Key: "k", Offset: -1, Length: 1 << 62}, &pb.ListRequest{Prefix: "\u202e", Limit: -1}, &pb.DeleteRequest{Keys: []string{"", "k", "k"}},
	} {
		f.Add(framed(seed))
	}
	dir := f.TempDir()
	outside, spool := filepath.Join(dir, "outside"), filepath.Join(dir, "spool")
	if err := errors.Join(os.WriteFile(outside, []byte("untouched"), 0o600), os.Mkdir(spool, 0o700), os.WriteFile(filepath.Join(spool, "nonce"), []byte("n"), 0o600)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := newApp(pluginOf(newStore()))
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(t.Context(), a, hclog.NewNullLogger(), beatEvery)
		defer s.drain(t.Context(), 0)
		frames := append(framesOf(data), nil)
		decode := func(m proto.Message) bool { return proto.Unmarshal(frames[0], m) == nil }
		if m := (&pb.ConfigureRequest{Target: "t", Roots: []*pb.Root{{Id: "spool", Path: spool, NonceFile: "nonce"}}}); s.target == nil {
			if _, err := s.Configure(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		for ; len(frames) > 0; frames = frames[1:] {
			if m := (&pb.PutRequest{}); decode(m) {
				_ = s.Put(m, serverSide[pb.PutEvent]{ctx: t.Context()}) // any answer will do
			}
			if m := (&pb.GetRequest{}); decode(m) {
				_ = s.Get(m, serverSide[pb.GetEvent]{ctx: t.Context()})
			}
			if m := (&pb.ListRequest{}); decode(m) {
				_ = s.List(m, serverSide[pb.ListPage]{ctx: t.Context()})
			}
			if m := (&pb.DeleteRequest{}); decode(m) {
				_, _ = s.Delete(t.Context(), m)
			}
			if m := (&pb.ValidateRequest{}); decode(m) {
				_, _ = s.Validate(t.Context(), m)
			}
		}
		if got, err := os.ReadFile(outside); err != nil || string(got) != "untouched" {
			t.Errorf("a file outside of the spool holds %q, %v", got, err)
		}
	})
}
