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
	newest, sure := t.newestKnown()
	lag := syncer.LagOf(t.chosen, newest)
	seconds := lag.Age.Seconds()
	loss := client.Loss{Steps: &lag.Steps, Commits: &lag.Commits, Seconds: &seconds, Certain: sure}
	switch {
	case newest == nil && !sure:
		return client.Loss{Text: "what the targets hold beyond the local copy is not known, for not all of them answered"}
	case lag == (syncer.Lag{}) && sure:
		loss.Text = "nothing that was committed is missing from the local copy"
	case lag == (syncer.Lag{}):
		loss.Text = fmt.Sprintf("nothing that was seen committed is missing from the local copy; what came after %s is not known", t.lookedAt())
	default:
		loss.Text = fmt.Sprintf("the local copy lacks %d steps in %d commits, %s of work; how many records that is cannot be told from here", lag.Steps, lag.Commits, lag.Age)
		if !sure {
			loss.Text += fmt.Sprintf(", and what came after %s", t.lookedAt())
		}
	}
	return loss
}

func (t *takeover) lookedAt() string {
	if t.seen.Looked.IsZero() {
		return "the last look"
	}
	return t.seen.Looked.UTC().Format(time.RFC3339)
}

// newestKnown is the newest commit that is known of, whether a target that was claimed holds it, or the standby had seen or pulled it before:
// the target of that may not have been asked, or was put back. sure says that no other can exist.
func (t *takeover) newestKnown() (newest *syncer.CommitInfo, sure bool) {
	newest, sure = t.newest, len(t.claims) == len(t.p.cfg.Backend.Repositories())
	for _, c := range t.claims {
		sure = sure && c.err == nil && c.claimed.Epoch != 0
	}
	count := func(c *syncer.CommitInfo, target, prefix string) {
		origin := t.origin(target, prefix)
		if origin != nil && origin.Number >= c.Number {
			return // the line has gone on from it, or without it by the operator's word
		}
		sure = sure && origin == nil // else it was put back
		if newest == nil || c.Checkpoint.Step > newest.Checkpoint.Step {
			newest = c
		}
	}
	pinned := t.p.pinned() != uuid.Nil
	if had := t.had; had != nil && !had.Seed && !pinned {
		count(&syncer.CommitInfo{Number: had.Number, Checkpoint: repository.Checkpoint{ID: had.Checkpoint, Step: had.Step, Created: had.Created}}, had.Target, had.Prefix)
	}
	if block, ok := t.p.cfg.Backend.Follows(); ok && t.seen.Seen != nil && !t.seen.OfSeed && !pinned {
		count(t.seen.Seen, block.Target, block.Prefix)
	}
	if newest == nil && !sure {
		newest = t.seen.Seen
	}
	return newest, sure
}
