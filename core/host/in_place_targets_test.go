package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// twoTargets is a pipeline that has pushed two states to t and to u; no host runs it.
func twoTargets(t *testing.T) (w *world, c conf, second string, commits []client.CheckpointView) {
	t.Helper()
	w = newWorld(t)
	second = w.path("second")
	must(t, os.Mkdir(second, 0o755))
	c = conf{
		more: fmt.Sprintf("target \"u\" {\n  plugin = \"file\"\n  config {\n    path = %q\n  }\n}\n", second),
		sync: "    sync \"t\" {}\n    sync \"u\" {}\n",
	}
	h := w.start(c).up()
	for i := range 2 {
		h.insert(i*5, i*5+5)
		h.checkpoint()
		h.push()
	}
	var err error
	commits, err = h.RemoteCheckpoints(t.Context(), "p", "t")
	must(t, err)
	h.stop()
	return w, c, second, commits
}

// CASES A45: what is held afterwards is told of all targets, whichever the checkpoint comes from.
func TestARestoreInPlaceFromOneTargetTellsOfTheOthersThatAreHeld(t *testing.T) {
	w, c, second, commits := twoTargets(t)
	back := InPlaceRequest{Target: "t", From: Selection{Number: commits[0].Number}, ReplaceNewer: true}
	held := func(r RestoredInPlace, err error) (names []string) {
		must(t, err)
		for _, one := range r.Held {
			names = append(names, fmt.Sprintf("%s at step %d", one.Target, one.Step))
		}
		return names
	}
	want := fmt.Sprint([]string{fmt.Sprintf("t at step %d", commits[1].Step), fmt.Sprintf("u at step %d", commits[1].Step)})
	equal(t, "foretold", fmt.Sprint(held(w.offline(c, nil).PreviewInPlace(t.Context(), back))), want)
	equal(t, "told", fmt.Sprint(held(w.offline(c, nil).RestoreInPlace(t.Context(), back))), want)

	must(t, os.WriteFile(filepath.Join(second, "p", "FORMAT.json"), []byte("{"), 0o600))
	done := w.inPlace(c, back)
	if len(done.Unread) != 1 || done.Unread[0].Target != "u" || done.Unread[0].Error == "" {
		t.Errorf("of a target that cannot be read it tells %+v", done.Unread)
	}
}

func TestARestoreInPlaceNamesTheTargetsThatThereAre(t *testing.T) {
	w, c, _, commits := twoTargets(t)
	_, err := w.offline(c, nil).RestoreInPlace(t.Context(), InPlaceRequest{Target: "v"})
	if !errors.Is(err, ErrUnknown) {
		t.Errorf("error %v", err)
	}
	contains(t, err.Error(), `restore pipeline "p" in place: target "v" of pipeline "p": no such name in the configuration: name one that it syncs to (t, u)`)
	w.failsInPlace(c, InPlaceRequest{From: Selection{Number: commits[0].Number}}, "each of the 2 targets has numbers of its own: name one with --target (t, u)")
}
