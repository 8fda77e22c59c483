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
	"time"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "0.1.0-dev"

func main() { os.Exit(mainWith(nil)) }

// mainWith is main; hook is for tests, see program.
func mainWith(hook func(point string)) int {
	keepDescriptors()
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup has its way; a terminal that closes ends a host in order
		signal.Notify(signals, syscall.SIGHUP)
	}
	go obey(signals, cancel)
	return run(ctx, &program{stdout: os.Stdout, stderr: os.Stderr, hook: hook}, os.Args[1:])
}

// sameSignal is how long after the first a signal is taken for its echo: a terminal and a tool such as timeout or a supervisor may both send it.
const sameSignal = time.Second

// exitSignal is the shell's code for a program that SIGINT has ended.
const exitSignal = 130

// obey ends the work at the first signal and the process at the second.
func obey(signals <-chan os.Signal, cancel context.CancelFunc) {
	<-signals
	cancel()
	echo := time.NewTimer(sameSignal)
	for patient := true; ; {
		select {
		case <-echo.C:
			patient = false
		case <-signals:
			if !patient {
				os.Exit(exitSignal)
			}
		}
	}
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
