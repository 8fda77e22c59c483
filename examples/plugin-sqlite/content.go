package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/cairnsync/cairn/sdk"
)

// content reads one object, a row at a time. It is for one goroutine, and holds a connection until it is closed.
type content struct {
	ctx  context.Context
	key  string
	rows *sql.Rows
	skip int64  // bytes of the next chunk that lie before the range
	rest []byte // of the chunk at hand
	left int64  // bytes that are still owed
}

var _ io.ReadCloser = (*content)(nil)

// begin reads the first row, which says whether there is such an object and how large it is.
func (c *content) begin() (size int64, err error) {
	found, err := c.next(&size)
	if err == nil && !found {
		err = sdk.NotFound
	}
	return size, err
}

// next takes the chunk of the next row, if there is one. The row of an object without a chunk to read has none.
func (c *content) next(size *int64) (bool, error) {
	if !c.rows.Next() {
		return false, errors.Join(c.rows.Err(), c.ctx.Err())
	}
	if err := c.rows.Scan(size, &c.rest); err != nil {
		return false, err
	}
	c.rest = c.rest[min(c.skip, int64(len(c.rest))):]
	c.skip = 0
	return true, nil
}

// Read yields what is left of the range.
func (c *content) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	if len(c.rest) == 0 {
		var size int64
		found, err := c.next(&size)
		if err == nil && (!found || len(c.rest) == 0) {
			err = fmt.Errorf("%d bytes are missing: %w", c.left, sdk.Corrupt)
		}
		if err != nil {
			return 0, explain(c.ctx, "get", c.key, err)
		}
	}
	n := copy(p, c.rest[:min(int64(len(c.rest)), c.left)])
	c.rest = c.rest[n:]
	c.left -= int64(n)
	return n, nil
}

// Close gives the connection back.
func (c *content) Close() error { return c.rows.Close() }
