// Command cairn runs a host of pipelines and speaks to one.
//
// It is a door: flags, signals, exit codes and words for people. What it does lies in core/host, core/config and sdk/client.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "0.1.0-dev" //nolint:gochecknoglobals // the linker can set nothing else

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand(&program{stdout: stdout, stderr: stderr})
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if shown := (*shownError)(nil); !errors.As(err, &shown) {
		fmt.Fprintf(stderr, "cairn: %v\n", err)
	}
	return exitCode(err)
}
