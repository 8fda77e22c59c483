package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// Client is the host's end of one plugin: an sdk.Target, with Fetch beside it, and the calls of the plugin's life. It holds the plugin
// to the contract (sdk.Guard) and to its Clocks. It does not retry and never starts or ends a process; an error with Code PluginGone or
// PluginHung is for the owner of the process to act on. All methods may be called concurrently; Configure comes once, before the first
// call of the Target.
type Client struct {
	sdk.Target
	wire *wire
}

// wire is the Target as the other end answers, unguarded.
type wire struct {
	rpc    pb.TargetClient
	clocks Clocks
	op     atomic.Uint64
	spool  atomic.Pointer[root] // once proven
}

// NewClient is a client over a connection that was made with DialOptions. The connection stays the caller's.
func NewClient(conn grpc.ClientConnInterface, clocks Clocks) *Client {
	w := &wire{rpc: pb.NewTargetClient(conn), clocks: clocks.orDefault()}
	return &Client{Target: sdk.Guard(w), wire: w}
}

// DialOptions set the limits that both ends agree on. There is no keepalive: one shorter than five minutes makes a gRPC server end
// the connection, and the clocks watch each call anyway.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageLimit), grpc.MaxCallSendMsgSize(messageLimit)),
		grpc.WithMaxHeaderListSize(trailerLimit), // an error travels in the trailer
		grpc.WithChainStreamInterceptor(aside),
		grpc.WithDisableRetry(),
		grpc.WithIdleTimeout(0), // an idle pipeline keeps its connection
	}
}

// Describe asks the plugin what it is; it need not be configured. A schema that no configuration could be checked against is an error.
func (c *Client) Describe(ctx context.Context) (d sdk.Description, err error) {
	var reply *pb.Description
	err = c.wire.unary(ctx, "describe", 0, func(ctx context.Context) (err error) {
		reply, err = c.wire.rpc.Describe(ctx, &pb.DescribeRequest{})
		return err
	})
	if err != nil {
		return sdk.Description{}, err
	}
	return describeFromWire(reply)
}

// Validate has the plugin check a configuration without network. Faults are joined, each an *sdk.Error with Code InvalidConfig and
// Attribute where the plugin knows it.
func (c *Client) Validate(ctx context.Context, config []byte) error {
	var found *pb.Diagnostics
	err := c.wire.unary(ctx, "validate", 0, func(ctx context.Context) (err error) {
		found, err = c.wire.rpc.Validate(ctx, &pb.ValidateRequest{Config: config})
		return err
	})
	if err != nil {
		return err
	}
	return fromDiagnostics(found)
}

// Configuration is what Configure hands over.
type Configuration struct {
	Target string // its name in the host's configuration
	Config []byte // a JSON object with the names of the plugin's schema
	Spool  string // directory of the bodies above sdk.MaxInline and of what Fetch fills; "" = none of either
}

// Configure makes the target and has the plugin prove that it sees the spool, by reading a nonce that Configure puts there and takes
// away again. A plugin that cannot is refused: a larger Put could not reach it.
func (c *Client) Configure(ctx context.Context, cfg Configuration) (err error) {
	req := &pb.ConfigureRequest{Target: cfg.Target, Config: cfg.Config}
	var spool root
	if cfg.Spool != "" {
		if spool, err = announceRoot("spool", cfg.Spool); err != nil {
			return fmt.Errorf("announce the spool: %w", err)
		}
		defer func() { err = errors.Join(err, spool.withdraw()) }()
		req.Roots = []*pb.Root{spool.announcement()}
	}
	var reply *pb.ConfigureReply
	err = c.wire.unary(ctx, "configure", 0, func(ctx context.Context) (err error) {
		reply, err = c.wire.rpc.Configure(ctx, req)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(reply.GetDiagnostics().GetErrors()) > 0:
		return fromDiagnostics(reply.GetDiagnostics())
	case cfg.Spool == "":
		return nil
	case !spool.provenBy(reply.GetProofs()):
		return &sdk.Error{
			Code: sdk.InvalidConfig, Op: "configure", Err: fmt.Errorf("the plugin does not see the spool directory %s", spool.path),
			Hint: "host and plugin must share it under the same path, and the plugin must be allowed to read and write there",
		}
	}
	c.wire.spool.Store(&spool)
	return nil
}

// Drain has the plugin refuse new calls, cancel those that run and wait for them, at most so long. It gives the number of calls that
// had not ended by then.
func (c *Client) Drain(ctx context.Context, wait time.Duration) (running int, err error) {
	err = c.wire.unary(ctx, "drain", wait, func(ctx context.Context) error {
		reply, err := c.wire.rpc.Drain(ctx, &pb.DrainRequest{TimeoutNanos: int64(wait)})
		running = int(reply.GetRunning())
		return err
	})
	return running, err
}

// unary makes a call that has no events: it is hung when it has not been answered in extra and the patience of the hung clock.
func (w *wire) unary(ctx context.Context, op string, extra time.Duration, call func(ctx context.Context) error) error {
	patience := w.clocks.Hung + extra
	ctx, cancel := context.WithTimeoutCause(ctx, patience, hungVerdict(patience))
	defer cancel()
	if err := call(ctx); err != nil {
		return fromStatus(ctx, op, "", err)
	}
	return nil
}

// Delete removes keys. The call has no events, so it may take as long as bytes may stand still; a plugin that then does not even
// describe itself hangs.
func (w *wire) Delete(ctx context.Context, keys []string) error {
	call, cancel := context.WithTimeoutCause(ctx, w.clocks.Stall, stallVerdict(w.clocks.Stall))
	defer cancel()
	reply, err := w.rpc.Delete(call, &pb.DeleteRequest{Op: w.op.Add(1), Keys: keys})
	switch {
	case err == nil:
		return deleteErrors(reply, keys)
	case ctx.Err() == nil && (call.Err() != nil || status.Code(err) == codes.DeadlineExceeded && strikes(call)):
		if probe := w.probe(ctx); probe != nil {
			return probe
		}
	}
	return fromStatus(call, "delete", "", err)
}

func (w *wire) probe(ctx context.Context) error {
	return w.unary(ctx, "delete", 0, func(ctx context.Context) error {
		_, err := w.rpc.Describe(ctx, &pb.DescribeRequest{})
		return err
	})
}

// deleteErrors are the failures by key. A plugin that answers for what it was not asked, or more often, is not to be believed in the rest.
func deleteErrors(reply *pb.DeleteReply, keys []string) error {
	asked := make(map[string]bool, len(keys))
	for _, key := range keys {
		asked[key] = true
	}
	var all []error
	said := 0
	for _, wire := range reply.GetErrors() {
		if !asked[wire.GetKey()] {
			return broken("delete", "", "answers for the key %.*q, which it was not asked to delete, or answers for it twice", maxLabel, wire.GetKey())
		}
		delete(asked, wire.GetKey())
		e := whole(fromWire(wire), "delete", "")
		if said += len(e.Error()) + len(e.Hint); said > maxDeleteText {
			e = &sdk.Error{Code: e.Code, Op: e.Op, Key: e.Key} // the others have said why
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}
