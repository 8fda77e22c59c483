package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/host"
)

func (p *program) restoreInPlace(cmd *cobra.Command, pipeline string, f restoreFlags) error {
	o, from, err := p.restorer(cmd, pipeline, f, host.WithCircuit)
	if err != nil {
		return err
	}
	act := o.RestoreInPlace
	if f.preview {
		act = o.PreviewInPlace
	}
	bar := p.progress("restoring")
	done, err := act(cmd.Context(), host.InPlaceRequest{
		Target: f.target, From: from, ReplaceNewer: f.replaceNewer, Progress: bar.report,
	})
	bar.end()
	if err != nil {
		return restoreError(err)
	}
	return p.show(done, func(w io.Writer) {
		tellRestored(w, done.Restored, done.Path, from.AsOf)
		tellInPlace(w, pipeline, done, f.replaceNewer)
	})
}

// tellInPlace says what became of what was there, and what comes next.
func tellInPlace(w io.Writer, pipeline string, r host.RestoredInPlace, replaceNewer bool) {
	for _, ahead := range r.Ahead {
		fmt.Fprintf(w, "left behind: %s\n", ahead)
	}
	switch {
	case r.Preview && len(r.Ahead) > 0 && !replaceNewer:
		fmt.Fprintln(w, "it would be refused without --replace-newer")
	case r.Preview:
		fmt.Fprintln(w, "what is there would be kept in a folder beside it")
	case r.SetAside != "":
		fmt.Fprintf(w, "what was there is kept in %s: delete that when it is not wanted any more\n", r.SetAside)
	}
	tellHeld(w, pipeline, r)
	switch {
	case r.Preview:
	case r.Desired == "stopped":
		fmt.Fprintf(w, "the pipeline was left stopped: start a host, then `cairn pipeline start %s` begins from this checkpoint\n", pipeline)
	default:
		fmt.Fprintf(w, "the next `cairn run` begins from this checkpoint, and %s will be %s\n", pipeline, r.Desired)
	}
	if !r.Preview {
		fmt.Fprintln(w, "its first push fences whatever host runs the pipeline elsewhere")
	}
}

// tellHeld says at which targets pushes will wait, whichever the checkpoint is from, and what can be done about it.
func tellHeld(w io.Writer, pipeline string, r host.RestoredInPlace) {
	is := "is"
	if r.Preview {
		is = "would be"
	}
	for _, t := range r.Held {
		fmt.Fprintf(w, "target %s holds commit %d (step %d), which is not in this state: it %s held from the next push on; to overrule that commit, `cairn pipeline adopt %s %s`; "+
			"to go on from it instead, restore it in place with --target %[1]s --number %[2]d\n", t.Target, t.Number, t.Step, is, pipeline, t.Target)
	}
	for _, t := range r.Unread {
		fmt.Fprintf(w, "target %s may hold what is not in this state, for it could not be read: %s; if it does, it %s held from the next push on, and `cairn status` says what can be done\n",
			t.Target, t.Error, is)
	}
}
