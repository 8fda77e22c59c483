package sqlcircuit

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/circuit"
)

func line(row []circuit.Column) string {
	values := []string{}
	for _, column := range row {
		values = append(values, fmt.Sprint(column.Value))
	}
	return strings.Join(values, "|")
}

func TestAFileOfCSVBecomesAggregates(t *testing.T) {
	path := temp(t, "strikes.csv")
	write(t, path, "Origin State,Cost Total $,\"Note, free\"\n"+
		"Texas,\"1,000\",\"two\nlines\"\nTexas,5,plain\nUtah,7,\"a \"\"quote\"\"\"\n")
	r := open(t, t.TempDir(), Config{
		Schema: "CREATE TABLE by_state (state TEXT PRIMARY KEY, n INTEGER, cost INTEGER, note TEXT) WITHOUT ROWID",
		Inputs: []Input{{
			Name: "strikes", File: &FileInput{Path: path, Format: CSV},
			Apply: []string{`INSERT INTO by_state VALUES (:record ->> 'Origin State', 1, replace(:record ->> '$."Cost Total $"', ',', ''),
				:record ->> 'Note, free')
				ON CONFLICT DO UPDATE SET n = n + 1, cost = cost + excluded.cost, note = excluded.note`},
		}},
	})
	r.runFor(t, 3)
	wantRows(t, r.Circuit, "SELECT * FROM by_state ORDER BY state", "Texas|2|1005|plain", `Utah|1|7|a "quote"`)
}

func TestEachRecordCountsOnceAcrossRestarts(t *testing.T) {
	path, dir := temp(t, "in.ndjson"), t.TempDir()
	write(t, path, "{\"n\":1}\n{\"n\":2}\n")
	first := open(t, dir, linesConfig(path, NDJSON, false))
	first.runFor(t, 2)
	step := first.Facts().Step
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, "{\"n\":3}\n")
	second := open(t, dir, linesConfig(path, NDJSON, false))
	if got := second.Facts().Step; got != step {
		t.Fatalf("step %d after the restart, want %d", got, step)
	}
	second.runFor(t, 3)
	wantRows(t, second.Circuit, "SELECT record FROM lines ORDER BY id", `{"n":1}`, `{"n":2}`, `{"n":3}`)
}

func TestAStepWithoutInputChangesNothing(t *testing.T) {
	r := open(t, t.TempDir(), linesConfig(temp(t, "none"), NDJSON, false))
	result, err := r.Step(t.Context())
	if err != nil || result != (circuit.StepResult{}) {
		t.Fatalf("step: %+v, %v", result, err)
	}
}

func TestAStepTakesAtMostMaxBatchRecords(t *testing.T) {
	path := temp(t, "in.ndjson")
	write(t, path, strings.Repeat("1\n", 25))
	cfg := linesConfig(path, NDJSON, false)
	cfg.Inputs[0].MaxBatch = 10
	r := open(t, t.TempDir(), cfg)
	r.runUntil(t, func() bool { return r.Facts().Buffered > 0 })
	for r.handled() < 25 {
		result, err := r.Step(t.Context())
		if err != nil || result.Applied > 10 {
			t.Fatalf("step: %+v, %v", result, err)
		}
	}
}

func TestARefusedRecordLeavesNothingButARowOfCairnErrors(t *testing.T) {
	path := temp(t, "in.ndjson")
	write(t, path, "{\"k\":1}\n{\"k\":1}\nnot json\n{\"k\":2}\n")
	r := open(t, t.TempDir(), Config{
		Schema: "CREATE TABLE first (k INTEGER); CREATE TABLE once (k INTEGER PRIMARY KEY)",
		Inputs: []Input{{
			Name: "in", File: &FileInput{Path: path, Format: NDJSON},
			Apply: []string{"INSERT INTO first VALUES (:record ->> 'k')", "INSERT INTO once VALUES (:record ->> 'k')"},
		}},
	})
	r.runFor(t, 4)
	wantRows(t, r.Circuit, "SELECT k FROM first ORDER BY k", "1", "2")
	wantRows(t, r.Circuit, "SELECT input, position, reason FROM cairn_errors ORDER BY rowid",
		"in|"+path+" at byte 8|UNIQUE constraint failed: once.k",
		"in|"+path+" at byte 16|it is not JSON: invalid character 'o' in literal null (expecting 'u')")
	in := r.Stats().Inputs[0]
	if in.Applied != 2 || in.Refused != 2 {
		t.Fatalf("stats: %+v", in)
	}
}

func TestAStatementThatRollsTheTransactionBackRefusesItsRecordOnly(t *testing.T) {
	path := temp(t, "in.ndjson")
	write(t, path, "{\"k\":1}\n{\"k\":13}\n{\"k\":2}\n{\"k\":13}\n{\"k\":3}\n")
	r := open(t, t.TempDir(), Config{
		Schema: `CREATE TABLE t (k INTEGER);
			CREATE TRIGGER unlucky BEFORE INSERT ON t WHEN new.k = 13 BEGIN SELECT RAISE(ROLLBACK, 'no thirteen'); END`,
		Inputs: []Input{{
			Name: "in", File: &FileInput{Path: path, Format: NDJSON}, Apply: []string{"INSERT INTO t VALUES (:record ->> 'k')"},
		}},
	})
	r.runFor(t, 5)
	wantRows(t, r.Circuit, "SELECT k FROM t ORDER BY rowid", "1", "2", "3")
	wantRows(t, r.Circuit, "SELECT reason FROM cairn_errors", "no thirteen", "no thirteen")
}

func TestOnErrorStopStopsInFrontOfTheRecordAndGoesOnAfterARestart(t *testing.T) {
	path, dir := temp(t, "in.ndjson"), t.TempDir()
	write(t, path, "{\"k\":1}\n{\"k\":\"x\"}\n{\"k\":3}\n")
	cfg := Config{
		Schema: "CREATE TABLE t (k INTEGER) STRICT",
		Inputs: []Input{{
			Name: "in", OnError: OnErrorStop, File: &FileInput{Path: path, Format: NDJSON},
			Apply: []string{"INSERT INTO t VALUES (:record ->> 'k')"},
		}},
	}
	r := open(t, dir, cfg)
	r.runUntil(t, func() bool { return r.Stats().Inputs[0].Stopped != "" })
	if reason := r.Stats().Inputs[0].Stopped; !strings.Contains(reason, path+" at byte 8 was refused") || !strings.Contains(reason, "cannot store TEXT") {
		t.Fatalf("reason: %s", reason)
	}
	wantRows(t, r.Circuit, "SELECT k FROM t", "1")
	wantRows(t, r.Circuit, "SELECT * FROM cairn_errors")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Inputs[0].Apply = []string{"INSERT INTO t VALUES (CAST(:record ->> 'k' AS INTEGER))"}
	again := open(t, dir, cfg)
	again.runFor(t, 3)
	wantRows(t, again.Circuit, "SELECT k FROM t", "1", "0", "3")
}

func TestAnInputWhoseFirst100RecordsAreAllRefusedStopsWithTheFirstReason(t *testing.T) {
	path, dir := temp(t, "in.ndjson"), t.TempDir()
	text := strings.Builder{}
	for i := range 150 {
		fmt.Fprintf(&text, "{\"k\":\"x%d\"}\n", i)
	}
	write(t, path, text.String())
	cfg := Config{
		Schema: "CREATE TABLE t (k INTEGER, why TEXT)",
		Inputs: []Input{{
			Name: "in", MaxBatch: 60, File: &FileInput{Path: path, Format: NDJSON},
			Apply: []string{"INSERT INTO t SELECT 1, 2 WHERE :record ->> 'k' -> '$' IS NULL"}, // a text that is no JSON: refused
		}},
	}
	r := open(t, dir, cfg)
	r.runUntil(t, func() bool { return r.Stats().Inputs[0].Stopped != "" })
	reason := r.Stats().Inputs[0].Stopped
	if !strings.HasPrefix(reason, "its first 100 records were all refused; the first of "+path+" at byte 0: malformed JSON") {
		t.Fatalf("reason: %s", reason)
	}
	wantRows(t, r.Circuit, "SELECT count(*) FROM cairn_errors", "60") // the second step was given back
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Inputs[0].Apply = []string{"INSERT INTO t VALUES (1, 2)"}
	again := open(t, dir, cfg)
	again.runFor(t, 150)
	wantRows(t, again.Circuit, "SELECT count(*) FROM t", "90")
}

func TestAnInputWithOneGoodRecordAmongTheFirst100GoesOn(t *testing.T) {
	path := temp(t, "in.ndjson")
	write(t, path, strings.Repeat("nonsense\n", 99)+"1\n"+strings.Repeat("nonsense\n", 200))
	r := open(t, t.TempDir(), linesConfig(path, NDJSON, false))
	r.runFor(t, 300)
	if in := r.Stats().Inputs[0]; in.Stopped != "" || in.Refused != 299 {
		t.Fatalf("stats: %+v", in)
	}
}

func TestAChangedSchemaOrInputNameRefusesToStart(t *testing.T) {
	dir := t.TempDir()
	cfg := linesConfig(temp(t, "none"), NDJSON, false)
	if err := open(t, dir, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	apply, renamed, schema := cfg, cfg, cfg
	apply.Inputs = []Input{cfg.Inputs[0]}
	apply.Inputs[0].Apply = []string{"INSERT INTO lines (record) VALUES ('changed')"}
	renamed.Inputs = []Input{cfg.Inputs[0]}
	renamed.Inputs[0].Name = "other"
	schema.Schema += "; CREATE TABLE more (x)"
	for name, changed := range map[string]Config{"input": renamed, "schema": schema} {
		c := newCircuit(t, changed)
		err := c.Open(t.Context(), circuit.Env{Dir: dir})
		if !errors.Is(err, ErrFingerprint) || !strings.Contains(err.Error(), "go back to the schema") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := open(t, dir, apply).Close(); err != nil {
		t.Errorf("a changed apply alone is fine, but: %v", err)
	}
}

func TestLargeIntegersStayExact(t *testing.T) {
	path := temp(t, "in.ndjson")
	write(t, path, "{\"n\":9007199254740993}\n{\"n\":-9223372036854775808}\n")
	r := open(t, t.TempDir(), Config{
		Schema: "CREATE TABLE t (n INTEGER)",
		Inputs: []Input{{Name: "in", File: &FileInput{Path: path, Format: NDJSON}, Apply: []string{"INSERT INTO t VALUES (:record ->> 'n')"}}},
	})
	r.runFor(t, 2)
	wantRows(t, r.Circuit, "SELECT n FROM t", "9007199254740993", "-9223372036854775808")
}

func TestAStrangeHeaderNameIsReachedByAJSONPath(t *testing.T) {
	const strikes = "testdata/birdstrikes.csv"
	f, err := os.Open(strikes)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column, sum := slices.Index(rows[0], "Cost Total $"), 0
	for _, row := range rows[1:] {
		cost, err := strconv.Atoi(strings.ReplaceAll(row[column], ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		sum += cost
	}
	r := open(t, t.TempDir(), Config{
		Schema: "CREATE TABLE t (cost INTEGER)",
		Inputs: []Input{{
			Name: "strikes", File: &FileInput{Path: strikes, Format: CSV},
			Apply: []string{`INSERT INTO t VALUES (CAST(replace(:record ->> '$."Cost Total $"', ',', '') AS INTEGER))`},
		}},
	})
	r.runFor(t, int64(len(rows)-1))
	wantRows(t, r.Circuit, "SELECT sum(cost) FROM t", strconv.Itoa(sum))
	wantRows(t, r.Circuit, "SELECT count(*) FROM cairn_errors", "0")
}

func TestAFullDiskChangesNothingAndTheRecordsAreTakenLater(t *testing.T) {
	path := temp(t, "in.ndjson")
	write(t, path, strings.Repeat("\"some text that takes room\"\n", 2000))
	r := open(t, t.TempDir(), linesConfig(path, NDJSON, false))
	pages, err := r.writer.integers("PRAGMA max_page_count = 20")
	if err != nil || pages[0] != 20 {
		t.Fatal(pages, err)
	}
	for r.Facts().Buffered < 2000 {
		<-r.woken
	}
	if result, err := r.Step(t.Context()); err == nil || result.Step != 0 || !errors.Is(err, circuit.ErrNoSpace) ||
		!strings.HasSuffix(err.Error(), "database or disk is full: no space left on the disk of "+r.dir+": free some space there") {
		t.Fatalf("%+v, %v", result, err)
	}
	wantRows(t, r.Circuit, "SELECT step, (SELECT count(*) FROM lines), (SELECT count(*) FROM cairn_files) FROM cairn_circuit", "0|0|0")
	if _, err := r.writer.integers("PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	r.runFor(t, 2000)
	wantRows(t, r.Circuit, "SELECT count(*) FROM lines", "2000")
}
