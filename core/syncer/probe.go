package syncer

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// abandonedAfter is when another owner's probe, by the store's own clock, cannot be under way any more: it makes about ten calls, each
// repeated for RetryBudget at most.
const abandonedAfter = 24 * time.Hour

// ProbeConfig names one prefix on a store, and how to reach it.
type ProbeConfig struct {
	Target string // its name in the configuration, for errors
	Prefix string // of the repository, see repository.CheckPrefix
	Store  Store

	// Owner keeps what it leaves behind apart from what others do: a storage path's repository.Writer.ID, of which no two probes run at a
	// time. What a crash left of this owner goes with the next probe. Nil = nobody's: what is left goes after a day.
	Owner uuid.UUID

	Slots       *Limiter         // shared by all users of one target; nil = one of its own with DefaultConcurrency
	RetryBudget time.Duration    // how long one call is repeated; 0 = RetryBudget
	Now         func() time.Time // required
	Jitter      func() float64   // in [0, 1), for the backoff; nil = math/rand
}

// Probe tries what the store allows below the prefix, and really does it: it proves that a new key is absent, creates an object, creates it once
// more, reads it and a range of it back, finds it in a listing, deletes it and proves that it is gone. That takes about ten calls,
// of a hundred bytes at most, and harms nobody: the keys are of this probe alone and no part of a repository. An error is about the configuration;
// what the store answers is in the report.
func Probe(ctx context.Context, cfg ProbeConfig) (ProbeReport, error) {
	if err := repository.CheckPrefix(cfg.Prefix); err != nil {
		return ProbeReport{}, fmt.Errorf("target %q: %w", cfg.Target, err)
	}
	if cfg.Owner == uuid.Nil {
		cfg.Owner = uuid.New()
	}
	t := tuning{slots: cfg.Slots, budget: cfg.RetryBudget, jitter: cfg.Jitter}.withDefaults()
	calls := t.caller(cfg.Target, cfg.Now, newTally(cfg.Now, JobRecord{}))
	return newProber(remote{calls: calls, store: cfg.Store, prefix: cfg.Prefix}, cfg.Owner).run(ctx), nil
}

// prober is one probe: its calls are made one after the other, with a job's retries. The first that has no answer ends it, for the others would
// spend as long on finding out the same.
type prober struct {
	remote

	report ProbeReport
	owner  string
	keys   [2]string // of the objects it creates, ascending
	plain  bool      // they are created without IfAbsent, because that is refused
	stored []string  // keys that were created
	gone   error     // the call that had no answer

	absent       bool // an absent object was answered with NotFound
	refusedAgain bool // the second create of one key was answered with Exists
	began, ended time.Time
	leftovers    []string // objects of probes that are over
}

func newProber(r remote, owner uuid.UUID) *prober {
	nonce := uuid.NewString()
	p := &prober{remote: r, owner: owner.String()}
	for i := range p.keys {
		p.keys[i] = repository.ProbeKey(r.prefix, p.owner, fmt.Sprintf("%s-%d", nonce, i+1))
	}
	return p
}

// run is the whole probe.
func (p *prober) run(ctx context.Context) ProbeReport {
	return p.take(ctx, p.proveAbsent, p.create, p.createAgain, p.readBack, p.list, p.remove)
}

// look is the part of it that writes nothing.
func (p *prober) look(ctx context.Context) ProbeReport {
	return p.take(ctx, p.proveAbsent, p.list)
}

func (p *prober) take(ctx context.Context, steps ...func(context.Context)) ProbeReport {
	for _, step := range steps {
		if p.gone == nil {
			step(ctx)
		}
	}
	if p.absent && len(p.stored) == 0 {
		p.report.Read.good() // all that can be known of it
	}
	r := &p.report
	for _, right := range []*Right{&r.Read, &r.Write, &r.List, &r.Delete, &r.Conditional} {
		right.untried(p.gone)
	}
	r.At = p.calls.now().UTC()
	return *r
}

// ask makes one call and books its time on a right. An answer that says nothing about the right ends the probe.
func (p *prober) ask(ctx context.Context, right *Right, what string, size int64, call func(context.Context) error) error {
	began, attempt := p.calls.now(), 0
	err := p.calls.do(ctx, what, size, func(ctx context.Context) error {
		attempt++
		err := call(ctx)
		if err != nil && attempt >= corruptAttempts && sdk.CodeOf(err) == sdk.Internal {
			err = believedError{err}
		}
		return err
	})
	right.Took += p.calls.now().Sub(began)
	if err != nil && stateOf(err) == RightUnknown {
		right.bad(err)
		p.gone = err
	}
	return err
}

// believedError is an answer that nobody could classify, for the third time: it will not become another by being asked for a quarter of an hour,
// and whoever waits shall hear of the plugin's defect.
type believedError struct{ error }

func (believedError) Permanent() bool { return true }

func (e believedError) Unwrap() error { return e.error }
