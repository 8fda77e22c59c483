// Command leaky is a plugin that shows its secret in every way a careless one does: it prints it, logs it, puts it into errors and dies of it.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

type config struct {
	Key sdk.Secret `cairn:"key,required" doc:"shown to everybody"`
}

func main() {
	fmt.Fprintln(os.Stderr, "starting with", os.Getenv("API_TOKEN"))
	rpc.Serve(sdk.Plugin[config]{
		Name: "leaky", Version: "0.0.1", Doc: "a store that tells",
		Open: func(_ context.Context, env sdk.Env, cfg config) (sdk.Target, error) {
			key := cfg.Key.Reveal()
			env.Log.Info("opened", "key", key, "basic", base64.StdEncoding.EncodeToString([]byte("user:"+key)))
			var calls atomic.Int64
			return &sdktest.Faulty{Target: sdktest.NewMem(), Before: func(ctx context.Context, call sdktest.Call) error {
				if calls.Add(1) < 3 {
					return &sdk.Error{Code: sdk.Unavailable, Provider: key, Hint: "replace " + key, Err: errors.New("no luck with " + key)}
				}
				go panic("died of " + key)
				<-ctx.Done()
				return ctx.Err()
			}}, nil
		},
	})
}
