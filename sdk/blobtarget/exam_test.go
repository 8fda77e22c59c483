package blobtarget_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick is a bucket that takes no MD5, which is the slowest part of these tests.
func quick() *blob.Bucket { return memblob.OpenBucket(&memblob.Options{NoMD5: true}) }

func memory(bucket *blob.Bucket) sdk.Target { return blobtarget.New(bucket, blobtarget.Hooks{}) }

func TestABucketInMemoryPassesTheExam(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		bucket := quick()
		return &sdktest.Env{
			Target: memory(bucket),
			Reopen: func(context.Context) (sdk.Target, error) { return memory(bucket), nil },
		}
	})
}

func TestABucketInMemoryPassesTheExamOverTheWire(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		bucket := quick()
		client, spool := sdktest.OverRPC(t, memory(bucket))
		return &sdktest.Env{
			Target: client, Spool: spool,
			Reopen: func(context.Context) (sdk.Target, error) { return memory(bucket), nil },
		}
	})
}
