// Command cairn-plugin-sqlite is a plugin of Cairn whose targets are SQLite databases: every object a row, its content cut into rows of a
// quarter of a mebibyte.
//
// It is a third party's plugin: a module of its own, built on package sdk and an SQLite driver. The host starts the program; see package
// rpc. Calls run on the goroutines of rpc.Serve, and database/sql has its own.
package main

import (
	"context"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
)

func main() { rpc.Serve(plugin()) }

func plugin() sdk.Plugin[Config] {
	return sdk.Plugin[Config]{
		Name:     "sqlite",
		Version:  "0.1.0",
		Doc:      "stores objects as rows of an SQLite database on a local disk",
		Validate: validate,
		Open: func(_ context.Context, _ sdk.Env, cfg Config) (sdk.Target, error) {
			return openTarget(cfg, time.Now)
		},
	}
}
