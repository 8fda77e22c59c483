package syncer

import (
	"strings"
	"testing"
	"time"
)

// oddHost is a host that was given both flags, in folders that a shell would take apart.
func oddHost() Commands {
	return Commands{Pipeline: "strikes", Target: "offsite", From: Origin{File: "/srv/my host/cairn.hcl", DataDir: "/srv/it's", Address: "127.0.0.1:7071"}}
}

func TestTheRemediesOfAHeldTargetAreWholeCommandsForThisHost(t *testing.T) {
	for name, err := range map[string]error{
		"another history": &HeldError{Target: "offsite", Commit: 3, CommitStep: 30, Step: 20, Fork: 10, Behind: 20, Run: oddHost()},
		"put back":        &HeldError{Target: "offsite", Commit: 3, CommitStep: 30, Step: 20, Forgotten: true, Made: time.Unix(0, 0), Run: oddHost()},
	} {
		for _, want := range []string{
			"`cairn checkpoint restore strikes --in-place --target offsite --config '/srv/my host/cairn.hcl' --data-dir '/srv/it'\\''s'`",
			"`cairn pipeline adopt strikes offsite --address 127.0.0.1:7071`",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\ndoes not say %s", name, err, want)
			}
		}
		if strings.Contains(err.Error(), "--replace-newer") {
			t.Errorf("%s: the flag that replaces more is handed out unasked: %v", name, err)
		}
	}
}

// Where no sync block has a pull_interval a standby is refused, and one that is not seen to be fenced on the target that it follows has to be stopped.
func TestARemedyOffersAStandbyOnlyWhereItIsTakenAndStopsWhatHasToBeStopped(t *testing.T) {
	const standby, stop = "`cairn pipeline standby strikes --address 127.0.0.1:7071`", "`cairn pipeline stop strikes --address 127.0.0.1:7071`"
	const stopped = stop + " and, once it has stopped, " + standby
	follows := func(target string) Commands {
		run := oddHost()
		run.Follows = target
		return run
	}
	for name, row := range map[string]struct {
		err  error
		says string // "" = no standby is offered
	}{
		"fenced on what it follows":   {&FencedError{Run: follows("offsite")}, "stop it with " + stop + ", or let it follow the other with " + standby},
		"fenced, and follows another": {&FencedError{Run: follows("second")}, "or let it follow the other with " + stopped},
		"fenced, and follows nothing": {&FencedError{Run: follows("")}, ""},
		"held, and follows":           {&HeldError{Run: follows("offsite")}, "let this one follow it with " + stopped},
		"held by a copy, and follows": {&HeldError{Forgotten: true, Run: follows("offsite")}, "let this one follow it with " + stopped},
		"held, and follows nothing":   {&HeldError{Run: follows("")}, ""},
	} {
		text := row.err.Error()
		if row.says == "" && strings.Contains(text, "pipeline standby") || !strings.Contains(text, row.says) {
			t.Errorf("%s: %s\nwant %q", name, text, row.says)
		}
	}
}

func TestARemedyLeavesNoNameOpenThatTheHostKnows(t *testing.T) {
	run := oddHost()
	for _, text := range []string{
		run.Adopt(), run.Standby(), run.Activate(), run.Stop(), run.Start(), run.RestoreInPlace(), run.RestoreCheckpoint(time.Second), run.RestoreNumber(7), run.List(), run.ListApart(),
		run.Push(), run.Verify(), run.Repair(), run.Sweep("--dry-run"), run.Unpin("pin"),
		run.remedyRepair(), run.remedyPack(), run.remedyGone(), run.remedyNone(), run.remedyCommit(), run.remedyWhole(), run.remedyHead(),
		(&FencedError{Run: run}).Error(), (&LostError{Run: run}).Error(), (&HeadLostError{Reading: true, Run: run}).Error(),
	} {
		for _, open := range []string{"PIPELINE", "TARGET", "FILE"} {
			if strings.Contains(text, open) {
				t.Errorf("%s is left open: %s", open, text)
			}
		}
	}
}

// Two hosts of one machine run a pipeline of one name, as a primary and its standby do: a command that went to the other would stop or adopt there.
func TestARemedyThatAHostAnswersNamesTheAddressOfThatHost(t *testing.T) {
	run := oddHost()
	for _, text := range []string{
		run.Adopt(), run.Standby(), run.Activate(), run.Stop(), run.Start(), run.List(), run.Push(), run.Verify(), run.Repair(), run.Sweep("--dry-run"), run.Unpin("pin"),
	} {
		if !strings.HasSuffix(text, " --address 127.0.0.1:7071`") {
			t.Errorf("%s names no address", text)
		}
	}
	for _, text := range []string{run.RestoreInPlace(), run.RestoreNumber(7), run.ListApart()} {
		if strings.Contains(text, "--address") {
			t.Errorf("%s needs no host", text)
		}
	}
}

// A host that is embedded may come from no file.
func TestARemedyKeepsThePlaceholderOfWhatIsNotKnown(t *testing.T) {
	if got := (Commands{Pipeline: "strikes"}).RestoreInPlace(); got != "`cairn checkpoint restore strikes --in-place --target TARGET --config FILE`" {
		t.Error(got)
	}
}
