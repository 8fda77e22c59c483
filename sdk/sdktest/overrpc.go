package sdktest

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
)

// OverRPC puts the whole wire between a test and a target, without a process: gRPC, spool, clocks and error codes. Bodies above
// sdk.MaxInline, and files for Fetch, belong in the directory spool. Both ends are stopped when the test ends.
func OverRPC(t testing.TB, target sdk.Target) (client *rpc.Client, spool string) {
	t.Helper()
	p := sdk.Plugin[struct{}]{
		Name: "test", Version: sdk.Version,
		Open: func(context.Context, sdk.Env, struct{}) (sdk.Target, error) { return target, nil },
	}
	// One process cannot hang without the other here; a machine that is busy with other tests can make it seem so.
	patient := rpc.Clocks{Hung: time.Minute, Stall: 5 * time.Minute}
	client, stop, err := rpc.InProcess(context.WithoutCancel(t.Context()), p, hclog.NewNullLogger(), patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop the plugin: %v", err)
		}
	})
	spool = t.TempDir()
	if err := client.Configure(t.Context(), rpc.Configuration{Target: "test", Spool: spool}); err != nil {
		t.Fatal(err)
	}
	return client, spool
}
