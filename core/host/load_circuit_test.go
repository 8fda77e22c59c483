package host

import (
	"os"
	"strings"
	"testing"
	"time"
)

// The block's own fault and those of its SQL are told in one run; what may come of the fault is not.
func TestAFaultOfACircuitBlockDoesNotHideThoseOfItsSQL(t *testing.T) {
	const file = `pipeline "p" {
  circuit "sql" {
    schema = file("gone.sql")
    input "in" {
      apply = ["INSERT INTO t VALUES (1)", "SELEC"]
      http { format = "xml" }
    }
  }
  storage "memory" {}
}
`
	w := newWorld(t)
	for name, row := range map[string]struct {
		schema string
		want   []string
	}{
		"a schema that cannot be read": {`file("gone.sql")`, []string{"gone.sql: no such file", `format cannot be "xml"`, `apply statement 2: near "SELEC"`}},
		"a schema that does not run":   {`"CREATE TABEL t (x)"`, []string{`schema: near "TABEL"`, `format cannot be "xml"`, `apply statement 2: near "SELEC"`}},
		"a schema that runs": {`"CREATE TABLE u (x)"`, []string{
			"apply statement 1: no such table: t", `format cannot be "xml"`, `apply statement 2: near "SELEC"`,
		}},
	} {
		path := w.path("faults.hcl")
		must(t, os.WriteFile(path, []byte(strings.Replace(file, `file("gone.sql")`, row.schema, 1)), 0o600))
		_, found := Load(t.Context(), path, LoadOptions{Now: time.Now})
		if len(found) != len(row.want) {
			t.Errorf("%s: %d faults, want %d", name, len(found), len(row.want))
		}
		contains(t, found.Error(), row.want...)
	}
}
