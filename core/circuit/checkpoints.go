package circuit

import (
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

// checkpointBook is the part of the book about checkpoints: the newest published one, the one being written, and who asked.
type checkpointBook struct {
	published   trigger.Checkpoint // as the checkpointer named it
	publishedAt time.Time          // on the loop's clock
	endedAt     time.Time          // last attempt, on the loop's clock; zero = none in this run
	last        *CheckpointAttempt
	running     *attempt

	sequence uint64 // of the newest request
	success  uint64 // greatest sequence that was answered well
	failure  *CheckpointFailure
	asks     []*checkpointAsk // unanswered, by rising sequence
}

// attempt is one checkpoint from Snapshot to publication.
type attempt struct {
	step    uint64 // of the snapshot; before that is taken, of the decision
	since   time.Time
	through uint64 // greatest sequence that fails with it
	last    bool   // the final checkpoint of a stop
}

// checkpointAsk is one request. It arrives at any moment, also while the loop looks at the circuit; the first look that begins after it
// gives it the step that it must cover.
type checkpointAsk struct {
	sequence uint64
	noticed  bool // before the look that is under way
	seen     bool // with cover
	cover    uint64
	done     chan error // room for the one answer
}

func covers(c trigger.Checkpoint, step uint64) bool { return c.ID != uuid.Nil && c.Step >= step }

func (c *checkpointBook) ask() *checkpointAsk {
	c.sequence++
	a := &checkpointAsk{sequence: c.sequence, done: make(chan error, 1)}
	c.asks = append(c.asks, a)
	return a
}

// notice marks the requests that are here before a look at the circuit begins.
func (c *checkpointBook) notice() {
	for _, a := range c.asks {
		a.noticed = true
	}
}

// see gives each new request the step it must cover. That step was read after the request came, so it is not below the state that the
// requester knew of.
func (c *checkpointBook) see(step uint64) {
	for _, a := range c.asks {
		if a.noticed && !a.seen {
			a.seen, a.cover = true, step
		}
	}
	c.answerCovered()
}

// wanted is whether a request waits, and the lowest step that one must cover: a request whose step the circuit has not reached, as after a
// circuit that went back, must not hold up the others.
func (c *checkpointBook) wanted() (cover uint64, ok bool) {
	for _, a := range c.asks {
		if a.seen && (!ok || a.cover < cover) {
			cover, ok = a.cover, true
		}
	}
	return cover, ok
}

func (c *checkpointBook) begin(now time.Time, step uint64) *attempt {
	c.running = &attempt{step: step, since: now}
	for _, a := range c.asks {
		if a.seen {
			c.running.through = a.sequence
		}
	}
	return c.running
}

// end enters the outcome of the running attempt. A failed one leaves the published checkpoint alone.
func (c *checkpointBook) end(now time.Time, made trigger.Checkpoint, err error) {
	ended := c.running
	c.running, c.endedAt = nil, now
	c.last = &CheckpointAttempt{Step: ended.step, Started: ended.since, Ended: now, Checkpoint: made.ID, Error: text(err)}
	if err == nil {
		c.published, c.publishedAt = made, now
		c.answerCovered()
		return
	}
	c.fail(now, ended.through, err)
}

func (c *checkpointBook) answerCovered() {
	c.answer(func(a *checkpointAsk) bool { return a.seen && covers(c.published, a.cover) }, func(a *checkpointAsk) {
		c.success = max(c.success, a.sequence)
		a.done <- nil
	})
}

// fail answers the requests up to a sequence with an error.
func (c *checkpointBook) fail(now time.Time, through uint64, err error) {
	c.answer(func(a *checkpointAsk) bool { return a.sequence <= through }, func(a *checkpointAsk) {
		c.failure = &CheckpointFailure{Sequence: a.sequence, Error: err.Error(), FailedAt: now}
		a.done <- err
	})
}

// answer removes the requests that are due and answers them.
func (c *checkpointBook) answer(due func(*checkpointAsk) bool, with func(*checkpointAsk)) {
	var rest []*checkpointAsk
	for _, a := range c.asks {
		if due(a) {
			with(a)
		} else {
			rest = append(rest, a)
		}
	}
	c.asks = rest
}

// text is an error's message, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
