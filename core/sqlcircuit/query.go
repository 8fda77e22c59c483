package sqlcircuit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cairnsync/cairn/core/circuit"
)

// maxQueries is how many queries run at once; the next one waits.
const maxQueries = 8

// Blob is a value of a query that is bytes; as JSON it is {"base64": "…"}.
type Blob []byte

// MarshalJSON writes the bytes in base64.
func (b Blob) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Base64 []byte `json:"base64"`
	}{b})
}

// query is one running query on a connection of its own.
type query struct {
	c        *Circuit
	finished chan struct{} // closed when the rows have been read

	mu     sync.Mutex // held while the statement steps; guards what follows
	conn   *conn
	stmt   *stmt
	names  []string
	begun  bool  // somebody reads the rows
	reason error // why it was ended from outside
}

// Query runs one SELECT, EXPLAIN or VALUES on the state as of now and streams its rows: integers are int64, reals float64 (infinite ones the texts
// "Infinity" and "-Infinity", which JSON numbers cannot be), texts string, blobs Blob. It holds a read transaction until the last row is
// read, at most 60 s: then it ends with ErrQueryTime. Faults of the text are ErrBadQuery.
func (c *Circuit) Query(ctx context.Context, text string) (iter.Seq2[[]circuit.Column, error], error) {
	if err := c.life.enter(); err != nil {
		return nil, err
	}
	started := false
	defer func() {
		if !started {
			c.life.leave()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.query, ErrQueryTime)
	if err := c.takeSlot(ctx); err != nil {
		cancel()
		return nil, err
	}
	q := &query{c: c, finished: make(chan struct{})}
	if err := q.prepare(text); err != nil {
		q.release()
		cancel()
		return nil, err
	}
	started = true
	go func() {
		defer c.life.leave()
		defer cancel()
		q.watch(ctx)
	}()
	return q.rows, nil
}

// takeSlot waits until fewer than maxQueries run and none must wait for the WAL.
func (c *Circuit) takeSlot(ctx context.Context) error {
	select {
	case c.querySlots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.life.closing():
		return ErrNotRunning
	}
	err := c.enterQuery(ctx)
	if err != nil {
		<-c.querySlots
	}
	return err
}

func (q *query) prepare(text string) (err error) {
	if q.conn, err = q.c.openLive(openReadOnly); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	if err := q.conn.exec("PRAGMA query_only = 1"); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	if err := q.conn.authorize(queryAuthorizer); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	if q.stmt, err = q.conn.prepareOne(text); err != nil {
		return fmt.Errorf("%w: %w", ErrBadQuery, denied(err, "a query only reads"))
	}
	if !q.stmt.readOnly() {
		return fmt.Errorf("%w: a query only reads", ErrBadQuery)
	}
	if names := q.stmt.parameters(); len(names) > 0 {
		return fmt.Errorf("%w: it has a parameter (%s), and nothing to bind to it", ErrBadQuery, names[0])
	}
	for i := range q.stmt.columns() {
		name := q.stmt.columnName(i)
		if slices.Contains(q.names, name) {
			return fmt.Errorf("%w: two columns are named %q; rename one with AS", ErrBadQuery, name)
		}
		q.names = append(q.names, name)
	}
	return nil
}

// watch ends the query when its time is over, its client has gone or the circuit closes. An interrupt that comes between two steps is
// lost, so it is repeated until the statement is free.
func (q *query) watch(ctx context.Context) {
	select {
	case <-q.finished:
		q.release()
		return
	case <-ctx.Done():
	case <-q.c.life.closing():
	}
	reason := ErrNotRunning
	if ctx.Err() != nil {
		reason = context.Cause(ctx)
	}
	for !q.mu.TryLock() {
		q.conn.interrupt()
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
	}
	q.reason = reason
	q.mu.Unlock()
	q.release()
}

// rows is the sequence that Query returns; it can be read once.
func (q *query) rows(yield func([]circuit.Column, error) bool) {
	if !q.begin() {
		yield(nil, errors.New("the rows of this query have been read"))
		return
	}
	defer close(q.finished)
	for {
		row, err := q.next()
		if err != nil {
			yield(nil, err)
			return
		}
		if row == nil || !yield(row, nil) {
			return
		}
	}
}

func (q *query) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := !q.begun
	q.begun = true
	return first
}

// next returns nil after the last row.
func (q *query) next() ([]circuit.Column, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reason != nil {
		return nil, q.reason
	}
	found, err := q.stmt.step()
	if err != nil {
		return nil, q.failure(err)
	}
	if !found {
		return nil, nil
	}
	row := make([]circuit.Column, len(q.names))
	for i, name := range q.names {
		row[i] = circuit.Column{Name: name, Value: plain(q.stmt.value(i))}
	}
	return row, nil
}

// failure waits for the watcher's reason when the step was interrupted: it is about to be set.
func (q *query) failure(err error) error {
	var e *sqliteError
	if !errors.As(err, &e) || e.code&0xff != sqlite3.SQLITE_INTERRUPT {
		return fmt.Errorf("%w: %w", ErrBadQuery, err)
	}
	for q.reason == nil {
		q.mu.Unlock()
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
		q.mu.Lock()
	}
	return q.reason
}

func plain(value any) any {
	switch v := value.(type) {
	case []byte:
		return Blob(v)
	case float64:
		if math.IsInf(v, 0) {
			return map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0]
		}
	}
	return value
}

// release ends the read transaction and lets a fold that waited for it begin.
func (q *query) release() {
	q.mu.Lock()
	q.stmt.finalize()
	if q.conn != nil {
		_ = q.conn.close() // a reader has written nothing
	}
	q.mu.Unlock()
	<-q.c.querySlots
	q.c.leaveQuery()
}

// queryAuthorizer lets a query read tables, and the schema through the table-valued pragmas that only describe it.
func queryAuthorizer(_ *libc.TLS, _ uintptr, action int32, a1, a2, _, _ uintptr) int32 {
	switch action {
	case sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE:
		return sqlite3.SQLITE_OK
	case sqlite3.SQLITE_FUNCTION:
		if libc.GoString(a2) != "load_extension" {
			return sqlite3.SQLITE_OK
		}
	case sqlite3.SQLITE_PRAGMA:
		describing := []string{"table_list", "table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
		if slices.Contains(describing, libc.GoString(a1)) {
			return sqlite3.SQLITE_OK
		}
	}
	return sqlite3.SQLITE_DENY
}
