package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// List sends pages: full ones, and each second what there is, which says at the same time that the plugin lives.
func (s *server) List(req *pb.ListRequest, stream grpc.ServerStreamingServer[pb.ListPage]) error {
	return s.work.do(stream.Context(), "list", req.GetPrefix(), func(ctx context.Context) error {
		target, err := s.configured()
		if err != nil {
			return err
		}
		var pending []*pb.Object // guarded by the beat
		flush := func() error {
			page := &pb.ListPage{Objects: pending}
			pending = nil
			return stream.Send(page)
		}
		beat := startBeat(s.beat, flush)
		defer beat.stop()

		ask := sdk.ListRequest{Prefix: req.GetPrefix(), StartAfter: req.GetStartAfter(), Limit: int(req.GetLimit())}
		for obj, err := range target.List(ctx, ask) {
			if err != nil {
				return err
			}
			err = beat.send(func() error {
				pending = append(pending, objectToWire(obj))
				if len(pending) < pageObjects {
					return nil
				}
				return flush()
			})
			if err != nil {
				return err
			}
		}
		return beat.send(func() error { return stream.Send(&pb.ListPage{Objects: pending, End: true}) })
	})
}

func objectToWire(obj sdk.Object) *pb.Object {
	wire := &pb.Object{Key: obj.Key, Size: obj.Size}
	if !obj.Modified.IsZero() {
		wire.ModifiedUnixNano = obj.Modified.UnixNano()
	}
	return wire
}
