// Command cairn-plugin-gcs is the plugin of targets that are buckets of Google Cloud Storage.
//
// An object is one object whose name is its key. The bucket is opened, listed and read through gocloud.dev (package blobtarget); an object is
// written by one request of the vendor's writer without its buffer. The host starts the program; see package rpc. Every method does its work
// on the goroutine of rpc.Serve that calls it; the target has one goroutine of its own while a token is fetched: see tokens.
package main

import (
	"context"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
)

func main() {
	rpc.Serve(plugin(time.Now)) //nolint:forbidigo // a main owns the clock
}

func plugin(now func() time.Time) sdk.Plugin[Config] {
	return sdk.Plugin[Config]{
		Name:     "gcs",
		Version:  "0.1.0",
		Doc:      "stores objects in a bucket of Google Cloud Storage",
		Validate: validate,
		Open: func(ctx context.Context, _ sdk.Env, cfg Config) (sdk.Target, error) {
			return open(ctx, cfg, now)
		},
	}
}
