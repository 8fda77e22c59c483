package syncer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// upkeep is retention and sweep of one life, beside its pushes and one at a time.
type upkeep struct {
	busy    atomic.Bool
	running sync.WaitGroup
}

// maintainBeside starts a maintenance unless one is under way.
func (l *life) maintainBeside() {
	if l.w.policy == nil || !l.upkeep.busy.CompareAndSwap(false, true) {
		return
	}
	l.upkeep.running.Go(func() {
		defer l.upkeep.busy.Store(false)
		l.retain(as(l.ctx, l.h.actor()+" sweeps"))
	})
}

// retain is retention as DESIGN section 7 has it, keeping the newest checkpoint only. A call that fails ends it.
func (l *life) retain(ctx context.Context) {
	t, e := l.gate(), l.worker.Status().Epoch
	gc, err := highestGC(ctx, t)
	if err != nil || gc.Epoch > e || e == 0 {
		return
	}
	numbers, err := numbersOf(ctx, t, repository.CommitPrefix(modelPrefix), repository.ParseCommitKey)
	if err != nil {
		return
	}
	top := uint64(0)
	for i := len(numbers) - 1; i >= 0 && top == 0; i-- {
		data, err := readObject(ctx, t, repository.CommitKey(modelPrefix, numbers[i]), repository.MaxCommit)
		if err != nil {
			return
		}
		if c, err := l.w.checker.codec.decode(numbers[i], data); err == nil && c.Kind == repository.KindCheckpoint && gc.Visible(numbers[i]) {
			top = numbers[i]
		}
	}
	if top <= 1 || top-1 <= gc.UpTo {
		return
	}
	next := repository.GC{
		Number: gc.Number + 1, Epoch: e, Writer: l.worker.cfg.Writer, UpTo: top - 1, Created: l.h.now(), WrittenBy: "model",
	}
	body, err := repository.EncodeGC(next)
	if err != nil {
		l.w.checker.violation("encode gc: %v", err)
		return
	}
	if _, err := t.Put(ctx, sdk.PutRequest{Key: repository.GCKey(modelPrefix, next.Number), Body: sdk.BytesBody(body), IfAbsent: true}); err != nil {
		return
	}
	if _, err := readObject(ctx, t, repository.EpochKey(modelPrefix, e+1), repository.MaxSmall); !isNotFound(err) {
		return
	}
	for _, n := range numbers {
		if n < top && t.Delete(ctx, []string{repository.CommitKey(modelPrefix, n)}) != nil {
			return
		}
	}
}

type keepPolicy struct {
	MinCount  int
	MinAge    time.Duration
	MaxDelete int
}
