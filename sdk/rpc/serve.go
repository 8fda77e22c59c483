package rpc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/cairnsync/cairn/sdk"
)

const (
	// termDrain is how long a plugin that is told to end (SIGTERM) waits for its calls: long enough for a small object, and the host
	// that sends it waits no longer.
	termDrain = 5 * time.Second

	// orphanDrain is the same after the host is gone: nobody waits for a result, so it is only for tidying up.
	orphanDrain = time.Second
)

// Serve is the whole main of a plugin. It serves p to the host that started this process and returns, or ends the process, when the
// host is done or gone. Started by a person it says what it is and ends with status 1. Logs go to standard error as JSON.
func Serve[C any](p sdk.Plugin[C]) {
	a, err := newApp(p)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !startedByHost() {
		introduce(os.Stderr, a.describe)
		os.Exit(1)
	}
	serve(context.Background(), a) //nolint:forbidigo // Serve is a plugin's main
}

func introduce(w io.Writer, d sdk.Description) {
	fmt.Fprintf(w, "%s %s is a plugin of Cairn: %s\n", d.Name, d.Version, orElse(d.Doc, "a target to push checkpoints to."))
	fmt.Fprintf(w, "It is not run by hand. Name it in a target block of the host's configuration (plugin = %q),\n", d.Name)
	fmt.Fprintf(w, "and see `cairn plugin info` for what it can be configured with.\n")
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func serve(ctx context.Context, a app) {
	// Before go-plugin redirects os.Stderr: what is logged here needs no stream to the host.
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: os.Stderr, JSONFormat: true})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newServer(ctx, a, log, beatEvery)
	// What the plugin listens to is set up before the host can know that it is there.
	signal.Ignore(os.Interrupt, syscall.SIGPIPE)
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	go s.endWithHost(ctx, terms, os.Getppid())
	if handshakeOut != nil {
		os.Stdout = handshakeOut // go-plugin prints its line there, and then puts a pipe of its own in its place
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: Handshake(),
		Plugins:         plugin.PluginSet{Name: &gluePlugin{server: s}},
		Logger:          hclog.New(&hclog.LoggerOptions{Name: "go-plugin", Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, serverOptions()...)...)
		},
	})
	s.drain(ctx, 0)
}

// endWithHost ends the process in good order: on SIGTERM, and when the host is gone. SIGINT is not for a plugin: a terminal sends it to
// the whole group, and the host decides. SIGPIPE is what a log line gets once the host is gone, and must not cut the tidying short.
func (s *server) endWithHost(ctx context.Context, terms <-chan os.Signal, parent int) {
	gone := make(chan string, 1)
	go func() { gone <- lifeline(ctx, parent) }()

	var reason string
	wait := orphanDrain
	select {
	case <-ctx.Done():
		return
	case <-terms:
		reason, wait = "SIGTERM", termDrain
	case reason = <-gone:
	}
	running := s.drain(ctx, wait)
	s.log.Debug("plugin ends", "reason", reason, "calls_given_up", running)
	os.Exit(0)
}
