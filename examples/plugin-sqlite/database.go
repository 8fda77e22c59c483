package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cairnsync/cairn/sdk"
)

// appID marks a database as this plugin's ("CaiR"), so that a path to somebody else's is noticed before anything is written to it.
const appID = 0x43616952

// busyAgain is the wait before a database that was refused as busy is asked again.
const busyAgain = 10 * time.Millisecond

// schema: an object is a row, and its content the chunks of its id in the order of seq. Keys are blobs, which SQLite compares by bytes.
const schema = `
CREATE TABLE objects (
	id       INTEGER PRIMARY KEY,
	key      BLOB NOT NULL UNIQUE,
	size     INTEGER NOT NULL,
	modified INTEGER NOT NULL -- Unix milliseconds
);
CREATE TABLE chunks (
	object INTEGER NOT NULL,
	seq    INTEGER NOT NULL,
	data   BLOB NOT NULL,
	UNIQUE (object, seq)
);
`

// database is one file with two pools of connections. Writers queue for the one connection that writes, which spares SQLite's lock the
// contention; readers have as many as they need, and the WAL keeps both out of each other's way.
type database struct {
	writer, reader *sql.DB
	path           string
	create         bool
	busy           time.Duration

	seen  atomic.Bool // the file was there: from now on its absence is that of a disk, and it is not made again
	ready atomic.Bool // and it is ours
}

// errUnmade says that the store is empty because nothing was put yet: with create = true, the first Put makes it.
var errUnmade = fmt.Errorf("the database is not made yet, the first put does that: %w", sdk.NotFound)

// openDatabase touches no file: the first call does. A commit waits for the disk (synchronous = FULL), also in WAL mode, where NORMAL would
// lose the last ones with the power. Each connection may cache a megabyte: 64 calls at once must not cost more than a plugin should.
func openDatabase(cfg Config) (*database, error) {
	busy := "busy_timeout(" + strconv.FormatInt(cfg.BusyTimeout.Milliseconds(), 10) + ")"
	writer, err := sql.Open("sqlite", dataSource(cfg.Path, url.Values{
		"mode": {"rw"}, "_pragma": {busy, "journal_mode(WAL)", "synchronous(FULL)", "cache_size(-1024)"},
		"_txlock": {"immediate"}, // a transaction here means to write: it takes the lock when it begins, not when it is too late
	}))
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	writer.SetMaxOpenConns(1)
	reader, err := sql.Open("sqlite", dataSource(cfg.Path, url.Values{"mode": {"rw"}, "_pragma": {busy, "query_only(1)", "cache_size(-1024)"}}))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), writer.Close())
	}
	reader.SetMaxIdleConns(8)
	return &database{writer: writer, reader: reader, path: cfg.Path, create: cfg.Create, busy: cfg.BusyTimeout}, nil
}

func dataSource(path string, query url.Values) string {
	return (&url.URL{Scheme: "file", Path: path, OmitHost: true, RawQuery: query.Encode()}).String()
}

// check makes sure that the file is a database of this plugin. It is asked before each call, until it has succeeded. errUnmade = with create = true, it is
// one to be made.
func (d *database) check(ctx context.Context) error {
	if d.ready.Load() {
		return nil
	}
	unmade := d.create && !d.seen.Load() && d.unmade() // before the look: a Put beside it may make the file meanwhile
	var id, tables int
	err := d.patiently(ctx, func() (err error) {
		id, tables, err = look(ctx, d.reader)
		return err
	})
	if isCode(err, sqlite3.SQLITE_CANTOPEN) && unmade {
		return errUnmade
	}
	if err != nil {
		return err
	}
	d.seen.Store(true)
	if err := d.judge(id, tables); err != nil {
		return err
	}
	d.ready.Store(true)
	return nil
}

// checkToPut is check for a Put, which makes what is missing.
func (d *database) checkToPut(ctx context.Context) error {
	err := d.check(ctx)
	if !errors.Is(err, errUnmade) {
		return err
	}
	if !d.seen.Load() {
		if err := d.makeFile(ctx); err != nil {
			return err
		}
		d.seen.Store(true)
	}
	if err := d.write(ctx, d.claim); err != nil {
		return err
	}
	d.ready.Store(true)
	return nil
}

// unmade is true when a Put could make the file: its folder is there, and in it not even a link of that name.
func (d *database) unmade() bool {
	folder, err := os.OpenRoot(filepath.Dir(d.path))
	if err != nil {
		return false
	}
	defer func() { _ = folder.Close() }() // it was only looked through
	_, err = folder.Lstat(filepath.Base(d.path))
	return errors.Is(err, fs.ErrNotExist)
}

// makeFile makes the file, empty. SQLite does it: a descriptor of ours, closed beside its own, would take its locks away. The first commit makes the name
// durable, with that of the WAL in the same folder.
func (d *database) makeFile(ctx context.Context) error {
	maker, err := sql.Open("sqlite", dataSource(d.path, url.Values{"mode": {"rwc"}}))
	if err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	err = d.patiently(ctx, func() error { return maker.PingContext(ctx) })
	return errors.Join(err, maker.Close())
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// look tells whose database it is.
func look(ctx context.Context, db querier) (id, tables int, err error) {
	err = db.QueryRowContext(ctx, "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id").Scan(&id, &tables)
	return id, tables, err
}

// judge tells what the database is: nil = ours, errUnmade = an empty one that may become ours.
func (d *database) judge(id, tables int) error {
	switch {
	case id == appID:
		return nil
	case id != 0 || tables > 0:
		return &sdk.Error{
			Code: sdk.InvalidConfig, Attribute: "path", Err: fmt.Errorf("it is a database of another program (application_id %d, %d tables)", id, tables),
			Hint: "name a file of its own for the target",
		}
	case !d.create:
		return &sdk.Error{Code: sdk.Unavailable, Err: errors.New("the database is empty"), Hint: hintCreate}
	}
	return errUnmade
}

// claim makes the schema in a database that is still empty.
func (d *database) claim(ctx context.Context, tx *sql.Tx) error {
	id, tables, err := look(ctx, tx)
	if err != nil {
		return err
	}
	if err := d.judge(id, tables); !errors.Is(err, errUnmade) {
		return err
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; %s", appID, schema))
	return err
}

// write runs do in one transaction, which is durable when write returns nil and has changed nothing when it returns an error, unless the
// error is that of the commit.
func (d *database) write(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	tx, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := do(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (d *database) begin(ctx context.Context) (tx *sql.Tx, err error) {
	err = d.patiently(ctx, func() error {
		tx, err = d.writer.BeginTx(ctx, nil)
		return err
	})
	return tx, err
}

// patiently also waits where SQLite does not, whatever busy_timeout says: of connections that turn the same new file into a WAL database at the same
// moment, or read it then, one is refused at once, for they would wait for each other.
func (d *database) patiently(ctx context.Context, do func() error) error {
	patience, cancel := context.WithTimeout(ctx, d.busy)
	defer cancel()
	for {
		err := do()
		if !isCode(err, sqlite3.SQLITE_BUSY) {
			return err
		}
		select {
		case <-patience.Done():
			return err
		case <-time.After(busyAgain):
		}
	}
}

// close ends both pools and waits for nobody: calls in progress fail.
func (d *database) close() error { return errors.Join(d.reader.Close(), d.writer.Close()) }
