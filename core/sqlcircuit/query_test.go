package sqlcircuit

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/circuit"
)

func queryRig(t *testing.T, tune ...func(*Circuit)) *rig {
	t.Helper()
	return open(t, t.TempDir(), Config{
		Schema: "CREATE TABLE t (day DATE, flag BOOLEAN); INSERT INTO t VALUES ('2020-01-02', 7)",
		Inputs: []Input{{Name: "in", HTTP: &HTTPInput{Format: CSV}, Apply: []string{"INSERT INTO t VALUES (1, 2)"}}},
	}, tune...)
}

func TestQueryValuesKeepTheirTypes(t *testing.T) {
	r := queryRig(t)
	for _, row := range []struct{ text, want string }{
		{"SELECT 9007199254740993 AS v", "9007199254740993"},
		{"SELECT 1.5 AS v", "1.5"},
		{"SELECT 1e999 AS v", `"Infinity"`},
		{"SELECT -1e999 AS v", `"-Infinity"`},
		{"SELECT 'x' AS v", `"x"`},
		{"SELECT NULL AS v", "null"},
		{"SELECT x'00ff' AS v", `{"base64":"AP8="}`},
		{"SELECT x'' AS v", `{"base64":""}`},
		{"SELECT day AS v FROM t", `"2020-01-02"`},
		{"SELECT flag AS v FROM t", "7"},
		{"SELECT 1 AS v; -- and a comment", "1"},
		{"SELECT name AS v FROM pragma_table_info('t') LIMIT 1", `"day"`},
	} {
		rows, err := r.Query(t.Context(), row.text)
		if err != nil {
			t.Fatalf("%s: %v", row.text, err)
		}
		n := 0
		for columns, err := range rows {
			if err != nil {
				t.Fatalf("%s: %v", row.text, err)
			}
			n++
			got, err := json.Marshal(columns[0].Value)
			if err != nil || string(got) != row.want || columns[0].Name != "v" {
				t.Errorf("%s: %s %s, %v; want %s", row.text, columns[0].Name, got, err, row.want)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d rows", row.text, n)
		}
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	r := queryRig(t)
	for _, row := range []struct{ text, want string }{
		{"SELEC 1", "syntax error"},
		{"SELECT 1 AS a, 2 AS a", `two columns are named "a"`},
		{"SELECT 1; SELECT 2", "more than one statement"},
		{"", "there is no statement"},
		{"SELECT :x", "it has a parameter (:x)"},
		{"INSERT INTO t VALUES (1, 2)", "a query only reads"},
		{"DELETE FROM cairn_circuit RETURNING step", "a query only reads"},
		{"PRAGMA wal_checkpoint(TRUNCATE)", "a query only reads"},
		{"PRAGMA journal_mode = DELETE", "a query only reads"},
		{"ATTACH 'x.db' AS x", "a query only reads"},
		{"VACUUM INTO 'x.db'", "a query only reads"},
		{"BEGIN", "a query only reads"},
		{"SELECT load_extension('x')", "not authorized to use function"},
	} {
		if _, err := r.Query(t.Context(), row.text); !errors.Is(err, ErrBadQuery) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.text, err)
		}
	}
	rows, err := r.Query(t.Context(), "SELECT json(day) AS v FROM t")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range rows {
		if !errors.Is(err, ErrBadQuery) || !strings.Contains(err.Error(), "malformed JSON") {
			t.Errorf("a fault in the middle: %v", err)
		}
	}
}

const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"

func TestAQueryEndsWhenItsTimeIsOver(t *testing.T) {
	for name, text := range map[string]string{"between two rows": endless, "inside a step": "SELECT max(i) AS i FROM (" + endless + ")"} {
		r := queryRig(t, func(c *Circuit) { c.limits.query = 500 * time.Millisecond })
		rows, err := r.Query(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range rows {
			last = err
		}
		if !errors.Is(last, ErrQueryTime) {
			t.Errorf("%s: %v", name, last)
		}
	}
}

func TestAQueryEndsWithItsClientOrWithTheCircuit(t *testing.T) {
	r := queryRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rows, err := r.Query(ctx, endless)
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range rows {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("a client that goes: %v", last)
	}
	rows, err = r.Query(t.Context(), endless)
	if err != nil {
		t.Fatal(err)
	}
	for range rows { // one row, then enough
		break
	}
	for _, err := range rows {
		if err == nil {
			t.Error("the rows were read twice")
		}
	}
	if _, err := r.Query(t.Context(), endless); err != nil { // never read
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Query(t.Context(), "SELECT 1"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAQueryReadsOneStateWhileStepsGoOn(t *testing.T) {
	r := queryRig(t)
	rows, err := r.Query(t.Context(), "SELECT day, (SELECT count(*) FROM t) AS n FROM t UNION ALL SELECT 'x', (SELECT count(*) FROM t)")
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range rows {
		if err != nil || row[1].Value != int64(1) {
			t.Fatalf("%v, %v", row, err)
		}
		if _, err := r.send(t, circuit.Batch{Body: body("k\n1\n")}); err != nil {
			t.Fatal(err)
		}
	}
	wantRows(t, r.Circuit, "SELECT count(*) FROM t", "3")
}
