package sdktest

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/cairnsync/cairn/sdk"
)

func getCases() []Case {
	return []Case{
		{"Get of a key that was never stored answers NotFound", Core, getAbsent},
		{"Get does not take the beginning of a key for an object", Core, getFolder},
		{"a range is exactly the bytes asked for", Core, getRanges},
		{"a range that reaches past the end yields what there is", Core, getPastEnd},
		{"a range that begins after the last byte is Corrupt", Core, getAfterEnd},
		{"Size is the number of bytes that Body yields", Core, getSize},
		{"a body may be closed before its end", Core, getClosedEarly},
		{"Gets of one object at the same time each yield all of it", Core, getConcurrently},
	}
}

func getAbsent(ctx context.Context, e *Env) error {
	if err := e.absent(ctx, "never"); err != nil {
		return err
	}
	_, _, err := get(ctx, e.Target, sdk.GetRequest{Key: e.key("never"), Offset: 5, Length: 10})
	return wantCode(err, sdk.NotFound, "get of a range of a key that was never stored")
}

func getFolder(ctx context.Context, e *Env) error {
	if err := e.put(ctx, "folder/object", []byte("x")); err != nil {
		return err
	}
	for _, name := range []string{"folder", "folder/objec", "folder/object-2", "folder/object.x"} {
		if err := e.absent(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func getRanges(ctx context.Context, e *Env) error {
	const size = 300_000 // more than one frame of the wire
	want := content(size, 1)
	if err := e.put(ctx, "ranges", want); err != nil {
		return err
	}
	for _, r := range [][2]int64{{0, 1}, {0, size}, {size - 1, 1}, {1, size - 2}, {4095, 4097}, {100, -1}, {size - 1, -1}} {
		offset, length := r[0], r[1]
		have, _, err := get(ctx, e.Target, sdk.GetRequest{Key: e.key("ranges"), Offset: offset, Length: length})
		if err != nil {
			return fmt.Errorf("get of %d bytes at %d: %w", length, offset, err)
		}
		end := offset + length
		if length == -1 {
			end = size
		}
		if !bytes.Equal(have, want[offset:end]) {
			return fmt.Errorf("get of %d bytes at %d: %d bytes that are not those", length, offset, len(have))
		}
	}
	return nil
}

func getPastEnd(ctx context.Context, e *Env) error {
	want := content(1000, 1)
	if err := e.put(ctx, "past", want); err != nil {
		return err
	}
	for _, offset := range []int64{0, 1, 999} {
		have, _, err := get(ctx, e.Target, sdk.GetRequest{Key: e.key("past"), Offset: offset, Length: 5000})
		if err != nil {
			return fmt.Errorf("get of 5000 bytes at %d of 1000: %w", offset, err)
		}
		if !bytes.Equal(have, want[offset:]) {
			return fmt.Errorf("get of 5000 bytes at %d of 1000: %d bytes; want the last %d", offset, len(have), 1000-offset)
		}
	}
	return nil
}

func getAfterEnd(ctx context.Context, e *Env) error {
	for _, c := range []struct {
		size           int
		offset, length int64
	}{{1000, 1000, 1}, {1000, 1000, -1}, {1000, 5000, 10}, {0, 0, 1}, {0, 1, -1}} {
		name := fmt.Sprintf("after-%d", c.size)
		if err := e.put(ctx, name, content(c.size, 1)); err != nil {
			return err
		}
		_, _, err := get(ctx, e.Target, sdk.GetRequest{Key: e.key(name), Offset: c.offset, Length: c.length})
		if err := wantCode(err, sdk.Corrupt, fmt.Sprintf("get of %d bytes at %d of %d", c.length, c.offset, c.size)); err != nil {
			return err
		}
	}
	return nil
}

func getSize(ctx context.Context, e *Env) error {
	if err := e.put(ctx, "sized", content(5000, 1)); err != nil {
		return err
	}
	for _, c := range []struct{ offset, length, want int64 }{{0, -1, 5000}, {0, 10, 10}, {4000, -1, 1000}, {4990, 100, 10}} {
		have, size, err := get(ctx, e.Target, sdk.GetRequest{Key: e.key("sized"), Offset: c.offset, Length: c.length})
		if err != nil {
			return fmt.Errorf("get of %d bytes at %d: %w", c.length, c.offset, err)
		}
		if size != c.want || int64(len(have)) != size {
			return fmt.Errorf("get of %d bytes at %d: %d declared, %d came; want %d", c.length, c.offset, size, len(have), c.want)
		}
	}
	return nil
}

func getClosedEarly(ctx context.Context, e *Env) error {
	want := content(sdk.MaxInline, 1)
	if err := e.put(ctx, "closed", want); err != nil {
		return err
	}
	for range 20 {
		res, err := e.Target.Get(ctx, whole(e.key("closed")))
		if err != nil {
			return err
		}
		if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
			return fmt.Errorf("read the first bytes: %w", err)
		}
		if err := res.Body.Close(); err != nil {
			return fmt.Errorf("close before the end: %w", err)
		}
	}
	return e.holds(ctx, e.Target, "closed", want)
}

func getConcurrently(ctx context.Context, e *Env) error {
	want := content(100_000, 1)
	if err := e.put(ctx, "shared", want); err != nil {
		return err
	}
	return together(16, func(int) error { return e.holds(ctx, e.Target, "shared", want) })
}
