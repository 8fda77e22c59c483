package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/sdk/client"
)

// program is what every command shares.
type program struct {
	stdout, stderr io.Writer

	hook func(point string) // named points of durable changes; tests crash there

	look time.Duration // how often a call that waits looks at the status; 0 = lookEvery

	asJSON  bool
	address string
	config  string
	dataDir string
}

func rootCommand(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:           "cairn",
		Short:         "Run stateful pipelines, checkpoint them, and keep the newest checkpoint safe elsewhere",
		SilenceErrors: true, SilenceUsage: true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { return p.consistent() },
	}
	root.Version = version
	root.SetVersionTemplate("cairn {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; %q lists the flags", err, c.CommandPath()+" --help")}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	flags := root.PersistentFlags()
	flags.BoolVar(&p.asJSON, "json", false, "print JSON instead of words")
	flags.StringVar(&p.address, "address", "", "host to speak to: http://HOST:PORT (default $CAIRN_ADDRESS, else http://127.0.0.1:7070)")
	root.AddCommand(
		p.runCommand(), p.configCommand(), p.statusCommand(), p.checkpointCommand(), p.remoteCommand(),
		p.pipelineCommand(), p.pluginCommand(), p.queryCommand(), p.versionCommand(),
	)
	strict(root)
	return root
}

// consistent refuses flags that would be passed over.
func (p *program) consistent() error {
	if p.dataDir != "" && p.config == "" {
		return usageError{errors.New("--data-dir takes the place of what a configuration says: name its file too, --config FILE")}
	}
	return nil
}

// strict makes wrong arguments and unknown subcommands usage errors, each with a hint.
func strict(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{fmt.Errorf("%w; usage: %s", err, c.UseLine())}
			}
			return nil
		}
	} else {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%q is not a command of %q%s; see %q", args[0], c.CommandPath(), didYouMean(c, args[0]), c.CommandPath()+" --help")}
			}
			return nil
		}
	}
	for _, inner := range cmd.Commands() {
		strict(inner)
	}
}

func didYouMean(cmd *cobra.Command, typed string) string {
	cmd.SuggestionsMinimumDistance = 2
	if close := cmd.SuggestionsFor(typed); len(close) > 0 {
		return fmt.Sprintf(" (did you mean %q?)", close[0])
	}
	return ""
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return p.show(map[string]string{"version": version}, func(w io.Writer) { fmt.Fprintf(w, "cairn %s\n", version) })
		},
	}
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// show prints a value as JSON, or in words. What could not be printed has not been told.
func (p *program) show(value any, words func(io.Writer)) error {
	if !p.asJSON {
		out := &firstError{to: p.stdout}
		words(out)
		if out.err != nil {
			return fmt.Errorf("print: %w", out.err)
		}
		return nil
	}
	encoder := json.NewEncoder(p.stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// firstError is a writer whose user need not look at each write. It takes nothing after the first that failed.
type firstError struct {
	to  io.Writer
	err error
}

// Write writes, unless a write has failed before.
func (w *firstError) Write(text []byte) (n int, err error) {
	if w.err == nil {
		n, w.err = w.to.Write(text)
	}
	return n, w.err
}

// client speaks to the host that the flags name.
func (p *program) client() *client.Client { return p.clientFor(answerTimeout) }

// clientFor bears a host that is silent for so long; 0 = for ever, until the caller's context ends.
func (p *program) clientFor(silence time.Duration) *client.Client {
	address := p.address
	if address == "" {
		address = os.Getenv("CAIRN_ADDRESS")
	}
	if address == "" {
		address = config.DefaultListen
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ResponseHeaderTimeout: silence, DisableKeepAlives: true,
	}
	return client.New(address, &http.Client{Transport: reporting{transport}})
}

// answerTimeout is how long a host may be silent that has nothing to wait for; see attend for the calls that wait for a target.
const answerTimeout = time.Minute

// reporting says of a host that does not answer what a person can do.
type reporting struct{ next http.RoundTripper }

func (r reporting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	var silent net.Error
	switch {
	case err == nil || req.Context().Err() != nil:
		return resp, err
	case errors.As(err, &silent) && silent.Timeout():
		return nil, unreachableError{fmt.Errorf("the host at %s does not answer: %w; its process may be stopped, or its machine or disk stalled", req.URL.Host, err)}
	}
	return nil, unreachableError{fmt.Errorf("no host answers at %s: %w; start one with `cairn run --config FILE`, or name another with --address", req.URL.Host, err)}
}
