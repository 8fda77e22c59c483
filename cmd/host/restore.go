package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/cairnsync/cairn/core/host"
)

// restoreFlags say what to restore and where to.
type restoreFlags struct {
	target, checkpoint, asOf, to string
	number                       uint64
	deltaFrom                    []string
	preview                      bool
	inPlace, replaceNewer        bool
}

func (p *program) restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use: "restore PIPELINE --config FILE --to DIR|--in-place", Args: cobra.ExactArgs(1),
		Short: "Put the files of a checkpoint on a target into a folder, or into the pipeline; needs no running host",
		Long: `Read a checkpoint from a target, check every byte, and put its files into a new or empty folder: the newest, or the one that
--checkpoint, --number or --as-of names. What a folder named by --delta-from has of it is copied from there and checked, and only the rest is
read from the target. --preview tells what would be done, and writes nothing.

With --in-place the checkpoint goes into the storage path of the pipeline, which must not run, and the next start begins from it. What is there is
moved to a folder beside it and kept; where that holds more than the checkpoint, nothing is done without --replace-newer. Nothing is written to a
target: one that holds newer commits is held from the next push on, until "cairn pipeline adopt".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.inPlace {
				return p.restoreInPlace(cmd, args[0], f)
			}
			return p.restore(cmd, args[0], f)
		},
	}
	p.configFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "folder to restore into; must be new or empty")
	flags.StringVar(&f.target, "target", "", "target to read (default: the one that holds the newest)")
	flags.StringVar(&f.checkpoint, "checkpoint", "", "uuid of the checkpoint")
	flags.Uint64Var(&f.number, "number", 0, "commit number on the target")
	flags.StringVar(&f.asOf, "as-of", "", "newest checkpoint at or before this moment (RFC 3339)")
	flags.StringArrayVar(&f.deltaFrom, "delta-from", nil, "folder with content to copy instead of fetching it; may be given several times")
	flags.BoolVar(&f.preview, "preview", false, "tell what would be restored, fetched and kept, and write nothing")
	flags.BoolVar(&f.inPlace, "in-place", false, "restore into the pipeline's storage path: its next start begins from the checkpoint")
	flags.BoolVar(&f.replaceNewer, "replace-newer", false, "with --in-place: also where what is there holds more than the checkpoint")
	return cmd
}

// selection is what the flags name. given tells which of them stand on the command line: one whose value is empty, as from an unset variable of a
// shell, must not be taken for the newest checkpoint.
func (f restoreFlags) selection(given func(flag string) bool) (s host.Selection, err error) {
	flags := slices.DeleteFunc([]string{"checkpoint", "number", "as-of"}, func(flag string) bool { return !given(flag) })
	switch {
	case f.to == "" && !f.preview && !f.inPlace:
		return s, usageError{errors.New("name the folder to restore into: --to DIR; or restore into the pipeline itself: --in-place")}
	case f.inPlace && (given("to") || given("delta-from")):
		return s, usageError{errors.New("--in-place goes without --to, and without --delta-from: it takes what the local checkpoints have of itself")}
	case f.replaceNewer && !f.inPlace:
		return s, usageError{errors.New("--replace-newer goes with --in-place: a folder that holds anything is never replaced")}
	case len(flags) > 1:
		return s, usageError{fmt.Errorf("--%s: each of them names a checkpoint; give one", strings.Join(flags, " and --"))}
	case given("checkpoint"):
		s.Checkpoint, err = parseID(f.checkpoint)
	case given("number") && f.number == 0:
		err = usageError{errors.New("--number 0: commits are numbered from 1")}
	case given("as-of"):
		if s.AsOf, err = time.Parse(time.RFC3339, f.asOf); err != nil {
			err = usageError{fmt.Errorf("--as-of %q: write a moment as 2026-01-31T13:00:00Z", f.asOf)}
		}
	}
	s.Number = f.number
	return s, err
}

// restorer reads what the flags choose, and opens the pipeline without a host.
func (p *program) restorer(cmd *cobra.Command, pipeline string, f restoreFlags, scope host.Scope) (*host.Offline, host.Selection, error) {
	from, err := f.selection(cmd.Flags().Changed)
	if err == nil && p.config == "" {
		err = usageError{errors.New("name the configuration file: --config FILE")}
	}
	if err != nil {
		return nil, from, err
	}
	o, err := p.offline(cmd.Context(), pipeline, scope)
	return o, from, err
}

func (p *program) restore(cmd *cobra.Command, pipeline string, f restoreFlags) error {
	o, from, err := p.restorer(cmd, pipeline, f, host.WithTargets)
	if err != nil {
		return err
	}
	act := o.Restore
	if f.preview {
		act = o.PreviewRestore
	}
	bar := p.progress("restoring")
	restored, err := act(cmd.Context(), host.RestoreRequest{
		Target: f.target, From: from, To: f.to, DeltaFrom: f.deltaFrom, Progress: bar.report,
	})
	bar.end()
	if err != nil {
		return restoreError(err)
	}
	to := f.to
	if to == "" {
		to = "a new folder"
	}
	return p.show(restored, func(w io.Writer) { tellRestored(w, restored, to, from.AsOf) })
}

func restoreError(err error) error {
	if errors.Is(err, host.ErrNoCommit) {
		return notFoundError{err}
	}
	return offlineError(err)
}

func tellRestored(w io.Writer, r host.Restored, to string, asOf time.Time) {
	did, fetched, kept := "restored", "fetched", "were found here and kept"
	if r.Preview {
		did, fetched, kept = "would restore", "would fetch", "are found here and would be kept"
	}
	fmt.Fprintf(w, "%s checkpoint %s of step %d from %s into %s: commit %d, %s, %s\n",
		did, r.UUID, r.Step, strings.Join(r.Where, ", "), to, r.Number, plural(r.Files, "file"), size(r.Size))
	fmt.Fprintf(w, "it was taken at %s", r.Created.Format(time.RFC3339Nano))
	if !asOf.IsZero() {
		fmt.Fprintf(w, ", %s before the moment asked for", asOf.Sub(r.Created))
	}
	fmt.Fprintf(w, "\n%s %s in %s, from %s; %s %s\n", fetched, size(r.FetchedBytes), plural(r.Requests, "request"), plural(r.Packs, "pack"), size(r.KeptBytes), kept)
}

// progress shows how far long work is: a bar on a terminal, a line at every tenth elsewhere, nothing with --json.
func (p *program) progress(what string) *progress {
	b := &progress{what: what}
	if p.asJSON {
		return b
	}
	b.out = p.stderr
	if file, ok := p.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		b.bars = mpb.New(mpb.WithOutput(file))
	}
	return b
}

type progress struct {
	what string
	out  io.Writer // nil = silent
	bars *mpb.Progress

	mu    sync.Mutex
	bar   *mpb.Bar
	total int64 // of what is shown
	told  int64 // tenths that were told
}

// report may be called from any goroutine.
func (b *progress) report(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if total != b.total { // the next of several targets
		b.finish()
		b.total, b.told = total, 0
	}
	switch {
	case b.out == nil || total == 0:
	case b.bars == nil:
		if tenths := done * 10 / total; tenths > b.told {
			b.told = tenths
			fmt.Fprintf(b.out, "%s: %d%% of %s\n", b.what, tenths*10, size(total))
		}
	default:
		if b.bar == nil {
			b.bar = b.bars.AddBar(total, mpb.PrependDecorators(decor.Name(b.what)), mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
		}
		b.bar.SetCurrent(done)
	}
}

func (b *progress) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finish()
	if b.bars != nil {
		b.bars.Wait()
	}
}

// finish leaves the bar as it stands. The caller holds mu.
func (b *progress) finish() {
	if b.bar != nil && !b.bar.Completed() {
		b.bar.Abort(false)
	}
	b.bar = nil
}
