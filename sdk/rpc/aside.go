package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// aside holds what go-plugin calls for its own ends on the connection. Its broker is not used, and would start a goroutine for each message
// that a plugin sends to it: that call is not made. What a plugin streams as its output is read no faster than the events of a call.
func aside(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, start grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method == "/plugin.GRPCBroker/StartStream" {
		return nil, status.Error(codes.Unimplemented, "the broker of go-plugin is not used")
	}
	stream, err := start(ctx, desc, conn, method, opts...)
	if err != nil || method != "/plugin.GRPCStdio/StreamStdio" {
		return stream, err
	}
	return &pacedStream{ClientStream: stream}, nil
}

// pacedStream is read at the pace of a call's events. For one reader.
type pacedStream struct {
	grpc.ClientStream
	pace pace
}

// RecvMsg implements grpc.ClientStream.
func (s *pacedStream) RecvMsg(m any) error {
	s.pace.event(s.Context().Done())
	return s.ClientStream.RecvMsg(m)
}
