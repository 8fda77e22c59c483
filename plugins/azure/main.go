// Command cairn-plugin-azure is the plugin of targets that are containers of Azure Blob Storage.
//
// An object is one block blob whose name is its key. The container is opened, listed and read through gocloud.dev (package blobtarget); a blob
// is written by one Put Blob request, never by staged blocks, whose leftovers would poison the name. The host starts the program; see package
// rpc. Every method does its work on the goroutine of rpc.Serve that calls it; the target has none of its own.
//
// Accounts with a hierarchical namespace are not supported: they list in the order of directories, which blobtarget refuses.
package main

import (
	"context"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
)

func main() {
	rpc.Serve(plugin())
}

func plugin() sdk.Plugin[Config] {
	return sdk.Plugin[Config]{
		Name:     "azure",
		Version:  "0.1.0",
		Doc:      "stores objects as blobs of a container of Azure Blob Storage",
		Validate: validate,
		Open: func(ctx context.Context, _ sdk.Env, cfg Config) (sdk.Target, error) {
			return open(ctx, cfg)
		},
	}
}
