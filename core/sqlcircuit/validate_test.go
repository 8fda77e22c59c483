package sqlcircuit

import (
	"strings"
	"testing"
	"time"
)

func TestNewNamesEveryFaultWithItsInputAndStatement(t *testing.T) {
	good := func() Config {
		return Config{
			Now: time.Now, Schema: "CREATE TABLE t (x)",
			Inputs: []Input{{Name: "in", Apply: []string{"INSERT INTO t VALUES (:record)"}, HTTP: &HTTPInput{Format: NDJSON}}},
		}
	}
	apply := func(texts ...string) func(*Config) { return func(c *Config) { c.Inputs[0].Apply = texts } }
	for _, row := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"a schema that does not run", func(c *Config) { c.Schema = "CREATE TABEL t (x)" }, []string{`schema: near "TABEL": syntax error`}},
		{"an empty schema", func(c *Config) { c.Schema = " " }, []string{"schema: it is empty"}},
		{"a schema with a PRAGMA", func(c *Config) { c.Schema += "; PRAGMA journal_mode = DELETE" }, []string{"schema: not authorized: a schema only"}},
		{"a schema with a COMMIT", func(c *Config) { c.Schema += "; COMMIT" }, []string{"schema: not authorized"}},
		{"a schema that takes our names", func(c *Config) { c.Schema += "; CREATE TABLE Cairn_x (y)" }, []string{"names that begin with cairn_ are taken"}},
		{"a statement that does not compile", apply("INSERT INTO missing VALUES (1)"), []string{`input "in": apply statement 1: no such table: missing`}},
		{"two statements in one", apply("INSERT INTO t VALUES (1)", "DELETE FROM t; DELETE FROM t"), []string{`input "in": apply statement 2: there is more than one statement`}},
		{"no statement in one", apply("-- only words\n"), []string{"apply statement 1: there is no statement"}},
		{"an unknown parameter", apply("INSERT INTO t VALUES (:row)"), []string{`apply statement 1: parameter ":row" is not known`}},
		{"a parameter without a name", apply("INSERT INTO t VALUES (?)"), []string{`parameter "" is not known`}},
		{"a transaction", apply("COMMIT"), []string{"apply statement 1: not authorized: a statement reads and writes"}},
		{"a PRAGMA", apply("PRAGMA wal_checkpoint"), []string{"apply statement 1: not authorized"}},
		{"an ATTACH", apply("ATTACH 'x' AS y"), []string{"apply statement 1: not authorized"}},
		{"a change of the schema", apply("CREATE TABLE u (x)"), []string{"apply statement 1: not authorized"}},
		{"a write to our tables", apply("UPDATE cairn_circuit SET step = 7"), []string{"apply statement 1: not authorized"}},
		{"no statements at all", apply(), []string{`input "in": apply: it has no statement`}},
		{"no input", func(c *Config) { c.Inputs = nil }, []string{"it has no input"}},
		{"a bad name", func(c *Config) { c.Inputs[0].Name = "a/b" }, []string{`input "a/b": a name is 1 to 200`}},
		{"two inputs of one name", func(c *Config) { c.Inputs = append(c.Inputs, c.Inputs[0]) }, []string{`input "in": there is another input of this name`}},
		{"neither file nor http", func(c *Config) { c.Inputs[0].HTTP = nil }, []string{`input "in": it must be either file or http`}},
		{"an unknown format", func(c *Config) { c.Inputs[0].HTTP = &HTTPInput{Format: "xml"} }, []string{`http: format "xml" is neither`}},
		{"limits beyond the greatest", func(c *Config) { c.Inputs[0].HTTP = &HTTPInput{Format: CSV, MaxBytes: 1 << 30} }, []string{"http: max_bytes 1073741824 is not between"}},
		{"a bad pattern", func(c *Config) { c.Inputs[0].HTTP, c.Inputs[0].File = nil, &FileInput{Path: "[", Format: CSV} }, []string{`path "[" is not a valid pattern`}},
		{"an unknown on_error", func(c *Config) { c.Inputs[0].OnError = "panic" }, []string{`on_error: "panic" is neither`}},
		{"no clock", func(c *Config) { c.Now = nil }, []string{"Now is nil"}},
		{"an empty schema does not hide what is wrong with a statement", func(c *Config) {
			c.Schema = " "
			apply("SELECT :x")(c)
		}, []string{"schema: it is empty", `apply statement 1: parameter ":x"`}},
		{"a broken schema does not hide what is wrong with a statement", func(c *Config) {
			c.Schema = "CREATE TABEL t (x)"
			apply("SELEC", "SELECT 1; SELECT 2", "COMMIT", "SELECT 'x", "INSERT INTO u VALUES (1")(c)
		}, []string{
			`schema: near "TABEL"`, "apply statement 1:", "apply statement 2: there is more than one", "apply statement 3: not authorized",
			"apply statement 4: unrecognized token", "apply statement 5: incomplete input",
		}},
		{"a fault beside the SQL does not hide what is wrong with it", func(c *Config) {
			c.Inputs[0].HTTP = &HTTPInput{Format: "xml"}
			apply("SELEC")(c)
		}, []string{"is neither", "apply statement 1:"}},
		{"several faults at once", apply("SELEC", "INSERT INTO t VALUES (:x)"), []string{"apply statement 1:", "apply statement 2:"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := good()
			row.change(&cfg)
			_, err := New(cfg)
			for _, want := range row.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error: %v\nwant: %s", err, want)
				}
			}
		})
	}
	cfg := good()
	cfg.Schema = "CREATE TABEL t (x)"
	if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "apply") {
		t.Errorf("a statement is told to be at fault for a table of a broken schema: %v", err)
	}
	cfg = good()
	cfg.Inputs[0].Apply = []string{"INSERT INTO t VALUES (:record || :input || :position); -- one statement, then a comment\n;"}
	if _, err := New(cfg); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
}

func TestTheFingerprintCoversSchemaAndInputNamesOnly(t *testing.T) {
	cfg := func(schema, apply string, names ...string) [32]byte {
		c := Config{Now: time.Now, Schema: schema}
		for _, name := range names {
			c.Inputs = append(c.Inputs, Input{Name: name, Apply: []string{apply}, HTTP: &HTTPInput{Format: CSV}})
		}
		return newCircuit(t, c).Identity().Fingerprint
	}
	base := cfg("CREATE TABLE t (x)", "INSERT INTO t VALUES (1)", "a", "b")
	if base != cfg("CREATE TABLE t (x)", "INSERT INTO t VALUES (2)", "b", "a") {
		t.Error("another apply or another order of the inputs changes it")
	}
	if base == cfg("CREATE TABLE t (x) ", "INSERT INTO t VALUES (1)", "a", "b") || base == cfg("CREATE TABLE t (x)", "INSERT INTO t VALUES (1)", "ab") {
		t.Error("another schema or other names do not change it")
	}
}
