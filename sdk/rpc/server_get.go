package rpc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"syscall"

	"google.golang.org/grpc"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// Get reads one object or range, into the sink that the request names or into the stream.
func (s *server) Get(req *pb.GetRequest, stream grpc.ServerStreamingServer[pb.GetEvent]) error {
	return s.work.do(stream.Context(), "get", req.GetKey(), func(ctx context.Context) error {
		target, err := s.configured()
		if err != nil {
			return err
		}
		var moved meter
		beat := startBeat(s.beat, func() error {
			return stream.Send(&pb.GetEvent{Event: &pb.GetEvent_Progress{Progress: &pb.Progress{Bytes: moved.bytes.Load()}}})
		})
		defer beat.stop()
		send := func(e *pb.GetEvent) error { return beat.send(func() error { return stream.Send(e) }) }
		return s.get(ctx, target, req, &moved, send)
	})
}

func (s *server) get(ctx context.Context, target sdk.Target, req *pb.GetRequest, moved *meter, send func(*pb.GetEvent) error) error {
	sink, closer, err := s.sink(req.GetSink(), send)
	if err != nil {
		return err
	}
	defer closer.Close()
	res, err := target.Get(ctx, sdk.GetRequest{Key: req.GetKey(), Offset: req.GetOffset(), Length: req.GetLength()})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := send(&pb.GetEvent{Event: &pb.GetEvent_Open{Open: &pb.GetOpen{Size: res.Size}}}); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := transfer(ctx, sink, sum, moved.reader(res.Body))
	if err != nil {
		return err
	}
	return send(&pb.GetEvent{Event: &pb.GetEvent_End{End: &pb.GetEnd{Size: n, Sha256: sum.Sum(nil)}}})
}

// sink is where the bytes go: a range of a spool file, or Data events.
func (s *server) sink(at *pb.FileRange, send func(*pb.GetEvent) error) (io.Writer, io.Closer, error) {
	if at == nil {
		return dataSink(send), io.NopCloser(nil), nil
	}
	f, err := s.roots.open(at, os.O_WRONLY)
	if err != nil {
		return nil, nil, err
	}
	return io.NewOffsetWriter(f, at.GetOffset()), f, nil
}

// dataSink sends each write as one event; transfer keeps them at dataFrame.
type dataSink func(*pb.GetEvent) error

func (send dataSink) Write(p []byte) (int, error) {
	// The stream has marshalled the event when Send returns, so p may be used again.
	if err := send(&pb.GetEvent{Event: &pb.GetEvent_Data{Data: p}}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// transfer copies and sums until the end of src; it looks at ctx between reads, for a body that does not.
func transfer(ctx context.Context, dst io.Writer, sum hash.Hash, src io.Reader) (n int64, err error) {
	frame := make([]byte, dataFrame)
	for err == nil {
		var got int
		got, err = fillFrame(ctx, src, frame)
		sum.Write(frame[:got])
		n += int64(got)
		if got == 0 {
			continue
		}
		if _, werr := dst.Write(frame[:got]); werr != nil {
			return n, sinkError(werr)
		}
	}
	if errors.Is(err, io.EOF) {
		return n, nil
	}
	return n, err
}

// fillFrame reads until the frame is full or an error comes. It is io.ReadFull, but for an end in mid-frame: that stays io.EOF, so that
// a source's own io.ErrUnexpectedEOF, which is how net/http reports a cut connection, is never taken for one.
func fillFrame(ctx context.Context, src io.Reader, frame []byte) (n int, err error) {
	for n < len(frame) && err == nil {
		if err = context.Cause(ctx); err != nil {
			return n, err
		}
		var got int
		got, err = src.Read(frame[n:])
		n += got
	}
	return n, err
}

// sinkError is a fault of the host's spool, or of the stream to it.
func sinkError(err error) error {
	e := &sdk.Error{Err: fmt.Errorf("hand over what the store sent: %w", err)}
	if errors.Is(err, syscall.ENOSPC) {
		e.Code, e.Hint = sdk.NoSpace, "the file system of host.spool_dir is full"
	}
	return e
}
