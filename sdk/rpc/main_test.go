package rpc

import (
	"context"
	"os"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/sdk"
)

// TestMain lets the test binary play the plugin: process_test.go starts it again with the cookie in its environment.
func TestMain(m *testing.M) {
	if startedByHost() || os.Getenv("CAIRN_TEST_BY_HAND") != "" {
		playPlugin()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// pluginOf makes a plugin of a ready target.
func pluginOf(target sdk.Target) sdk.Plugin[struct{}] {
	return sdk.Plugin[struct{}]{
		Name: "test", Version: "1.2.3", Doc: "a target for tests",
		Open: func(context.Context, sdk.Env, struct{}) (sdk.Target, error) { return target, nil },
	}
}

// serveTarget gives a client that is configured for target, and its spool.
func serveTarget(t *testing.T, target sdk.Target, clocks Clocks) (*Client, string) {
	t.Helper()
	client := start(t, pluginOf(target), clocks)
	spool := t.TempDir()
	if err := client.Configure(t.Context(), Configuration{Target: "test", Spool: spool}); err != nil {
		t.Fatal(err)
	}
	return client, spool
}

func start[C any](t *testing.T, p sdk.Plugin[C], clocks Clocks) *Client {
	t.Helper()
	client, stop, err := InProcess(context.WithoutCancel(t.Context()), p, hclog.NewNullLogger(), clocks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return client
}
