package rpc

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// List yields the pages' objects; a stream that ends without saying so is a failure.
func (w *wire) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		ctx, watch := newWatch(ctx, w.clocks)
		defer watch.stop()
		stream, err := opened(watch, func() (grpc.ServerStreamingClient[pb.ListPage], error) {
			return w.rpc.List(ctx, &pb.ListRequest{
				Op: w.op.Add(1), Prefix: req.Prefix, StartAfter: req.StartAfter, Limit: int32(min(max(req.Limit, 0), pageObjects)),
			})
		})
		if err != nil {
			yield(sdk.Object{}, fromStatus(ctx, "list", req.Prefix, err))
			return
		}
		for end := false; !end; {
			var page *pb.ListPage
			if page, err = nextPage(ctx, watch, stream, req.Prefix); err != nil {
				yield(sdk.Object{}, err)
				return
			}
			end = page.GetEnd()
			watch.rest()
			for _, obj := range page.GetObjects() {
				if !yield(objectFromWire(obj), nil) {
					return
				}
			}
			watch.work()
		}
	}
}

// nextPage waits for a page that has objects or is the last. Objects are what moves in a listing.
func nextPage(ctx context.Context, w *watch, stream grpc.ServerStreamingClient[pb.ListPage], prefix string) (*pb.ListPage, error) {
	for {
		page, err := next(w, stream)
		switch {
		case errors.Is(err, io.EOF):
			return nil, broken("list", prefix, "ends a listing without saying that it is complete")
		case err != nil:
			return nil, fromStatus(ctx, "list", prefix, err)
		case len(page.GetObjects()) > 0 || page.GetEnd():
			return page, nil
		}
	}
}

func objectFromWire(obj *pb.Object) sdk.Object {
	out := sdk.Object{Key: obj.GetKey(), Size: obj.GetSize()}
	if ns := obj.GetModifiedUnixNano(); ns != 0 {
		out.Modified = time.Unix(0, ns).UTC()
	}
	return out
}
