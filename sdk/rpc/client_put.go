package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// Put sends one object: up to sdk.MaxInline bytes in the request, more as the range of a spool file.
func (w *wire) Put(ctx context.Context, put sdk.PutRequest) (sdk.PutResult, error) {
	req, err := w.putRequest(put)
	if err != nil {
		return sdk.PutResult{}, &sdk.Error{Code: sdk.CodeOf(err), Op: "put", Key: put.Key, Err: err}
	}
	ctx, watch := newWatch(ctx, w.clocks)
	defer watch.stop()
	stream, err := opened(watch, func() (grpc.ServerStreamingClient[pb.PutEvent], error) { return w.rpc.Put(ctx, req) })
	if err != nil {
		return sdk.PutResult{}, fromStatus(ctx, "put", put.Key, err)
	}
	for {
		event, err := next(watch, stream)
		switch {
		case errors.Is(err, io.EOF):
			return sdk.PutResult{}, broken("put", put.Key, "ends a put without saying that it is done")
		case err != nil:
			return sdk.PutResult{}, fromStatus(ctx, "put", put.Key, err)
		}
		if done := event.GetDone(); done != nil {
			return putResult(done), nil
		}
		watch.progress(event.GetProgress().GetBytes())
	}
}

func (w *wire) putRequest(put sdk.PutRequest) (*pb.PutRequest, error) {
	sum := put.Body.SHA256()
	req := &pb.PutRequest{
		Op: w.op.Add(1), Key: put.Key, IfAbsent: put.IfAbsent, Class: pb.ObjectClass(put.Class),
		Size: put.Body.Size(), Sha256: sum[:], Crc32C: put.Body.CRC32C(),
	}
	if put.Body.Size() <= sdk.MaxInline {
		inline, err := io.ReadAll(put.Body.Reader()) // checks the digest before anything leaves this process
		req.Source = &pb.PutRequest_Inline{Inline: inline}
		return req, err
	}
	f, off := put.Body.File()
	if f == nil {
		return nil, fmt.Errorf("%w: a body of %d bytes in memory; above %d it must lie in a spool file", sdk.Unsupported, put.Body.Size(), sdk.MaxInline)
	}
	at, err := w.spool.Load().locate(f, off)
	req.Source = &pb.PutRequest_File{File: at}
	return req, err
}

func putResult(done *pb.PutDone) sdk.PutResult {
	res := sdk.PutResult{Version: readable(done.GetVersion(), maxLabel)}
	if len(done.GetSha256()) == len(res.SHA256) {
		copy(res.SHA256[:], done.GetSha256())
	}
	return res
}

// broken is the plugin's breach of the protocol.
func broken(op, key, format string, args ...any) *sdk.Error {
	return &sdk.Error{Op: op, Key: key, Err: fmt.Errorf("the plugin breaks its contract: it "+format, args...)}
}
