package sqlcircuit

import (
	"errors"
	"strings"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// stmt is one prepared statement of a conn, used by the goroutine that uses the conn.
type stmt struct {
	c *conn
	p uintptr
}

// prepare compiles the first statement of sql and returns what follows it. The stmt is nil when sql begins with nothing but space and
// comments.
func (c *conn) prepare(sql string) (s *stmt, rest string, err error) {
	if strings.ContainsRune(sql, 0) {
		return nil, "", errors.New("the text holds a NUL character")
	}
	text, err := libc.CString(sql)
	if err != nil {
		return nil, "", err
	}
	defer libc.Xfree(c.tls, text)
	out, err := c.malloc(2 * pointerSize)
	if err != nil {
		return nil, "", err
	}
	defer libc.Xfree(c.tls, out)
	if rc := sqlite3.Xsqlite3_prepare_v2(c.tls, c.db, text, -1, out, out+pointerSize); rc != sqlite3.SQLITE_OK {
		return nil, "", c.failure(rc)
	}
	rest = sql[readPointer(out+pointerSize)-text:]
	if p := readPointer(out); p != 0 {
		s = &stmt{c: c, p: p}
	}
	return s, rest, nil
}

// prepareOne compiles sql, which must be exactly one statement.
func (c *conn) prepareOne(sql string) (*stmt, error) {
	s, rest, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("there is no statement, only space and comments")
	}
	for rest != "" {
		var next *stmt
		next, rest, err = c.prepare(rest)
		if next == nil && err == nil {
			continue
		}
		if next != nil {
			next.finalize()
		}
		s.finalize()
		return nil, errors.New("there is more than one statement")
	}
	return s, nil
}

// finalize frees the statement. It repeats the error of the last step, which has been told already.
func (s *stmt) finalize() {
	if s != nil && s.p != 0 {
		sqlite3.Xsqlite3_finalize(s.c.tls, s.p)
		s.p = 0
	}
}

// step advances to the next row; false when the statement is done.
func (s *stmt) step() (bool, error) {
	switch rc := sqlite3.Xsqlite3_step(s.c.tls, s.p); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.failure(rc)
	}
}

// reset makes the statement ready for the next run. It repeats the error of the last step, which has been told already.
func (s *stmt) reset() { sqlite3.Xsqlite3_reset(s.c.tls, s.p) }

// run steps to the end, drops rows and resets.
func (s *stmt) run() error {
	for {
		row, err := s.step()
		if err != nil || !row {
			s.reset()
			return err
		}
	}
}

// runWith binds values to the parameters 1, 2, … and runs.
func (s *stmt) runWith(values ...any) error {
	if err := s.bind(values...); err != nil {
		return err
	}
	return s.run()
}

// bind sets the parameters 1, 2, …; SQLite keeps copies of them.
func (s *stmt) bind(values ...any) error {
	for i, value := range values {
		if err := s.bindOne(int32(i+1), value); err != nil {
			return err
		}
	}
	return nil
}

func (s *stmt) bindOne(i int32, value any) error {
	switch v := value.(type) {
	case int64:
		return s.check(sqlite3.Xsqlite3_bind_int64(s.c.tls, s.p, i, v))
	case string:
		return s.bindCopy(i, v, false)
	case []byte:
		return s.bindCopy(i, string(v), true)
	default:
		return errors.New("a value of a type that is never bound")
	}
}

func (s *stmt) bindCopy(i int32, v string, blob bool) error {
	p, err := libc.CString(v)
	if err != nil {
		return err
	}
	defer libc.Xfree(s.c.tls, p)
	transient := ^uintptr(0) // SQLITE_TRANSIENT: SQLite copies before it returns
	if blob {
		return s.check(sqlite3.Xsqlite3_bind_blob(s.c.tls, s.p, i, p, int32(len(v)), transient))
	}
	return s.check(sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, i, p, int32(len(v)), transient))
}

// bindStatic sets parameter i to the n bytes of text at p, which must outlive the run; i = 0 means that the statement has no such
// parameter.
func (s *stmt) bindStatic(i int32, p uintptr, n int) error {
	if i == 0 {
		return nil
	}
	return s.check(sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, i, p, int32(n), 0))
}

// parameters lists the names of the parameters, with their first character; "" for one without a name.
func (s *stmt) parameters() []string {
	names := make([]string, sqlite3.Xsqlite3_bind_parameter_count(s.c.tls, s.p))
	for i := range names {
		names[i] = libc.GoString(sqlite3.Xsqlite3_bind_parameter_name(s.c.tls, s.p, int32(i+1)))
	}
	return names
}

// readOnly says that the statement changes no database.
func (s *stmt) readOnly() bool { return sqlite3.Xsqlite3_stmt_readonly(s.c.tls, s.p) != 0 }

func (s *stmt) columns() int { return int(sqlite3.Xsqlite3_column_count(s.c.tls, s.p)) }

func (s *stmt) columnName(i int) string {
	return libc.GoString(sqlite3.Xsqlite3_column_name(s.c.tls, s.p, int32(i)))
}

func (s *stmt) integer(i int) int64 { return sqlite3.Xsqlite3_column_int64(s.c.tls, s.p, int32(i)) }

func (s *stmt) text(i int) string {
	p := sqlite3.Xsqlite3_column_text(s.c.tls, s.p, int32(i)) // before its length: the call may convert
	return string(copyBytes(p, sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))))
}

func (s *stmt) blob(i int) []byte {
	p := sqlite3.Xsqlite3_column_blob(s.c.tls, s.p, int32(i))
	return copyBytes(p, sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i)))
}

// value is column i as SQLite stores it: nil, int64, float64, string or []byte. Declared types play no part.
func (s *stmt) value(i int) any {
	switch sqlite3.Xsqlite3_column_type(s.c.tls, s.p, int32(i)) {
	case sqlite3.SQLITE_INTEGER:
		return s.integer(i)
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_column_double(s.c.tls, s.p, int32(i))
	case sqlite3.SQLITE_TEXT:
		return s.text(i)
	case sqlite3.SQLITE_BLOB:
		return s.blob(i)
	default:
		return nil
	}
}

func (s *stmt) check(rc int32) error {
	if rc != sqlite3.SQLITE_OK {
		return s.c.failure(rc)
	}
	return nil
}
