package syncer

import (
	"fmt"
	"strings"
)

// Origin is what a host runs from, as an operator names it to a command.
type Origin struct {
	File    string // its configuration, absolute; "" = not known
	DataDir string // what --data-dir gave in place of the configuration's folder, absolute; "" = nothing
	Address string // host:port of its API; "" = the one that commands speak to by themselves, or not known
}

// Commands write the commands that remedies name. They are whole: given literally, from any folder, they work on the host that tells the remedy and
// on no other. What is not known of it keeps its placeholder.
type Commands struct {
	Pipeline, Target string // their names
	Follows          string // the target that the pipeline follows as a standby; "" = it cannot, for none has a pull_interval
	From             Origin
}

// Adopt continues what lies on the target.
func (c Commands) Adopt() string { return c.ask("pipeline adopt", c.pipeline(), c.target()) }

// Standby lets the pipeline follow its target.
func (c Commands) Standby() string { return c.ask("pipeline standby", c.pipeline()) }

// Follow lets the pipeline follow the host that has taken its place, in the order that is not refused: one that is seen to be fenced on the target that it
// follows becomes a standby as it runs, any other is stopped before. "" = it cannot follow.
func (c Commands) Follow(fenced bool) string {
	switch {
	case c.Follows == "":
		return ""
	case fenced && c.Follows == c.Target:
		return c.Standby()
	}
	return c.Stop() + " and, once it has stopped, " + c.Standby()
}

// Activate makes a standby the primary.
func (c Commands) Activate() string { return c.ask("pipeline activate", c.pipeline()) }

// Stop stops the pipeline.
func (c Commands) Stop() string { return c.ask("pipeline stop", c.pipeline()) }

// Start starts it again.
func (c Commands) Start() string { return c.ask("pipeline start", c.pipeline()) }

// RestoreInPlace makes the newest commit of the target what the next start begins from. It is refused where that would lose something, and only
// the refusal, which says what, names the flag that is stronger.
func (c Commands) RestoreInPlace() string { return c.inPlace("--target", c.target()) }

// RestoreCheckpoint makes a checkpoint, on whichever target it lies, what the next start begins from.
func (c Commands) RestoreCheckpoint(id fmt.Stringer) string {
	return c.inPlace("--checkpoint", id.String())
}

func (c Commands) inPlace(flags ...string) string {
	return c.write("checkpoint restore", append(append([]string{c.pipeline(), "--in-place"}, flags...), c.host()...)...)
}

// RestoreNumber puts the files of a commit of the target into a folder, which the operator names; 0 = so is the number.
func (c Commands) RestoreNumber(number uint64) string {
	n := "N"
	if number != 0 {
		n = fmt.Sprint(number)
	}
	return c.write("checkpoint restore", append([]string{c.pipeline(), "--number", n, "--target", c.target(), "--to", "DIR"}, c.host()...)...)
}

// List lists what the targets hold.
func (c Commands) List() string { return c.ask("remote list", c.pipeline()) }

// ListApart lists it without the host, which would refuse to.
func (c Commands) ListApart() string {
	return c.write("remote list", append([]string{c.pipeline()}, c.host()...)...)
}

// Push pushes a checkpoint to all targets.
func (c Commands) Push() string { return c.ask("checkpoint push", c.pipeline()) }

// Verify proves what the targets hold.
func (c Commands) Verify() string { return c.ask("remote verify", c.pipeline()) }

// Repair makes the newest state of the target whole.
func (c Commands) Repair() string {
	return c.ask("remote repair", c.pipeline(), "--target", c.target())
}

// Sweep runs retention on the target.
func (c Commands) Sweep(flags ...string) string {
	return c.ask("remote sweep", append([]string{c.pipeline(), "--target", c.target()}, flags...)...)
}

// Unpin removes a pin from the target.
func (c Commands) Unpin(pin string) string {
	return c.ask("remote unpin", c.pipeline(), quoted(pin), "--target", c.target())
}

// ask is a command that the host answers, which must be this one.
func (c Commands) ask(verb string, args ...string) string {
	if c.From.Address != "" {
		args = append(args, "--address", quoted(c.From.Address))
	}
	return c.write(verb, args...)
}

func (c Commands) write(verb string, args ...string) string {
	return "`cairn " + verb + " " + strings.Join(args, " ") + "`"
}

func (c Commands) pipeline() string { return orPlaceholder(c.Pipeline, "PIPELINE") }

func (c Commands) target() string { return orPlaceholder(c.Target, "TARGET") }

// host are the flags of a command that works without the host, but on its folders.
func (c Commands) host() []string {
	flags := []string{"--config", orPlaceholder(c.From.File, "FILE")}
	if c.From.DataDir != "" {
		flags = append(flags, "--data-dir", quoted(c.From.DataDir))
	}
	return flags
}

func orPlaceholder(word, placeholder string) string {
	if word == "" {
		return placeholder
	}
	return quoted(word)
}

// quoted is a word as a shell takes it literally.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
