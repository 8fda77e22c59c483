// Command cairn-plugin-file is the plugin of targets that are directories: on a disk, a mounted share, a NAS.
//
// An object is one regular file whose path below the directory is its key. The host starts the program; see package rpc. Every method does its
// work on the goroutine of rpc.Serve that calls it. The target has one goroutine of its own, which sweeps: see sweeper.
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
		Name:     "file",
		Version:  "0.1.0",
		Doc:      "stores objects as files below a directory of this machine",
		Validate: validate,
		// A disk that is away must not keep the plugin from starting: each call then says so.
		Open: func(ctx context.Context, _ sdk.Env, cfg Config) (sdk.Target, error) {
			t := newTarget(ctx, cfg.Path, now)
			t.birth.create = cfg.Create
			return t, nil
		},
	}
}
