package rpc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"google.golang.org/grpc"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// Get opens an object over the stream: for small objects. The body must be closed.
func (w *wire) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	get, err := w.startGet(ctx, req, nil)
	if err != nil {
		return sdk.GetResult{}, err
	}
	get.watch.rest()
	return sdk.GetResult{Body: &getBody{getting: get, sum: sha256.New()}, Size: get.size}, nil
}

// Fetch reads an object or a range into f from off on, and gives the number of bytes. A file in the spool is filled by the plugin and
// read back against the digest that it declares; into any other file the bytes come over the stream. What is in f after an error is
// of no use. At most sdk.MaxObject bytes are taken.
func (c *Client) Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error) {
	if err := sdk.CheckGet(req); err != nil {
		return 0, err
	}
	sink, err := c.wire.spool.Load().locate(f, off)
	if err != nil {
		return c.fetchStream(ctx, req, io.NewOffsetWriter(f, off))
	}
	get, err := c.wire.startGet(ctx, req, sink)
	if err != nil {
		return 0, err
	}
	defer get.watch.stop()
	end, err := get.end()
	if err != nil {
		return 0, err
	}
	sum := sha256.New()
	if n, err := io.Copy(sum, io.NewSectionReader(f, off, end.GetSize())); err != nil || n != end.GetSize() {
		return 0, get.corrupt("the spool file holds %d of the %d bytes that were fetched", n, end.GetSize())
	}
	return end.GetSize(), get.verify(end, end.GetSize(), sum)
}

func (c *Client) fetchStream(ctx context.Context, req sdk.GetRequest, dst io.Writer) (int64, error) {
	res, err := c.Get(ctx, req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return io.Copy(dst, res.Body)
}

// getting is a Get in progress.
type getting struct {
	ctx    context.Context
	key    string
	watch  *watch
	stream grpc.ServerStreamingClient[pb.GetEvent]
	size   int64 // as the store declared it
}

// startGet makes the call and waits until the object is open.
func (w *wire) startGet(ctx context.Context, req sdk.GetRequest, sink *pb.FileRange) (*getting, error) {
	ctx, watch := newWatch(ctx, w.clocks)
	get := &getting{ctx: ctx, key: req.Key, watch: watch}
	err := get.start(w.rpc, &pb.GetRequest{
		Op: w.op.Add(1), Key: req.Key, Offset: req.Offset, Length: req.Length, Sink: sink,
	})
	if err != nil {
		watch.stop()
		return nil, err
	}
	return get, nil
}

func (g *getting) start(rpc pb.TargetClient, req *pb.GetRequest) (err error) {
	g.stream, err = opened(g.watch, func() (grpc.ServerStreamingClient[pb.GetEvent], error) { return rpc.Get(g.ctx, req) })
	if err != nil {
		return fromStatus(g.ctx, "get", g.key, err)
	}
	for {
		event, err := g.event()
		if err != nil {
			return err
		}
		switch e := event.GetEvent().(type) {
		case *pb.GetEvent_Progress:
			g.watch.progress(e.Progress.GetBytes())
		case *pb.GetEvent_Open:
			g.size = e.Open.GetSize()
			return g.checkSize(req.GetLength())
		case *pb.GetEvent_Data, *pb.GetEvent_End:
			return broken("get", g.key, "sends bytes before it says how many there are")
		}
	}
}

// checkSize refuses what would overrun the caller's range of the spool.
func (g *getting) checkSize(length int64) error {
	switch {
	case g.size < 0 || length > 0 && g.size > length:
		return broken("get", g.key, "declares %d bytes where %d were asked for", g.size, length)
	case g.size > sdk.MaxObject:
		return g.corrupt("the store declares %d bytes; no object of ours is larger than %d", g.size, sdk.MaxObject)
	}
	return nil
}

// event is the next one; the end of the stream is never a good end.
func (g *getting) event() (*pb.GetEvent, error) {
	event, err := next(g.watch, g.stream)
	switch {
	case errors.Is(err, io.EOF):
		return nil, g.corrupt("the plugin ends the object without saying that it is complete")
	case err != nil:
		return nil, fromStatus(g.ctx, "get", g.key, err)
	}
	return event, nil
}

// end waits for the End of a Get with a sink.
func (g *getting) end() (*pb.GetEnd, error) {
	for {
		event, err := g.event()
		if err != nil {
			return nil, err
		}
		if event.GetData() != nil {
			return nil, broken("get", g.key, "sends bytes that were to go to the spool")
		}
		if end := event.GetEnd(); end != nil {
			if end.GetSize() != g.size {
				return nil, g.corrupt("the plugin fetched %d of %d bytes", end.GetSize(), g.size)
			}
			return end, nil
		}
		g.watch.progress(event.GetProgress().GetBytes())
	}
}

func (g *getting) verify(end *pb.GetEnd, n int64, sum hash.Hash) error {
	switch {
	case n != end.GetSize() || n != g.size:
		return g.corrupt("%d bytes came, the store declared %d and the plugin sent %d", n, g.size, end.GetSize())
	case !bytes.Equal(sum.Sum(nil), end.GetSha256()):
		return g.corrupt("the bytes that came are not those that the plugin read")
	}
	return nil
}

func (g *getting) corrupt(format string, args ...any) error {
	return &sdk.Error{Code: sdk.Corrupt, Op: "get", Key: g.key, Err: fmt.Errorf(format, args...)}
}

// getBody reads the Data of a Get. It answers io.EOF only after an End that agrees with what came.
type getBody struct {
	*getting
	sum  hash.Hash
	n    int64
	left []byte // of the last Data
	err  error  // sticky
}

func (b *getBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, b.err
	}
	if len(b.left) == 0 && b.err == nil {
		b.watch.work()
		b.err = b.more()
		b.watch.rest()
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	if n > 0 {
		return n, nil
	}
	return 0, b.err
}

// more waits for the next Data, or for the End, which it checks.
func (b *getBody) more() error {
	for {
		event, err := b.event()
		if err != nil {
			return err
		}
		switch e := event.GetEvent().(type) {
		case *pb.GetEvent_Progress:
			b.watch.progress(e.Progress.GetBytes())
		case *pb.GetEvent_Data:
			b.sum.Write(e.Data)
			b.n += int64(len(e.Data))
			if b.left = e.Data; len(b.left) > 0 {
				return nil
			}
		case *pb.GetEvent_End:
			if err := b.verify(e.End, b.n, b.sum); err != nil {
				return err
			}
			return io.EOF
		}
	}
}

// Close ends the call, also before the end of the object.
func (b *getBody) Close() error {
	b.watch.stop()
	if b.err == nil {
		b.err = fmt.Errorf("read of %s: %w", b.key, os.ErrClosed)
	}
	b.left = nil
	return nil
}
