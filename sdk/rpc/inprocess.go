package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// InProcess joins a plugin and a Client by gRPC over memory, for tests of a plugin, of the host and of the wire. The Client is not yet
// configured. stop ends the plugin and the connection, and waits for their goroutines; a call in progress ends as PluginGone.
func InProcess[C any](ctx context.Context, p sdk.Plugin[C], log hclog.Logger, clocks Clocks) (client *Client, stop func() error, err error) {
	a, err := newApp(p)
	if err != nil {
		return nil, nil, err
	}
	clocks = clocks.orDefault()
	return inProcess(newServer(ctx, a, log, min(beatEvery, clocks.Hung/10)), clocks)
}

func inProcess(s pb.TargetServer, clocks Clocks) (*Client, func() error, error) {
	listener := bufconn.Listen(dataFrame)
	listening := grpc.NewServer(append(serverOptions(), grpc.WaitForHandlers(true))...)
	pb.RegisterTargetServer(listening, s)
	served := make(chan error, 1)
	go func() { served <- listening.Serve(listener) }()

	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	conn, err := grpc.NewClient("passthrough:///plugin", append(DialOptions(),
		grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		listening.Stop()
		return nil, nil, errors.Join(fmt.Errorf("connect in process: %w", err), <-served)
	}
	stop := func() error {
		listening.Stop()
		if s, ok := s.(*server); ok {
			s.drain(s.ctx, 0)
		}
		return errors.Join(conn.Close(), <-served)
	}
	return NewClient(conn, clocks), stop, nil
}
