package main

import (
	"context"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cairnsync/cairn/sdk"
)

const hintCreate = "is its disk mounted? For a new target: create = true"

// explain gives an error its code, by SQLite's own.
func explain(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	e := &sdk.Error{Code: sdk.CodeOf(err), Op: op, Key: key, Err: err}
	var raw *sqlite.Error
	switch {
	case e.Code != sdk.Internal:
	case ctx.Err() != nil:
		e.Code = sdk.CodeOf(ctx.Err()) // an interrupted statement
	case errors.As(err, &raw):
		e.Code, e.Hint = meaning(raw.Code())
		e.Provider = "SQLite " + sqlite.ErrorCodeString[raw.Code()&0xff]
	}
	return e
}

// isCode asks for a primary result code of SQLite.
func isCode(err error, code int) bool {
	var raw *sqlite.Error
	return errors.As(err, &raw) && raw.Code()&0xff == code
}

// meaning is the table of SQLite's primary result codes.
func meaning(code int) (sdk.Code, string) {
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return sdk.Unavailable, "another process holds the database; raise busy_timeout if it has to"
	case sqlite3.SQLITE_CANTOPEN:
		return sdk.Unavailable, hintCreate
	case sqlite3.SQLITE_IOERR:
		return sdk.Unavailable, "look at the disk"
	case sqlite3.SQLITE_FULL:
		return sdk.NoSpace, "make room on the disk"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return sdk.Corrupt, "the file is no database, or a damaged one; sqlite3 FILE 'PRAGMA integrity_check' says more"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return sdk.PermissionDenied, "let the user that runs cairn write the file and its directory"
	case sqlite3.SQLITE_TOOBIG:
		return sdk.Unsupported, ""
	}
	return sdk.Internal, ""
}
