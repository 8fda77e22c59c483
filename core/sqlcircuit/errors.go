package sqlcircuit

import (
	"errors"
	"fmt"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cairnsync/cairn/core/circuit"
)

// What Ingest, Position, Query and Open answer; the HTTP API turns each into a status.
var (
	ErrUnknownInput = errors.New("there is no http input of this name")             // 404
	ErrTooLarge     = errors.New("the batch is too large; send it in smaller ones") // 413
	ErrFull         = errors.New("the input is full; send the batch again later")   // 429
	ErrBadFormat    = errors.New("the batch cannot be read")                        // 400
	ErrMediaType    = errors.New("the batch is of another format")                  // 415
	ErrNotRunning   = errors.New("the circuit is not running")                      // 503
	ErrInputStopped = errors.New("the input has stopped")                           // 503
	ErrBadQuery     = errors.New("the query is refused")                            // 400
	ErrQueryTime    = errors.New("the query took longer than a query may")          // 504

	// ErrFingerprint is what Open and Restore answer for a state of another schema or of other inputs.
	ErrFingerprint = errors.New("the state belongs to another schema or to other input names")
)

// refuses says that SQLite's answer concerns the record, not the database: a constraint, malformed JSON, RAISE, a type, a size. A full
// disk, an I/O error, corruption, an interrupt end the step instead.
func refuses(err error) bool {
	var e *sqliteError
	if !errors.As(err, &e) {
		return false
	}
	switch e.code & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE,
		sqlite3.SQLITE_ABORT, sqlite3.SQLITE_AUTH:
		return true
	}
	return false
}

// damages says that SQLite's answer means that the file is no usable database.
func damages(err error) bool {
	var e *sqliteError
	return errors.As(err, &e) && (e.code&0xff == sqlite3.SQLITE_NOTADB || e.code&0xff == sqlite3.SQLITE_CORRUPT)
}

// full says that a disk or a quota had no room for what SQLite wanted to write. SQLite calls a short write "full"; where another call found it
// out (a sync, the file of the WAL's index that has to grow), that is an I/O error with the system's number in it.
func full(err error) bool {
	var e *sqliteError
	if !errors.As(err, &e) {
		return false
	}
	return e.code&0xff == sqlite3.SQLITE_FULL || e.errno == syscall.ENOSPC || e.errno == syscall.EDQUOT
}

// spaceError is a full disk as an operator should hear of it.
type spaceError struct {
	dir string // of the live state
	err error
}

func (e *spaceError) Error() string {
	return fmt.Sprintf("%v: no space left on the disk of %s: free some space there", e.err, e.dir)
}

// Unwrap gives the cause and circuit.ErrNoSpace.
func (e *spaceError) Unwrap() []error { return []error{circuit.ErrNoSpace, e.err} }

// explained names a full disk as what it is.
func (c *Circuit) explained(err error) error {
	if full(err) {
		return &spaceError{dir: c.env.Dir, err: err}
	}
	return err
}
