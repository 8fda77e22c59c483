package sqlcircuit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/circuit"
)

func ingestConfig(format Format) Config {
	return Config{
		Schema: "CREATE TABLE t (k INTEGER PRIMARY KEY, position TEXT)",
		Inputs: []Input{{
			Name: "in", HTTP: &HTTPInput{Format: format, MaxPending: 2}, Apply: []string{"INSERT INTO t VALUES (:record ->> 'k', :position)"},
		}},
	}
}

func body(text string) io.Reader { return strings.NewReader(text) }

// send ingests while the test plays the loop.
func (r *rig) send(t testing.TB, b circuit.Batch) (circuit.IngestResult, error) {
	t.Helper()
	type reply struct {
		result circuit.IngestResult
		err    error
	}
	got := make(chan reply, 1)
	go func() {
		result, err := r.Ingest(context.WithoutCancel(t.Context()), "in", b)
		got <- reply{result, err}
	}()
	r.runUntil(t, func() bool { return len(got) > 0 })
	answer := <-got
	return answer.result, answer.err
}

func TestABatchIsAppliedOnceBySourceAndSeq(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, ingestConfig(NDJSON))
	for _, row := range []struct {
		seq  uint64
		body string
		want circuit.IngestResult
	}{
		{1, `{"k":1}` + "\n" + `{"k":2}`, circuit.IngestResult{Step: 1, Applied: 2}},
		{1, `{"k":1}` + "\n" + `{"k":2}`, circuit.IngestResult{Step: 1, Duplicate: true}},
		{5, `{"k":1}` + "\n" + `{"k":5}` + "\nnonsense", circuit.IngestResult{Step: 2, Applied: 1, Rejected: 2, FirstRefusal: "at client:5:1: UNIQUE constraint failed: t.k"}},
		{4, `{"k":4}`, circuit.IngestResult{Step: 2, Duplicate: true}},
		{6, ``, circuit.IngestResult{Step: 3}},
	} {
		got, err := r.send(t, circuit.Batch{Source: "client", Seq: row.seq, Body: body(row.body)})
		if err != nil || got != row.want {
			t.Fatalf("seq %d: %+v, %v; want %+v", row.seq, got, err, row.want)
		}
	}
	wantRows(t, r.Circuit, "SELECT * FROM t", "1|client:1:1", "2|client:1:2", "5|client:5:2")
	wantRows(t, r.Circuit, "SELECT position, reason FROM cairn_errors ORDER BY rowid",
		"client:5:1|UNIQUE constraint failed: t.k", "client:5:3|it is not JSON: invalid character 'o' in literal null (expecting 'u')")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir, ingestConfig(NDJSON))
	if got, err := again.Position(t.Context(), "in", "client"); got != 6 || err != nil {
		t.Fatalf("position after a restart: %d, %v", got, err)
	}
	if got, err := again.Position(t.Context(), "in", "nobody"); got != 0 || err != nil {
		t.Fatalf("position of an unknown source: %d, %v", got, err)
	}
	if got, err := again.send(t, circuit.Batch{Source: "client", Seq: 6, Body: body("")}); err != nil || !got.Duplicate {
		t.Fatalf("after a restart: %+v, %v", got, err)
	}
}

func TestABatchWithoutASourceCountsEachTime(t *testing.T) {
	cfg := ingestConfig(CSV)
	cfg.Schema = "CREATE TABLE t (k INTEGER, position TEXT)"
	r := open(t, t.TempDir(), cfg)
	for range 2 {
		if got, err := r.send(t, circuit.Batch{Body: body("k\n7\n")}); err != nil || got.Applied != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	wantRows(t, r.Circuit, "SELECT * FROM t", "7|step:1:1", "7|step:2:1")
}

func TestTheSameBatchTwiceInOneStepIsAppliedOnce(t *testing.T) {
	r := open(t, t.TempDir(), ingestConfig(NDJSON))
	in := r.inputs[0]
	first := &batch{source: "s", seq: 1, items: []item{{text: `{"k":1}`, start: 1}}, done: make(chan answer, 1)}
	second := &batch{source: "s", seq: 1, items: first.items, done: make(chan answer, 1)}
	if err := errors.Join(in.queueBatch(first), in.queueBatch(second)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := <-first.done, <-second.done; a.result.Duplicate || !b.result.Duplicate || b.result.Step != 1 {
		t.Fatalf("first %+v, second %+v", a, b)
	}
}

func TestABatchThatCannotBeTakenGetsItsOwnError(t *testing.T) {
	cfg := ingestConfig(NDJSON)
	cfg.Inputs[0].HTTP.MaxBytes = 1000
	cfg.Inputs[0].HTTP.MaxRecords = 3
	r := open(t, t.TempDir(), cfg)
	csvRig := open(t, t.TempDir(), ingestConfig(CSV))
	closed := newCircuit(t, cfg)
	broken := errors.New("the client went away")
	for _, row := range []struct {
		name  string
		c     *Circuit
		input string
		b     circuit.Batch
		want  error
	}{
		{"an unknown input", r.Circuit, "other", circuit.Batch{Body: body("1")}, ErrUnknownInput},
		{"too many bytes", r.Circuit, "in", circuit.Batch{Body: body(strings.Repeat(" ", 1001))}, ErrTooLarge},
		{"too many records", r.Circuit, "in", circuit.Batch{Body: body("1\n2\n3\n4\n")}, ErrTooLarge},
		{"a seq without a source", r.Circuit, "in", circuit.Batch{Seq: 1, Body: body("1")}, ErrBadFormat},
		{"a source without a seq", r.Circuit, "in", circuit.Batch{Source: "s", Body: body("1")}, ErrBadFormat},
		{"a seq that SQLite cannot hold", r.Circuit, "in", circuit.Batch{Source: "s", Seq: 1 << 63, Body: body("1")}, ErrBadFormat},
		{"a body that breaks off", r.Circuit, "in", circuit.Batch{Body: io.MultiReader(body("1\n"), brokenReader{broken})}, broken},
		{"CSV without a header", csvRig.Circuit, "in", circuit.Batch{Body: body("")}, ErrBadFormat},
		{"CSV with a bad header", csvRig.Circuit, "in", circuit.Batch{Body: body("k,k\n1,2\n")}, ErrBadFormat},
		{"a circuit that is not open", closed, "in", circuit.Batch{Body: body("1")}, ErrNotRunning},
	} {
		if _, err := row.c.Ingest(t.Context(), row.input, row.b); !errors.Is(err, row.want) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if got := r.Facts(); got.Buffered != 0 || got.StepAsked || got.Step != 0 {
		t.Errorf("something of them stayed: %+v", got)
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

func TestAFullInputRefusesAndACancelledBatchIsTakenBack(t *testing.T) {
	r := open(t, t.TempDir(), ingestConfig(NDJSON))
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := r.Ingest(ctx, "in", circuit.Batch{Body: body(`{"k":1}`)})
			errs <- err
		}()
	}
	for r.Stats().Inputs[0].Buffered < 2 { // MaxPending is 2
		<-r.woken
	}
	if facts := r.Facts(); !facts.StepAsked {
		t.Errorf("clients wait, but no step is asked: %+v", facts)
	}
	if _, err := r.Ingest(t.Context(), "in", circuit.Batch{Body: body("1")}); !errors.Is(err, ErrFull) {
		t.Errorf("the third batch: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled batch: %v", err)
		}
	}
	if result, err := r.Step(t.Context()); err != nil || result.Step != 0 {
		t.Errorf("a step found something: %+v, %v", result, err)
	}
}

func TestCloseAnswersWaitingBatches(t *testing.T) {
	r := open(t, t.TempDir(), ingestConfig(NDJSON))
	errs := make(chan error, 1)
	go func() {
		_, err := r.Ingest(context.WithoutCancel(t.Context()), "in", circuit.Batch{Body: body("1")})
		errs <- err
	}()
	<-r.woken
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; !errors.Is(err, ErrNotRunning) {
		t.Fatal(err)
	}
}

func TestAFailedStepChangesNothingAndTellsTheClient(t *testing.T) {
	r := open(t, t.TempDir(), ingestConfig(NDJSON))
	b := &batch{source: "s", seq: 1, items: []item{{text: `{"k":1}`, start: 1}}, done: make(chan answer, 1)}
	if err := r.inputs[0].queueBatch(b); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("step: %v", err)
	}
	if a := <-b.done; a.err == nil {
		t.Fatalf("answer: %+v", a)
	}
	wantRows(t, r.Circuit, "SELECT step, (SELECT count(*) FROM t) FROM cairn_circuit", "0|0")
	if got, _ := r.send(t, circuit.Batch{Source: "s", Seq: 1, Body: body(`{"k":1}`)}); got.Applied != 1 {
		t.Fatalf("again: %+v", got)
	}
}

func TestOnErrorStopAppliesNothingOfTheBatch(t *testing.T) {
	cfg := ingestConfig(NDJSON)
	cfg.Inputs[0].OnError = OnErrorStop
	r := open(t, t.TempDir(), cfg)
	for i, text := range []string{`{"k":1}` + "\nnonsense", `{"k":2}`} {
		_, err := r.send(t, circuit.Batch{Source: "s", Seq: uint64(i + 1), Body: body(text)})
		if !errors.Is(err, ErrInputStopped) || !strings.Contains(err.Error(), "record at s:1:2 was refused") {
			t.Fatalf("batch %d: %v", i+1, err)
		}
	}
	wantRows(t, r.Circuit, "SELECT step, (SELECT count(*) FROM t), (SELECT count(*) FROM cairn_sources) FROM cairn_circuit", "0|0|0")
}

func TestBatchesOfOnlyRefusedRecordsStopTheInputAtTheHundredth(t *testing.T) {
	r := open(t, t.TempDir(), ingestConfig(NDJSON))
	for i := range 2 {
		got, err := r.send(t, circuit.Batch{Body: body(strings.Repeat(fmt.Sprintf("nonsense%d\n", i), 49))})
		if err != nil || got.Rejected != 49 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	_, err := r.send(t, circuit.Batch{Body: body("a\nb\n")})
	if !errors.Is(err, ErrInputStopped) || !strings.Contains(err.Error(), "first 100 records were all refused; the first at step:1:1") {
		t.Fatal(err)
	}
	wantRows(t, r.Circuit, "SELECT count(*) FROM cairn_errors", "98")
}

func TestCloseDoesNotWaitForASlowClient(t *testing.T) {
	r := open(t, t.TempDir(), ingestConfig(NDJSON))
	slow, client := io.Pipe()
	errs := make(chan error, 1)
	go func() {
		_, err := r.Ingest(context.WithoutCancel(t.Context()), "in", circuit.Batch{Body: slow})
		errs <- err
	}()
	if _, err := io.WriteString(client, "1\n"); err != nil { // the body is being read
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), client.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; !errors.Is(err, ErrNotRunning) {
		t.Fatal(err)
	}
}

func TestABatchOfOneCSVLineSaysThatItWasTakenForTheHeader(t *testing.T) {
	r := open(t, t.TempDir(), ingestConfig(CSV))
	got, err := r.send(t, circuit.Batch{Body: body("7\n")})
	if err != nil || got.Applied+got.Rejected != 0 || !strings.Contains(got.Note, "one line, which was taken for its header") {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err = r.send(t, circuit.Batch{Body: body("k\n7\n")}); err != nil || got.Applied != 1 || got.Note != "" {
		t.Fatalf("with a header: %+v, %v", got, err)
	}
}

func TestABatchThatIsAnnouncedAsTheOtherFormatIsRefused(t *testing.T) {
	for _, row := range []struct {
		format Format
		told   string
		remedy string // "" = it is taken
	}{
		{NDJSON, "text/csv; charset=utf-8", "the input takes ndjson: send that as Content-Type application/x-ndjson"},
		{NDJSON, "Application/CSV", "the input takes ndjson"},
		{CSV, "application/x-ndjson", "the input takes csv: send that as Content-Type text/csv"},
		{CSV, "application/json", "the input takes csv"},
		{CSV, "text/csv", ""},
		{NDJSON, "application/json", ""},
		{NDJSON, "application/x-ndjson", ""},
		{CSV, "", ""},
		{CSV, "application/x-www-form-urlencoded", ""},
		{CSV, "application/octet-stream", ""},
		{NDJSON, "nonsense; ;", ""},
	} {
		r := open(t, t.TempDir(), ingestConfig(row.format))
		got, err := r.send(t, circuit.Batch{Type: row.told, Body: body(map[Format]string{CSV: "k\n7\n", NDJSON: `{"k":7}`}[row.format])})
		switch {
		case row.remedy == "" && err != nil, row.remedy != "" && (!errors.Is(err, ErrMediaType) || !strings.Contains(err.Error(), row.remedy)):
			t.Errorf("%s to %s: %+v, %v", row.told, row.format, got, err)
		}
	}
}
