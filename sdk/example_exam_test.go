package sdk_test

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func TestTheExamplePluginPassesTheExam(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		target, err := openShelf(t.Context(), sdk.Env{Target: "test", Log: hclog.NewNullLogger()}, shelfConfig{Capacity: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		return &sdktest.Env{Target: target, Reopen: func(context.Context) (sdk.Target, error) { return target, nil }}
	})
}
