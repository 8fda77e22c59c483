// Command cairn runs a host of pipelines and speaks to one.
//
// It is a door: flags, signals, exit codes and words for people. What it does lies in core/host, core/config and sdk/client.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "0.1.0-dev"

func main() { os.Exit(mainWith(nil)) }

// mainWith is main; hook is for tests, see program.
func mainWith(hook func(point string)) int {
	keepDescriptors()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	return run(ctx, &program{stdout: os.Stdout, stderr: os.Stderr, hook: hook}, os.Args[1:])
}

// run is the whole program but for the process around it.
func run(ctx context.Context, p *program, args []string) int {
	root := rootCommand(p)
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if shown := (*shownError)(nil); !errors.As(err, &shown) {
		fmt.Fprintf(p.stderr, "cairn: %v\n", err)
	}
	return exitCode(err)
}
