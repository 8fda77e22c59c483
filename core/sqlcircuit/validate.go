package sqlcircuit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// CheckSQL tries the schema and every statement on a database in memory, and nothing else of a configuration, which may lack the rest. Where the schema
// is broken or empty, statements are told for what is wrong with them whatever it may hold.
func CheckSQL(cfg Config) error {
	c, err := openConn(":memory:", openMemory)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }() // nothing in memory is worth an error
	if err := c.exec(ownTables); err != nil {
		return fmt.Errorf("create the circuit's own tables: %w", err)
	}
	if err := c.authorize(schemaAuthorizer); err != nil {
		return err
	}
	faults := []error{}
	if err := c.exec(cfg.Schema); err != nil {
		faults = append(faults, fmt.Errorf("schema: %w", denied(err, "a schema only creates tables, indexes, views and triggers and fills them; "+
			"names that begin with cairn_ are taken")))
	}
	whole := len(faults) == 0 && strings.TrimSpace(cfg.Schema) != ""
	if err := c.authorize(applyAuthorizer); err != nil {
		return err
	}
	for _, in := range cfg.Inputs {
		for i, text := range in.Apply {
			if err := checkStatement(c, text); err != nil && (whole || !schemaMayMend(err)) {
				faults = append(faults, fmt.Errorf("input %q: apply statement %d: %w", in.Name, i+1, err))
			}
		}
	}
	return errors.Join(faults...)
}

// schemaMayMend says of a statement's fault that it may be gone under another schema. SQLite has one code for what it cannot parse and what it does not find.
func schemaMayMend(err error) bool {
	e, ok := errors.AsType[*sqliteError](err)
	if !ok || e.code&0xff == sqlite3.SQLITE_AUTH {
		return false
	}
	return !slices.ContainsFunc([]string{"syntax error", "unrecognized token", "incomplete input"}, func(words string) bool { return strings.Contains(e.text, words) })
}

func checkStatement(c *conn, text string) error {
	s, err := c.prepareOne(text)
	if err != nil {
		return denied(err, "a statement reads and writes the schema's tables and nothing else: no transactions, no PRAGMA, no ATTACH, "+
			"no change of the schema or of a cairn_ table")
	}
	defer s.finalize()
	known := []string{":record", ":input", ":position"}
	for _, name := range s.parameters() {
		if !slices.Contains(known, name) {
			return fmt.Errorf("parameter %q is not known; there are only :record, :input and :position", name)
		}
	}
	return nil
}

// denied explains SQLite's bare "not authorized".
func denied(err error, rule string) error {
	var e *sqliteError
	if errors.As(err, &e) && e.code&0xff == sqlite3.SQLITE_AUTH {
		return fmt.Errorf("%w: %s", err, rule)
	}
	return err
}

// schemaAuthorizer lets a schema define and fill tables of its own.
func schemaAuthorizer(_ *libc.TLS, _ uintptr, action int32, a1, a2, _, _ uintptr) int32 {
	switch action {
	case sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA,
		sqlite3.SQLITE_CREATE_TEMP_TABLE, sqlite3.SQLITE_CREATE_TEMP_INDEX, sqlite3.SQLITE_CREATE_TEMP_TRIGGER, sqlite3.SQLITE_CREATE_TEMP_VIEW:
		return sqlite3.SQLITE_DENY
	case sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE:
		return sqlite3.SQLITE_OK
	}
	if isOurs(a1) || isOurs(a2) {
		return sqlite3.SQLITE_DENY
	}
	return sqlite3.SQLITE_OK
}

// applyAuthorizer lets a statement read everything and write the schema's tables.
func applyAuthorizer(_ *libc.TLS, _ uintptr, action int32, a1, _, _, _ uintptr) int32 {
	switch action {
	case sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE:
		return sqlite3.SQLITE_OK
	case sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE:
		if !isOurs(a1) && !strings.HasPrefix(strings.ToLower(libc.GoString(a1)), "sqlite_") {
			return sqlite3.SQLITE_OK
		}
	}
	return sqlite3.SQLITE_DENY
}

func isOurs(name uintptr) bool {
	return strings.HasPrefix(strings.ToLower(libc.GoString(name)), "cairn_")
}
