package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// chunkSize is the content of one row: a call holds one at a time. Larger rows gain nothing, SQLite keeps them as chains of pages.
const chunkSize = 256 << 10

// target is one database. It holds no transaction between calls, so any number of processes may share the file.
type target struct {
	db  *database
	now func() time.Time
}

var (
	_ sdk.Target = (*target)(nil)
	_ io.Closer  = (*target)(nil)
)

func openTarget(cfg Config, now func() time.Time) (*target, error) {
	db, err := openDatabase(cfg)
	if err != nil {
		return nil, err
	}
	return &target{db: db, now: now}, nil
}

// Close lets go of the file.
func (t *target) Close() error { return t.db.close() }

// Put stores row and chunks in one transaction. Two Puts of one key meet at the unique key, whichever process they come from.
func (t *target) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	err := t.db.checkToPut(ctx)
	if err == nil && req.IfAbsent {
		err = t.lookBefore(ctx, req.Key)
	}
	if err == nil {
		err = t.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return t.put(ctx, tx, req) })
	}
	return sdk.PutResult{}, explain(ctx, "put", req.Key, err)
}

// lookBefore spares the queue of writers an answer that is known.
func (t *target) lookBefore(ctx context.Context, key string) error {
	var taken int
	err := t.db.reader.QueryRowContext(ctx, "SELECT 1 FROM objects WHERE key = ?", []byte(key)).Scan(&taken)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		return sdk.Exists
	}
	return err
}

func (t *target) put(ctx context.Context, tx *sql.Tx, req sdk.PutRequest) error {
	if !req.IfAbsent {
		if err := remove(ctx, tx, req.Key); err != nil {
			return err
		}
	}
	row, err := tx.ExecContext(ctx, "INSERT INTO objects (key, size, modified) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
		[]byte(req.Key), req.Body.Size(), t.now().UnixMilli())
	if err != nil {
		return err
	}
	if n, err := row.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, sdk.Exists)
	}
	id, err := row.LastInsertId()
	if err != nil {
		return err
	}
	return fill(ctx, tx, id, req.Body)
}

// fill writes the content row by row. Reader withholds the end of a damaged body, and then the transaction is rolled back.
func fill(ctx context.Context, tx *sql.Tx, id int64, body sdk.Body) error {
	insert, err := tx.PrepareContext(ctx, "INSERT INTO chunks (object, seq, data) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }() // it ends with its transaction anyway
	src := body.Reader()
	chunk := make([]byte, min(chunkSize, body.Size()))
	for seq, left := int64(0), body.Size(); ; seq++ {
		n, err := io.ReadFull(src, chunk[:min(chunkSize, left)])
		if err != nil {
			return err
		}
		if left -= int64(n); n > 0 {
			if _, err := insert.ExecContext(ctx, id, seq, chunk[:n]); err != nil {
				return err
			}
		}
		if left == 0 {
			// One read more: it answers for the digest of an empty body too.
			if _, err := io.Copy(io.Discard, src); err != nil {
				return err
			}
			return ctx.Err()
		}
	}
}

// Get reads an object by one statement, which sees one moment of the database however long it takes.
func (t *target) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	res, err := t.get(ctx, req)
	return res, explain(ctx, "get", req.Key, err)
}

func (t *target) get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	if err := t.db.check(ctx); err != nil {
		return sdk.GetResult{}, err
	}
	rows, err := t.db.reader.QueryContext(ctx, `SELECT size, data FROM objects LEFT JOIN chunks ON object = id AND seq >= ?
		WHERE key = ? ORDER BY seq`, req.Offset/chunkSize, []byte(req.Key))
	if err != nil {
		return sdk.GetResult{}, err
	}
	body := &content{ctx: ctx, key: req.Key, rows: rows, skip: req.Offset % chunkSize}
	size, err := body.begin()
	if err != nil {
		return sdk.GetResult{}, errors.Join(err, rows.Close())
	}
	_, body.left, err = req.Range(size)
	if err != nil {
		return sdk.GetResult{}, errors.Join(err, rows.Close())
	}
	return sdk.GetResult{Body: body, Size: body.left}, nil
}

// List follows the index of keys. No byte of a key is above 0x7e, so the keys with a prefix end before prefix + 0x7f.
func (t *target) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		stopped, err := t.list(ctx, req, func(obj sdk.Object) bool { return yield(obj, nil) })
		if err != nil && !stopped && !errors.Is(err, errUnmade) {
			yield(sdk.Object{}, explain(ctx, "list", req.Prefix, err))
		}
	}
}

func (t *target) list(ctx context.Context, req sdk.ListRequest, yield func(sdk.Object) bool) (stopped bool, err error) {
	if err := t.db.check(ctx); err != nil {
		return false, err
	}
	rows, err := t.db.reader.QueryContext(ctx, "SELECT key, size, modified FROM objects WHERE key >= ? AND key < ? AND key > ? ORDER BY key",
		[]byte(req.Prefix), []byte(req.Prefix+"\x7f"), []byte(req.StartAfter))
	if err != nil {
		return false, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what there was to tell
	for rows.Next() {
		var obj sdk.Object
		var modified int64
		if err := rows.Scan(&obj.Key, &obj.Size, &modified); err != nil {
			return false, err
		}
		if obj.Modified = time.UnixMilli(modified); !yield(obj) {
			return true, nil
		}
	}
	return false, errors.Join(rows.Err(), ctx.Err())
}

// Delete removes all keys or none.
func (t *target) Delete(ctx context.Context, keys []string) error {
	err := t.db.check(ctx)
	if err == nil {
		err = t.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return removeAll(ctx, tx, keys) })
	}
	if err == nil || errors.Is(err, errUnmade) {
		return nil
	}
	var failures []error
	for _, key := range keys {
		failures = append(failures, explain(ctx, "delete", key, err))
	}
	return errors.Join(failures...)
}

func removeAll(ctx context.Context, tx *sql.Tx, keys []string) error {
	for _, key := range keys {
		if err := remove(ctx, tx, key); err != nil {
			return err
		}
	}
	return nil
}

func remove(ctx context.Context, tx *sql.Tx, key string) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM chunks WHERE object = (SELECT id FROM objects WHERE key = ?)", []byte(key)); err != nil {
		return fmt.Errorf("delete content: %w", err)
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM objects WHERE key = ?", []byte(key))
	return err
}
