// Command cairn-plugin-s3 is the plugin of targets that are buckets of Amazon S3 or of a store that speaks its protocol.
//
// The host starts the program; see package rpc. It reads through gocloud.dev and writes through the vendor's client, see target.go.
// Every method does its work on the goroutine of rpc.Serve that calls it.
package main

import (
	"context"
	"time"

	"gocloud.dev/blob/s3blob"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
	"github.com/cairnsync/cairn/sdk/rpc"
)

func main() {
	rpc.Serve(plugin(time.Now)) //nolint:forbidigo // a main owns the clock
}

func plugin(now func() time.Time) sdk.Plugin[Config] {
	return sdk.Plugin[Config]{
		Name:     "s3",
		Version:  "0.1.0",
		Doc:      "stores objects in a bucket of Amazon S3 or of a store that speaks its protocol",
		Validate: validate,
		Open: func(ctx context.Context, _ sdk.Env, cfg Config) (sdk.Target, error) {
			return open(ctx, cfg, now)
		},
	}
}

// open reads files and the environment only: the store may be down.
func open(ctx context.Context, cfg Config, now func() time.Time) (sdk.Target, error) {
	client, err := newClient(ctx, cfg, now)
	if err != nil {
		return nil, err
	}
	bucket, err := s3blob.OpenBucket(ctx, client, cfg.Bucket, nil)
	if err != nil {
		return nil, err
	}
	s := &store{client: client, cfg: cfg, table: errorTable{bucket: cfg.Bucket, now: now}}
	return blobtarget.New(bucket, blobtarget.Hooks{
		Put:        s.put,
		Delete:     s.delete,
		BeforeList: startAfter,
		Error:      s.table.explain,
	}), nil
}
