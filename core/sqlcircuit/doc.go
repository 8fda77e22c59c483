// Package sqlcircuit is the built-in circuit "sql": the user gives a schema and, per input, SQL statements that are applied to every
// record; the state is one SQLite database. The host builds one from its configuration and hands it to the loop of package circuit.
//
// # Exactly once
//
// A step applies up to MaxBatch records of every input and stores the new input positions and the step's number in one transaction. So
// the state and the positions never disagree, and after any crash or restore each record counts exactly once. HTTP batches are deduplicated
// by source and sequence number, kept in the same transaction; a client that gives neither may count twice when it repeats a request.
//
// A file's position is kept under its name: the path relative to FileInput.Base, so that the state goes on wherever the base lies. What the
// file holds decides whether it is the one of that name; see decision 0016.
//
// # What a statement sees
//
// Each statement may use :record (the record as JSON text), :input (the input's name) and :position (where the record came from, as text).
// A CSV record is an object whose values are all text, keyed by the header; a name that begins with $ is written '$."$x"' in a JSON path. An
// NDJSON record is the line itself, untouched, so integers keep all their digits as far as SQLite does (64 bits). The statements of a
// record apply all or none; a record that cannot be read or that a statement refuses becomes a row of the table cairn_errors (input,
// position, reason), which says where the record is but does not keep it. Tables whose names begin with cairn_ belong to this package; queries may read them.
//
// # Files of the live directory
//
//	state.db       the database; written by folds only
//	state.db-wal   what the steps wrote since
//	state.db-shm   SQLite's index of the WAL, rebuilt after a crash
//	state.db.base  a hard link to the newest checkpoint's state.db, never written: the source of the next hard link
//
// Nothing but the circuit may checkpoint the database while it is open: every connection has wal_autocheckpoint off, no connection folds
// when it closes, and a checkpoint's directory is never opened in place (restoring copies it first). POSIX locks belong to a process: so
// the circuit keeps the descriptor it copies state.db through open until SQLite has closed the file, and no other code of the
// process may open and close state.db meanwhile.
//
// # Goroutines
//
// The loop's goroutine calls the methods of circuit.Circuit. The circuit owns one goroutine per file input (it reads ahead), at most one that
// folds, and one watcher per running query; Close ends and waits for all of them.
package sqlcircuit
