package rpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// Put stores one object from one source.
func (s *server) Put(req *pb.PutRequest, stream grpc.ServerStreamingServer[pb.PutEvent]) error {
	return s.work.do(stream.Context(), "put", req.GetKey(), func(ctx context.Context) error {
		target, err := s.configured()
		if err != nil {
			return err
		}
		src, closer, err := s.source(req)
		if err != nil {
			return err
		}
		defer closer.Close()

		var moved meter
		beat := startBeat(s.beat, func() error {
			return stream.Send(&pb.PutEvent{Event: &pb.PutEvent_Progress{Progress: &pb.Progress{Bytes: moved.bytes.Load()}}})
		})
		defer beat.stop()
		res, err := target.Put(ctx, putRequest(req, moved.source(src)))
		if err != nil {
			return err
		}
		return beat.send(func() error { return stream.Send(putDone(res)) })
	})
}

// source opens what the request names.
func (s *server) source(req *pb.PutRequest) (io.ReaderAt, io.Closer, error) {
	switch src := req.GetSource().(type) {
	case *pb.PutRequest_Inline:
		if int64(len(src.Inline)) != req.GetSize() {
			return nil, nil, &sdk.Error{Code: sdk.Corrupt, Err: fmt.Errorf("%d bytes came where %d were declared", len(src.Inline), req.GetSize())}
		}
		return bytes.NewReader(src.Inline), io.NopCloser(nil), nil
	case *pb.PutRequest_File:
		f, err := s.roots.open(src.File, os.O_RDONLY)
		if err != nil {
			return nil, nil, err
		}
		part, err := section(f, src.File.GetOffset(), req.GetSize())
		if err != nil {
			f.Close()
			return nil, nil, err
		}
		return part, f, nil
	}
	return nil, nil, &sdk.Error{Code: sdk.Unsupported, Err: fmt.Errorf("a put without a source that this plugin knows")}
}

func putRequest(req *pb.PutRequest, src io.ReaderAt) sdk.PutRequest {
	sums := sdk.Sums{CRC32C: req.GetCrc32C()}
	copy(sums.SHA256[:], req.GetSha256())
	return sdk.PutRequest{
		Key: req.GetKey(), Body: sdk.NewBody(src, req.GetSize(), sums),
		IfAbsent: req.GetIfAbsent(), Class: sdk.Class(req.GetClass()),
	}
}

func putDone(res sdk.PutResult) *pb.PutEvent {
	done := &pb.PutDone{Version: wireText(res.Version)}
	if res.SHA256 != [32]byte{} {
		done.Sha256 = res.SHA256[:]
	}
	return &pb.PutEvent{Event: &pb.PutEvent_Done{Done: done}}
}
