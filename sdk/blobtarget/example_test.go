package blobtarget_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"gocloud.dev/blob/memblob"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
	"github.com/cairnsync/cairn/sdk/rpc"
)

// memoryConfig is what an operator writes in the config block of a target. A driver with a server has its bucket's name here.
type memoryConfig struct {
	Checksums bool `cairn:"checksums" default:"true" doc:"keep an MD5 beside each object"`
}

// openMemory opens the bucket; for another store it is the driver's OpenBucket that differs, and nothing else.
func openMemory(_ context.Context, _ sdk.Env, cfg memoryConfig) (sdk.Target, error) {
	bucket := memblob.OpenBucket(&memblob.Options{NoMD5: !cfg.Checksums})
	return blobtarget.New(bucket, blobtarget.Hooks{}), nil
}

func memoryPlugin() sdk.Plugin[memoryConfig] {
	return sdk.Plugin[memoryConfig]{
		Name:    "memory",
		Version: "0.1.0",
		Doc:     "keeps objects in memory until it ends",
		Open:    openMemory,
	}
}

// A complete plugin over a gocloud driver. Its main is one line,
//
//	func main() { rpc.Serve(memoryPlugin()) }
//
// Here it is served inside the process instead, and used as the host would.
func Example() {
	ctx := context.Background()
	client, stop, err := rpc.InProcess(ctx, memoryPlugin(), hclog.NewNullLogger(), rpc.Clocks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = stop() }()
	if err := client.Configure(ctx, rpc.Configuration{Target: "scratch", Config: []byte(`{}`)}); err != nil {
		fmt.Println(err)
		return
	}

	create := sdk.PutRequest{Key: "commit/1", Body: sdk.BytesBody([]byte("hello")), IfAbsent: true}
	_, first := client.Put(ctx, create)
	_, second := client.Put(ctx, create)
	fmt.Println("create:", first, errors.Is(second, sdk.Exists))
	for obj, err := range client.List(ctx, sdk.ListRequest{Prefix: "commit/"}) {
		fmt.Println("list:", obj.Key, obj.Size, err)
	}
	fmt.Println("delete:", client.Delete(ctx, []string{"commit/1", "commit/2"}))
	_, err = client.Get(ctx, sdk.GetRequest{Key: "commit/1", Length: -1})
	fmt.Println("get:", errors.Is(err, sdk.NotFound))
	// Output:
	// create: <nil> true
	// list: commit/1 5 <nil>
	// delete: <nil>
	// get: true
}
