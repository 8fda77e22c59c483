package sdktest_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemPassesTheExam(t *testing.T) {
	sdktest.Run(t, func(*testing.T) *sdktest.Env {
		mem := sdktest.NewMem()
		return &sdktest.Env{Target: mem, Reopen: func(context.Context) (sdk.Target, error) { return mem, nil }}
	})
}

func TestMemPassesTheExamOverRPC(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		mem := sdktest.NewMem()
		client, spool := sdktest.OverRPC(t, mem)
		second := func(context.Context) (sdk.Target, error) {
			again, _ := sdktest.OverRPC(t, mem)
			return again, nil
		}
		return &sdktest.Env{Target: client, Spool: spool, Reopen: second}
	})
}
