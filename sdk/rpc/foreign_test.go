package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// blind is a plugin in another container: it proves nothing.
type blind struct{ pb.UnimplementedTargetServer }

func (blind) Configure(context.Context, *pb.ConfigureRequest) (*pb.ConfigureReply, error) {
	return &pb.ConfigureReply{Proofs: []*pb.Proof{{Root: "spool", Nonce: []byte("guess")}}}, nil
}

// foreign is a plugin that was written against the wire, in any language, with faults.
type foreign struct {
	pb.UnimplementedTargetServer
	put  func(grpc.ServerStreamingServer[pb.PutEvent]) error
	get  func(*pb.GetRequest, grpc.ServerStreamingServer[pb.GetEvent]) error
	list func(grpc.ServerStreamingServer[pb.ListPage]) error
	del  func(context.Context) (*pb.DeleteReply, error)
	mute bool // does not describe itself
}

func (f foreign) Describe(ctx context.Context, _ *pb.DescribeRequest) (*pb.Description, error) {
	if f.mute {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pb.Description{Name: "foreign"}, nil
}

func (f foreign) Configure(_ context.Context, req *pb.ConfigureRequest) (*pb.ConfigureReply, error) {
	reply := &pb.ConfigureReply{}
	for _, root := range req.GetRoots() {
		nonce, err := os.ReadFile(root.GetPath() + "/" + root.GetNonceFile())
		if err != nil {
			return nil, err
		}
		reply.Proofs = append(reply.Proofs, &pb.Proof{Root: root.GetId(), Nonce: nonce})
	}
	return reply, nil
}

func (f foreign) Put(_ *pb.PutRequest, stream grpc.ServerStreamingServer[pb.PutEvent]) error {
	return f.put(stream)
}

func (f foreign) Get(req *pb.GetRequest, stream grpc.ServerStreamingServer[pb.GetEvent]) error {
	return f.get(req, stream)
}

func (f foreign) List(_ *pb.ListRequest, stream grpc.ServerStreamingServer[pb.ListPage]) error {
	return f.list(stream)
}

func (f foreign) Delete(ctx context.Context, _ *pb.DeleteRequest) (*pb.DeleteReply, error) {
	return f.del(ctx)
}

func startForeign(t *testing.T, f pb.TargetServer, clocks Clocks) (*Client, string) {
	t.Helper()
	client, stop, err := inProcess(f, clocks.orDefault())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	spool := t.TempDir()
	if err := client.Configure(t.Context(), Configuration{Spool: spool}); err != nil {
		t.Fatal(err)
	}
	return client, spool
}

func open(n int64) *pb.GetEvent {
	return &pb.GetEvent{Event: &pb.GetEvent_Open{Open: &pb.GetOpen{Size: n}}}
}

func data(text string) *pb.GetEvent {
	return &pb.GetEvent{Event: &pb.GetEvent_Data{Data: []byte(text)}}
}

func end(n int64, of string) *pb.GetEvent {
	sum := sdk.SumsOf([]byte(of)).SHA256
	return &pb.GetEvent{Event: &pb.GetEvent_End{End: &pb.GetEnd{Size: n, Sha256: sum[:]}}}
}

// CASES A16
func TestAReadIsNeverShortAndClean(t *testing.T) {
	for name, c := range map[string]struct {
		events []*pb.GetEvent
		want   sdk.Code
	}{
		"the stream ends without an End":     {[]*pb.GetEvent{open(5), data("hello")}, sdk.Corrupt},
		"the stream ends in the middle":      {[]*pb.GetEvent{open(5), data("hel")}, sdk.Corrupt},
		"the stream ends at once":            {nil, sdk.Corrupt},
		"the stream ends once open":          {[]*pb.GetEvent{open(0)}, sdk.Corrupt},
		"an End that came too early":         {[]*pb.GetEvent{open(5), data("hel"), end(3, "hel")}, sdk.Corrupt},
		"an End that says more than came":    {[]*pb.GetEvent{open(5), data("hel"), end(5, "hello")}, sdk.Corrupt},
		"an End with another digest":         {[]*pb.GetEvent{open(5), data("hello"), end(5, "hallo")}, sdk.Corrupt},
		"an End without a digest":            {[]*pb.GetEvent{open(5), data("hello"), {Event: &pb.GetEvent_End{End: &pb.GetEnd{Size: 5}}}}, sdk.Corrupt},
		"more bytes than declared":           {[]*pb.GetEvent{open(5), data("hello!"), end(6, "hello!")}, sdk.Corrupt},
		"bytes before the size":              {[]*pb.GetEvent{data("hello"), end(5, "hello")}, sdk.Internal},
		"an End before the size":             {[]*pb.GetEvent{end(0, "")}, sdk.Internal},
		"a negative size":                    {[]*pb.GetEvent{open(-1)}, sdk.Internal},
		"a size above what was asked for":    {[]*pb.GetEvent{open(11)}, sdk.Internal},
		"an event of the future is not data": {[]*pb.GetEvent{open(5), {}, data("hel"), {}}, sdk.Corrupt},
	} {
		client, spool := startForeign(t, foreign{get: func(_ *pb.GetRequest, s grpc.ServerStreamingServer[pb.GetEvent]) error {
			for _, event := range c.events {
				if err := s.Send(event); err != nil {
					return err
				}
			}
			return nil
		}}, Clocks{})
		req := sdk.GetRequest{Key: "k", Length: 10}
		res, err := client.Get(t.Context(), req)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if err == nil || sdk.CodeOf(err) != c.want {
			t.Errorf("%s: get: %v; want %s", name, err, c.want)
		}
		f, off := spoolFile(t, spool, nil)
		if _, err := client.Fetch(t.Context(), req, f, off); err == nil {
			t.Errorf("%s: fetch succeeds", name)
		}
	}
}

func TestAnObjectLargerThanAnyOfOursIsNotTaken(t *testing.T) {
	client, _ := startForeign(t, foreign{get: func(_ *pb.GetRequest, s grpc.ServerStreamingServer[pb.GetEvent]) error {
		return s.Send(open(sdk.MaxObject + 1))
	}}, Clocks{})
	if _, err := client.Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1}); !errors.Is(err, sdk.Corrupt) {
		t.Errorf("get: %v", err)
	}
}

func TestAFetchIsReadBackFromTheSpool(t *testing.T) {
	for name, write := range map[string]string{"nothing was written": "", "other bytes were written": "hallo", "too few bytes were written": "hell"} {
		var f *os.File
		client, spool := startForeign(t, foreign{get: func(req *pb.GetRequest, s grpc.ServerStreamingServer[pb.GetEvent]) error {
			_, err := f.WriteAt([]byte(write), req.GetSink().GetOffset())
			return errors.Join(err, s.Send(open(5)), s.Send(end(5, "hello")))
		}}, Clocks{})
		var off int64
		f, off = spoolFile(t, spool, nil)
		if _, err := client.Fetch(t.Context(), sdk.GetRequest{Key: "k", Length: -1}, f, off); !errors.Is(err, sdk.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// CASES A16
func TestAPutWithoutDoneIsNoSuccess(t *testing.T) {
	client, _ := startForeign(t, foreign{put: func(s grpc.ServerStreamingServer[pb.PutEvent]) error {
		return s.Send(&pb.PutEvent{Event: &pb.PutEvent_Progress{Progress: &pb.Progress{Bytes: 1}}})
	}}, Clocks{})
	_, err := client.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody([]byte("x"))})
	if err == nil || sdk.CodeOf(err) != sdk.Internal || !strings.Contains(err.Error(), "without saying that it is done") {
		t.Errorf("put: %v", err)
	}
}

func page(end bool, keys ...string) *pb.ListPage {
	p := &pb.ListPage{End: end}
	for _, key := range keys {
		p.Objects = append(p.Objects, &pb.Object{Key: key})
	}
	return p
}

// CASES A34
func TestAListingIsCompleteAndInOrderOrAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		pages []*pb.ListPage
		want  string // in the error; "" = none
	}{
		"in pages, some empty":          {[]*pb.ListPage{page(false, "a", "b"), page(false), page(false, "c"), page(true)}, ""},
		"the last page has objects":     {[]*pb.ListPage{page(true, "a", "b", "c")}, ""},
		"no end":                        {[]*pb.ListPage{page(false, "a", "b", "c")}, "without saying that it is complete"},
		"nothing at all":                {nil, "without saying that it is complete"},
		"out of order between pages":    {[]*pb.ListPage{page(false, "a", "c"), page(true, "b")}, `lists "b" after "c"`},
		"a page twice":                  {[]*pb.ListPage{page(false, "a", "b"), page(true, "a", "b")}, `lists "a" after "b"`},
		"an object of the future field": {[]*pb.ListPage{page(false, "a", ""), page(true)}, `lists "" after "a"`},
	} {
		client, _ := startForeign(t, foreign{list: func(s grpc.ServerStreamingServer[pb.ListPage]) error {
			for _, p := range c.pages {
				if err := s.Send(p); err != nil {
					return err
				}
			}
			return nil
		}}, Clocks{})
		n, fault := 0, ""
		for _, err := range client.List(t.Context(), sdk.ListRequest{}) {
			if n++; err != nil {
				fault = err.Error()
				if sdk.CodeOf(err) != sdk.Internal {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if c.want == "" && (fault != "" || n != 3) || c.want != "" && !strings.Contains(fault, c.want) {
			t.Errorf("%s: %d objects, %q; want %q", name, n, fault, c.want)
		}
	}
}

// silent blocks until the call is given up.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAPluginThatSaysNothingHangs(t *testing.T) {
	clocks := Clocks{Hung: 30 * time.Millisecond, Stall: 30 * time.Millisecond}
	client, _ := startForeign(t, foreign{
		put:  func(s grpc.ServerStreamingServer[pb.PutEvent]) error { return silent(s.Context()) },
		get:  func(_ *pb.GetRequest, s grpc.ServerStreamingServer[pb.GetEvent]) error { return silent(s.Context()) },
		list: func(s grpc.ServerStreamingServer[pb.ListPage]) error { return silent(s.Context()) },
		del:  func(ctx context.Context) (*pb.DeleteReply, error) { return nil, silent(ctx) },
		mute: true,
	}, Clocks{}) // Configure answers, however slow the machine is
	client.wire.clocks = Clocks{Hung: clocks.Hung, Stall: time.Hour}
	for method, err := range callStreams(t.Context(), client) {
		if !errors.Is(err, sdk.PluginHung) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if _, err := client.Describe(t.Context()); !errors.Is(err, sdk.PluginHung) {
		t.Errorf("describe: %v", err)
	}
	// A delete has no events: only once its bytes may have stood still long enough is the plugin asked whether it lives.
	client.wire.clocks = clocks
	if err := client.Delete(t.Context(), []string{"k"}); !errors.Is(err, sdk.PluginHung) {
		t.Errorf("delete: %v", err)
	}
}

func callStreams(ctx context.Context, target sdk.Target) map[string]error {
	errs := map[string]error{}
	_, errs["put"] = target.Put(ctx, sdk.PutRequest{Key: "k", Body: sdk.BytesBody([]byte("x"))})
	_, errs["get"] = target.Get(ctx, sdk.GetRequest{Key: "k", Length: -1})
	for _, err := range target.List(ctx, sdk.ListRequest{}) {
		errs["list"] = err
	}
	return errs
}

func TestEventsThatMoveNothingEndInUnavailable(t *testing.T) {
	client, _ := startForeign(t, foreign{
		put: func(s grpc.ServerStreamingServer[pb.PutEvent]) error {
			return repeat(s.Context(), func() error {
				return s.Send(&pb.PutEvent{Event: &pb.PutEvent_Progress{Progress: &pb.Progress{Bytes: 7}}})
			})
		},
		get: func(_ *pb.GetRequest, s grpc.ServerStreamingServer[pb.GetEvent]) error {
			return repeat(s.Context(), func() error {
				return s.Send(&pb.GetEvent{Event: &pb.GetEvent_Progress{Progress: &pb.Progress{Bytes: 7}}})
			})
		},
		list: func(s grpc.ServerStreamingServer[pb.ListPage]) error {
			return repeat(s.Context(), func() error { return s.Send(page(false)) })
		},
		del: func(ctx context.Context) (*pb.DeleteReply, error) { return nil, silent(ctx) },
	}, Clocks{Hung: time.Minute, Stall: 50 * time.Millisecond})
	errs := callStreams(t.Context(), client)
	errs["delete"] = client.Delete(t.Context(), []string{"k"})
	for method, err := range errs {
		if !errors.Is(err, sdk.Unavailable) || !strings.Contains(err.Error(), "no byte has moved") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// repeat sends again and again until the call is given up.
func repeat(ctx context.Context, send func() error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := send(); err != nil {
				return err
			}
		}
	}
}

func TestABrokenConnectionIsPluginGone(t *testing.T) {
	entered := make(chan struct{}, 1)
	client, stop, err := inProcess(foreign{put: func(s grpc.ServerStreamingServer[pb.PutEvent]) error {
		entered <- struct{}{}
		return silent(s.Context())
	}}, Clocks{}.orDefault())
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := client.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody([]byte("x"))})
		failed <- err
	}()
	<-entered
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, sdk.PluginGone) {
		t.Errorf("put: %v", err)
	}
}

func TestAStatusWithoutDetailsHasACodeAllTheSame(t *testing.T) {
	for code, want := range map[codes.Code]sdk.Code{
		codes.Unimplemented: sdk.Unsupported, codes.Unknown: sdk.Internal, codes.ResourceExhausted: sdk.Internal, codes.Unavailable: sdk.PluginGone,
		codes.Canceled: sdk.PluginGone, // nobody has cancelled
	} {
		client, _ := startForeign(t, foreign{del: func(context.Context) (*pb.DeleteReply, error) { return nil, status.Error(code, "text") }}, Clocks{})
		if err := client.Delete(t.Context(), []string{"k"}); !errors.Is(err, want) || !strings.Contains(err.Error(), "text") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestAPageAsLargeAsTheContractAllowsCrosses(t *testing.T) {
	keys := make([]string, 0, pageObjects)
	for i := range pageObjects {
		keys = append(keys, strings.Repeat("k", sdk.MaxKey-4)+string([]byte{byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10), 'x'}))
	}
	client, _ := startForeign(t, foreign{
		list: func(s grpc.ServerStreamingServer[pb.ListPage]) error { return s.Send(page(true, keys...)) },
		get: func(_ *pb.GetRequest, s grpc.ServerStreamingServer[pb.GetEvent]) error {
			big := string(bytes.Repeat([]byte("x"), 5<<20)) // above gRPC's own limit of 4 MiB
			return errors.Join(s.Send(open(5<<20)), s.Send(data(big)), s.Send(end(5<<20, big)))
		},
	}, Clocks{})
	for _, err := range client.List(t.Context(), sdk.ListRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	res, err := client.Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n != 5<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
