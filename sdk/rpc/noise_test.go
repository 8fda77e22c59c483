package rpc_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/cairnsync/cairn/sdk/rpc"
)

// A plugin's package variables may print before its main runs, as this one does when the test binary plays a noisy plugin.
var _ = noise()

func noise() bool {
	if os.Getenv("CAIRN_TEST_NOISE") == "" {
		return false
	}
	fmt.Printf("%d|%d|unix|/nowhere|grpc|\n", 1, rpc.ProtocolVersion) // a main's variables come after those of what it imports
	fmt.Println(strings.Repeat("long line ", 100_000))
	_, _ = os.Stdout.Write([]byte{0, 1, 2, 0xff, '\n'})
	return true
}
