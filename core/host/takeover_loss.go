package host

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// loss says what the local copy lacks of what was committed. What the primary had and never committed is known to nobody but itself.
func (t *takeover) loss() client.Loss {
	newest, in, sure := t.newestKnown()
	lag := syncer.LagOf(t.chosen, newest, in)
	view := lagView(lag)
	nothing := lag.Age == 0 && lag.Steps == 0 && lag.Commits == 0 && !lag.NoSteps
	loss := client.Loss{Steps: view.Steps, Commits: view.Commits, Seconds: &view.Seconds, Certain: sure}
	switch {
	case newest == nil && !sure:
		return client.Loss{Text: "what the targets hold beyond the local copy is not known, for not all of them answered"}
	case nothing && sure:
		loss.Text = "nothing that was committed is missing from the local copy"
	case nothing:
		loss.Text = fmt.Sprintf("nothing that was seen committed is missing from the local copy; what came after %s is not known", t.lookedAt())
	default:
		loss.Text = fmt.Sprintf("the local copy lacks %s; how many records that is cannot be told from here", lacked(lag))
		if !sure {
			loss.Text += fmt.Sprintf(", and what came after %s", t.lookedAt())
		}
	}
	return loss
}

// lacked is a lag in words.
func lacked(lag syncer.Lag) string {
	switch {
	case lag.NoSteps:
		return fmt.Sprintf("%s of work; the newest commit is of another pipeline, which counts its own steps and commits", lag.Age)
	case lag.NoCommits:
		return fmt.Sprintf("%d steps, %s of work; in how many commits cannot be told, for the newest lies in another repository", lag.Steps, lag.Age)
	}
	return fmt.Sprintf("%d steps in %d commits, %s of work", lag.Steps, lag.Commits, lag.Age)
}

func (t *takeover) lookedAt() string {
	if t.seen.Looked.IsZero() {
		return "the last look"
	}
	return t.seen.Looked.UTC().Format(time.RFC3339)
}

// newestKnown is the newest commit that is known of, whether a target that was claimed holds it, or the standby had seen or pulled it before:
// the target of that may not have been asked, or was put back. sure says that no other can exist.
func (t *takeover) newestKnown() (newest *syncer.CommitInfo, in syncer.Place, sure bool) {
	newest, sure = t.newest, len(t.claims) == len(t.p.cfg.Backend.Repositories())
	for _, c := range t.claims {
		sure = sure && c.err == nil && c.claimed.Epoch != 0
	}
	if newest != nil {
		in = t.placeOf(newest)
	}
	count := func(c *syncer.CommitInfo, target, prefix string) {
		origin := t.origin(target, prefix)
		if origin != nil && origin.Number >= c.Number {
			return // the line has gone on from it, or without it by the operator's word
		}
		sure = sure && origin == nil // else it was put back
		if newest == nil || c.Checkpoint.Step > newest.Checkpoint.Step {
			newest, in = c, syncer.Place{Target: target, Prefix: prefix}
		}
	}
	pinned := t.p.pinned() != uuid.Nil
	if had := t.had; had != nil && !had.Seed && !pinned {
		count(&syncer.CommitInfo{Number: had.Number, Checkpoint: repository.Checkpoint{ID: had.Checkpoint, Step: had.Step, Created: had.Created}}, had.Target, had.Prefix)
	}
	if block, ok := t.p.cfg.Backend.Follows(); ok && t.seen.Seen != nil && !t.seen.OfSeed && !pinned {
		count(t.seen.Seen, block.Target, block.Prefix)
	}
	if newest == nil && !sure && t.seen.Seen != nil {
		newest, in = t.seen.Seen, t.seen.In
	}
	return newest, in, sure
}

// placeOf is where the newest commit of the claimed targets lies: the repository of the copy, where that is among those which hold it.
func (t *takeover) placeOf(newest *syncer.CommitInfo) (in syncer.Place) {
	for _, c := range t.claims {
		if c.newest == nil || c.newest.Checkpoint.ID != newest.Checkpoint.ID || c.newest.Number != newest.Number {
			continue
		}
		place := syncer.Place{Target: c.block.Target, Prefix: c.block.Prefix}
		if in == (syncer.Place{}) || t.chosen != nil && t.chosen.Target == place.Target && t.chosen.Prefix == place.Prefix {
			in = place
		}
	}
	return in
}
