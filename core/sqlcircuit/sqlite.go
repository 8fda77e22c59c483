package sqlcircuit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	_ "modernc.org/sqlite" // its init prepares the library for the platform
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is one SQLite connection, a thin skin over the C API. database/sql is not used here, for five reasons that all matter to this
// package: a pool may open a connection behind our back (and one connection with an autocheckpoint spoils every checkpoint), its driver
// turns the text of DATE columns into times, cannot interrupt a query between two rows, cannot say where a statement ends, and cannot
// stop the last connection from folding the WAL when it closes.
//
// A conn is used by one goroutine at a time; only interrupt may be called from another one.
type conn struct {
	tls *libc.TLS

	mu sync.Mutex // guards db against an interrupt that comes while the connection closes
	db uintptr
}

// The ways to open a connection.
const (
	openMemory   = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_CREATE | sqlite3.SQLITE_OPEN_MEMORY
	openCreate   = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_CREATE
	openExisting = sqlite3.SQLITE_OPEN_READWRITE
	openReadOnly = sqlite3.SQLITE_OPEN_READONLY
)

// sqliteError is what SQLite answered: its extended result code, its message and, where a call of the system failed, the number of that error.
type sqliteError struct {
	code  int32
	text  string
	errno syscall.Errno // 0 = SQLite tells none
}

func (e *sqliteError) Error() string { return e.text }

// openConn opens path and nothing else: no URI, no query parameters. Closing the last connection never folds the WAL: the fold would
// write to the main file at a moment that nobody chose.
func openConn(path string, flags int32) (*conn, error) {
	c := &conn{tls: libc.NewTLS()}
	if err := c.open(path, flags|sqlite3.SQLITE_OPEN_NOMUTEX|sqlite3.SQLITE_OPEN_EXRESCODE); err != nil {
		_ = c.close() // the open failed; that error is the one to tell
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return c, nil
}

func (c *conn) open(path string, flags int32) error {
	name, err := libc.CString(path)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	out, err := c.malloc(pointerSize)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, out)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, out, flags, 0)
	c.db = readPointer(out)
	if rc != sqlite3.SQLITE_OK {
		return c.failure(rc)
	}
	return c.neverFoldOnClose()
}

func (c *conn) neverFoldOnClose() error {
	const slot = 8 // bytes of one variadic argument, on every platform
	args, err := c.malloc(2 * slot)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, args)
	list := libc.VaList(args, int32(1), uintptr(0))
	if rc := sqlite3.Xsqlite3_db_config(c.tls, c.db, sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, list); rc != sqlite3.SQLITE_OK {
		return c.failure(rc)
	}
	return nil
}

// close ends the connection. Its statements must be finalized before.
func (c *conn) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db != 0 {
		if rc := sqlite3.Xsqlite3_close(c.tls, c.db); rc != sqlite3.SQLITE_OK {
			return fmt.Errorf("close database: %w", c.failure(rc))
		}
		c.db = 0
	}
	if c.tls != nil {
		c.tls.Close()
		c.tls = nil
	}
	return nil
}

// interrupt makes the step that is running on the connection fail with SQLITE_INTERRUPT. One that comes before the step has begun is
// lost, so a caller that must win repeats it.
func (c *conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db == 0 {
		return
	}
	tls := libc.NewTLS() // the connection's own is in use by the goroutine that steps
	sqlite3.Xsqlite3_interrupt(tls, c.db)
	tls.Close()
}

// waitForLocks makes the connection wait up to ms milliseconds for a lock before it answers busy; 0 = not at all.
func (c *conn) waitForLocks(ms int32) { sqlite3.Xsqlite3_busy_timeout(c.tls, c.db, ms) }

// autocommit says that no transaction is open.
func (c *conn) autocommit() bool { return sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) != 0 }

// exec runs a script of any number of statements and drops their rows.
func (c *conn) exec(script string) error {
	for script != "" {
		s, rest, err := c.prepare(script)
		if err != nil {
			return err
		}
		script = rest
		if s == nil {
			continue
		}
		err = s.run()
		s.finalize()
		if err != nil {
			return err
		}
	}
	return nil
}

// integers runs one statement and returns the columns of its first row as integers; nil when there is no row.
func (c *conn) integers(sql string) ([]int64, error) {
	s, _, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	defer s.finalize()
	row, err := s.step()
	if err != nil || !row {
		return nil, err
	}
	values := make([]int64, s.columns())
	for i := range values {
		values[i] = s.integer(i)
	}
	return values, nil
}

// authorizer decides about one action of a statement while SQLite compiles it. SQLite calls it through a bare code pointer, so it must
// be a declared function, never a closure.
type authorizer func(tls *libc.TLS, arg uintptr, action int32, a1, a2, database, trigger uintptr) int32

// authorize installs f for every statement prepared from now on; nil removes it.
func (c *conn) authorize(f authorizer) error {
	var code uintptr
	if f != nil {
		code = *(*uintptr)(unsafe.Pointer(&struct{ f authorizer }{f})) // a func value is a pointer to its code pointer
	}
	if rc := sqlite3.Xsqlite3_set_authorizer(c.tls, c.db, code, 0); rc != sqlite3.SQLITE_OK {
		return c.failure(rc)
	}
	return nil
}

func (c *conn) failure(rc int32) error {
	e := &sqliteError{code: rc, text: libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))}
	if c.db != 0 && sqlite3.Xsqlite3_extended_errcode(c.tls, c.db) == rc {
		e.text = libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
		if primary := rc & 0xff; primary == sqlite3.SQLITE_IOERR || primary == sqlite3.SQLITE_CANTOPEN {
			e.errno = syscall.Errno(sqlite3.Xsqlite3_system_errno(c.tls, c.db))
		}
	}
	return e
}

func (c *conn) malloc(n int) (uintptr, error) {
	if p := libc.Xmalloc(c.tls, types.Size_t(n)); p != 0 {
		return p, nil
	}
	return 0, errors.New("out of memory")
}

const pointerSize = bits.UintSize / 8

func readPointer(p uintptr) uintptr {
	b := libc.GoBytes(p, pointerSize)
	if pointerSize == 4 {
		return uintptr(binary.NativeEndian.Uint32(b))
	}
	return uintptr(binary.NativeEndian.Uint64(b))
}

// copyBytes copies n bytes out of SQLite's memory, which is reused by the next call.
func copyBytes(p uintptr, n int32) []byte {
	if p == 0 || n <= 0 {
		return []byte{}
	}
	return bytes.Clone(libc.GoBytes(p, int(n)))
}
