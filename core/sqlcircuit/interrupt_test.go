package sqlcircuit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/core/circuit"
)

// endsAfter is a context that has ended once it was asked often enough.
type endsAfter struct {
	context.Context
	left atomic.Int64
}

func (e *endsAfter) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestAStepEndsWithItsContextInTheMiddleOfABatch(t *testing.T) {
	path := temp(t, "in.ndjson")
	write(t, path, strings.Repeat("{}\n", 1000))
	cfg := linesConfig(path, NDJSON, false)
	cfg.Inputs[0].MaxBatch = 1_000_000
	r := open(t, t.TempDir(), cfg)
	for r.Facts().Buffered < 1000 {
		<-r.woken
	}
	ctx := &endsAfter{Context: t.Context()}
	ctx.left.Store(500)
	if _, err := r.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the step answered %v", err)
	}
	if step := r.Facts().Step; step != 0 || r.handled() != 0 {
		t.Errorf("at step %d, %d records handled", step, r.handled())
	}
	wantRows(t, r.Circuit, "SELECT count(*) FROM lines", "0")
	r.runFor(t, 1000)
	wantRows(t, r.Circuit, "SELECT count(*), count(DISTINCT position) FROM lines", "1000|1000")
}

// endsOnceAsked is a context that ends just after it was asked for the first time, which is before the first record.
type endsOnceAsked struct {
	context.Context
	cancel context.CancelFunc
	asked  atomic.Bool
}

func (e *endsOnceAsked) Err() error {
	if !e.asked.Swap(true) {
		go e.cancel()
		return nil
	}
	return e.Context.Err()
}

// The statement would run for many seconds, and no look at the context comes before its end.
func TestAStatementThatRunsLongEndsWithTheContextOfItsStep(t *testing.T) {
	const slow = `INSERT INTO sums (n) SELECT count(*) FROM (
		WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT json_extract(:record, '$.n'))`
	r := open(t, t.TempDir(), Config{
		Schema: "CREATE TABLE sums (n INTEGER)",
		Inputs: []Input{{Name: "in", HTTP: &HTTPInput{Format: NDJSON}, Apply: []string{slow}}},
	})
	ingest := func(n int) chan error {
		answer := make(chan error, 1)
		go func() {
			_, err := r.Ingest(t.Context(), "in", circuit.Batch{Body: strings.NewReader(fmt.Sprintf(`{"n":%d}`, n))})
			answer <- err
		}()
		for r.Facts().Buffered == 0 {
			<-r.woken
		}
		return answer
	}
	answer := ingest(30_000_000)
	inner, cancel := context.WithCancel(t.Context())
	ctx := &endsOnceAsked{Context: inner, cancel: cancel}
	if _, err := r.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the step answered %v", err)
	}
	if err := <-answer; !errors.Is(err, ErrNotRunning) {
		t.Errorf("the batch was answered %v", err)
	}
	wantRows(t, r.Circuit, "SELECT (SELECT count(*) FROM sums), (SELECT count(*) FROM cairn_errors)", "0|0")
	answer = ingest(3)
	if _, err := r.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Error(err)
	}
	wantRows(t, r.Circuit, "SELECT n FROM sums", "3")
}
