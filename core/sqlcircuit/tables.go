package sqlcircuit

import (
	"errors"
	"fmt"
)

// format is the version of the tables below; a state of a higher one is refused.
const format = 1

// ownTables lie beside the user's in the same database, so that one transaction covers both.
const ownTables = `
CREATE TABLE cairn_circuit (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  format      INTEGER NOT NULL,
  fingerprint BLOB NOT NULL,
  step        INTEGER NOT NULL
);
CREATE TABLE cairn_inputs (
  input   TEXT PRIMARY KEY,
  applied INTEGER NOT NULL,
  refused INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE cairn_files (
  input  TEXT NOT NULL,
  path   TEXT NOT NULL,    -- the file's name: relative to FileInput.Base, or absolute
  offset INTEGER NOT NULL, -- of the first byte that no record has taken
  length INTEGER NOT NULL, -- of the file when last seen
  head   BLOB NOT NULL,    -- SHA-256 of its first min(4096, length) bytes
  PRIMARY KEY (input, path)
) WITHOUT ROWID;
CREATE TABLE cairn_sources (
  input  TEXT NOT NULL,
  source TEXT NOT NULL,
  seq    INTEGER NOT NULL, -- of the last batch applied
  PRIMARY KEY (input, source)
) WITHOUT ROWID;
CREATE TABLE cairn_errors (
  input    TEXT NOT NULL,
  position TEXT NOT NULL,
  reason   TEXT NOT NULL
);
`

// bookkeeping holds the writer's prepared statements for the tables above and for the transaction itself.
type bookkeeping struct {
	begin, commit, rollback               *stmt
	openRecord, undoRecord, closeRecord   *stmt
	setStep, setCounts, setFile, dropFile *stmt
	setSource, addError, frames           *stmt
}

func (b *bookkeeping) statements() map[**stmt]string {
	return map[**stmt]string{
		&b.begin: "BEGIN IMMEDIATE", &b.commit: "COMMIT", &b.rollback: "ROLLBACK",
		&b.openRecord: "SAVEPOINT record", &b.undoRecord: "ROLLBACK TO record", &b.closeRecord: "RELEASE record",
		&b.setStep: "UPDATE cairn_circuit SET step = ? WHERE id = 1",
		&b.setCounts: "INSERT INTO cairn_inputs VALUES (?, ?, ?) " +
			"ON CONFLICT DO UPDATE SET applied = excluded.applied, refused = excluded.refused",
		&b.setFile: "INSERT INTO cairn_files VALUES (?, ?, ?, ?, ?) " +
			"ON CONFLICT DO UPDATE SET offset = excluded.offset, length = excluded.length, head = excluded.head",
		&b.dropFile:  "DELETE FROM cairn_files WHERE input = ? AND path = ?",
		&b.setSource: "INSERT INTO cairn_sources VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq",
		&b.addError:  "INSERT INTO cairn_errors VALUES (?, ?, ?)",
		&b.frames:    "PRAGMA wal_checkpoint(NOOP)",
	}
}

func (b *bookkeeping) prepare(c *conn) error {
	for into, text := range b.statements() {
		s, err := c.prepareOne(text)
		if err != nil {
			return fmt.Errorf("prepare %q: %w", text, err)
		}
		*into = s
	}
	return nil
}

func (b *bookkeeping) finalize() {
	for s := range b.statements() {
		(*s).finalize()
	}
}

// header is the one row of cairn_circuit.
type header struct {
	format      int64
	fingerprint []byte
	step        uint64
}

var (
	errNoHeader = errors.New("it holds no state of a sql circuit")
	errNoRow    = errors.New("table cairn_circuit has lost its row")
)

// readHeader fails with errNoHeader when the database is empty, which is what a crash during the very first start leaves behind.
func readHeader(c *conn) (header, error) {
	tables, err := c.integers("SELECT count(*), count(*) FILTER (WHERE name = 'cairn_circuit') FROM sqlite_schema")
	if err != nil {
		return header{}, err
	}
	if tables[0] == 0 {
		return header{}, errNoHeader
	}
	if tables[1] == 0 {
		return header{}, errors.New("it is a database of something else")
	}
	s, err := c.prepareOne("SELECT format, fingerprint, step FROM cairn_circuit WHERE id = 1")
	if err != nil {
		return header{}, err
	}
	defer s.finalize()
	row, err := s.step()
	if err == nil && !row {
		err = errNoRow
	}
	if err != nil {
		return header{}, err
	}
	return header{format: s.integer(0), fingerprint: s.blob(1), step: uint64(s.integer(2))}, nil
}
