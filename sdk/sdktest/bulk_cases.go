package sdktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

func bulkCases() []Case {
	return []Case{
		{"an object of MaxObject bytes is stored and read back byte for byte", Bulk, bulkLargest},
		{"sizes around the usual limits of stores make no difference", Bulk, bulkSizes},
		{"ranges of one large object can be read at the same time", Bulk, bulkRanges},
		{"64 Puts at the same time each store their own object", Bulk, bulkPuts},
		{"a large object that is replaced is never seen in part", Bulk, bulkReplaced},
		{"a large body that is damaged at its very end is never stored", Bulk, bulkDamaged},
		{"a large Put that is cancelled on its way stores the complete object or nothing", Bulk, bulkCancelled},
	}
}

func bulkLargest(ctx context.Context, e *Env) error { return e.roundTrip(ctx, sdk.MaxObject) }

func bulkSizes(ctx context.Context, e *Env) error {
	return e.roundTrip(ctx,
		sdk.MaxInline-1, sdk.MaxInline, sdk.MaxInline+1, // inside the call, or as a file
		4<<20-1, 4<<20, 4<<20+1, // gRPC's usual message, Azure's usual block
		5<<20-1, 5<<20, 5<<20+1, // S3's least part
		8<<20-1, 8<<20, 8<<20+1, // the part of many uploaders
		16<<20-1, 16<<20, 16<<20+1, // GCS's usual chunk, and a full pack of ours
		32<<20+1,
		sdk.MaxObject-1,
	)
}

// roundTrip stores an object of each size and reads it back, one at a time, and leaves none.
func (e *Env) roundTrip(ctx context.Context, sizes ...int64) error {
	for i, size := range sizes {
		err := e.withStock(size, uint64(i), func(s *stock) error {
			name := fmt.Sprintf("size-%d", size)
			if err := s.put(ctx, e, e.Target, name, 0, size); err != nil {
				return err
			}
			if err := s.holds(ctx, e, e.Target, name, 0, size); err != nil {
				return err
			}
			return e.remove(ctx, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Env) withStock(size int64, seed uint64, use func(s *stock) error) error {
	s, err := e.stock(size, seed)
	if err != nil {
		return err
	}
	defer s.close()
	return use(s)
}

func bulkRanges(ctx context.Context, e *Env) error {
	const size, readers = 32<<20 + 7, 16
	return e.withStock(size, 1, func(s *stock) error {
		if err := s.put(ctx, e, e.Target, "ranges", 0, size); err != nil {
			return err
		}
		return together(readers, func(worker int) error {
			for i := range 6 {
				off := int64(worker*(size/readers) + i*1_234_567)
				off %= size
				n := min(int64(1+i*800_000), size-off)
				req := sdk.GetRequest{Key: e.key("ranges"), Offset: off, Length: n}
				if err := s.answers(ctx, e.Target, req, off, n); err != nil {
					return fmt.Errorf("%d bytes at %d: %w", n, off, err)
				}
			}
			return nil
		})
	})
}

// bulkPuts is what a push does at its busiest, and more.
func bulkPuts(ctx context.Context, e *Env) error {
	sizes := []int64{1 << 20, 16 << 20, 3<<20 + 5, 2 << 20, 1<<20 + 1, 4<<20 - 1, 2<<20 + 3, 1 << 20}
	const writers, step = 64, 60_013 // so far is the beginning of one object from that of the next
	return e.withStock(16<<20+writers*step, 1, func(s *stock) error {
		object := func(i int) (name string, off, n int64) {
			return fmt.Sprintf("w/%02d", i), int64(i) * step, sizes[i%len(sizes)]
		}
		err := together(writers, func(i int) error {
			name, off, n := object(i)
			return s.put(ctx, e, e.Target, name, off, n)
		})
		if err != nil {
			return err
		}
		return together(8, func(reader int) error {
			for i := reader; i < writers; i += 8 {
				name, off, n := object(i)
				if err := s.holds(ctx, e, e.Target, name, off, n); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// bulkReplaced has one writer replace an object by ranges of one stock that differ in size and content.
func bulkReplaced(ctx context.Context, e *Env) error {
	const rounds, step = 6, 1 << 20
	size := func(round int) int64 { return 16<<20 + int64(round)*1000 }
	return e.withStock(16<<20+(rounds+1)*(step+1000), 1, func(s *stock) error {
		if err := s.put(ctx, e, e.Target, "replaced", 0, size(0)); err != nil {
			return err
		}
		var written atomic.Bool
		return together(3, func(worker int) error {
			if worker == 0 {
				defer written.Store(true)
				for round := 1; round <= rounds; round++ {
					if err := s.put(ctx, e, e.Target, "replaced", int64(round)*step, size(round)); err != nil {
						return err
					}
				}
				return nil
			}
			for !written.Load() {
				if err := e.seenWhole(ctx, s, "replaced", step, size); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// seenWhole reads the object, whose size tells which of the versions it must be.
func (e *Env) seenWhole(ctx context.Context, s *stock, name string, step int64, size func(round int) int64) error {
	res, err := e.Target.Get(ctx, whole(e.key(name)))
	if err != nil {
		return fmt.Errorf("read while it is replaced: %w", err)
	}
	defer res.Body.Close()
	round := (res.Size - size(0)) / 1000
	if round < 0 || size(int(round)) != res.Size {
		return fmt.Errorf("read while it is replaced: %d bytes, the size of no version", res.Size)
	}
	if err := sameBytes(res.Body, s.section(round*step, res.Size)); err != nil {
		return fmt.Errorf("read while it is replaced, version %d: %w", round, err)
	}
	return nil
}

func bulkDamaged(ctx context.Context, e *Env) error {
	const size = 16 << 20
	return e.withStock(size+1, 1, func(s *stock) error {
		sums, err := sumsOf(io.MultiReader(s.section(0, size-1), s.section(size, 1)))
		if err != nil {
			return err
		}
		body := sdk.NewBody(s.section(0, size), size, sums)
		if s.file != nil {
			body = sdk.FileBody(s.file, 0, size, sums)
		}
		for _, name := range []string{"damaged", "damaged-again"} {
			_, err := e.Target.Put(ctx, sdk.PutRequest{Key: e.key(name), Body: body, IfAbsent: name == "damaged-again", Class: sdk.ClassBulk})
			if err := wantCode(err, sdk.Corrupt, "put of a large body with a wrong last byte"); err != nil {
				return err
			}
			if err := e.absent(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// bulkCancelled cancels from early to late: with a store on this machine all of it takes a few dozen milliseconds.
func bulkCancelled(ctx context.Context, e *Env) error {
	const size = 32 << 20
	return e.withStock(size, 1, func(s *stock) error {
		body, err := s.body(0, size)
		if err != nil {
			return err
		}
		for i, after := range []time.Duration{1, 5, 15, 30, 60, 120} {
			name := fmt.Sprintf("cancelled-%d", i)
			short, cancel := context.WithTimeout(ctx, after*time.Millisecond)
			var putErr error
			late := e.promptly("a put of 32 MiB", func() {
				_, putErr = e.Target.Put(short, sdk.PutRequest{Key: e.key(name), Body: body, Class: sdk.ClassBulk})
			})
			cancel()
			if late != nil {
				return late
			}
			if err := e.wholeOrAbsent(ctx, s, name, size, putErr == nil); err != nil {
				return fmt.Errorf("a put that was cancelled after %d ms and answered %v: %w", after, putErr, err)
			}
		}
		return nil
	})
}

// wholeOrAbsent fails when an object is there in part, or when one that must be there is not.
func (e *Env) wholeOrAbsent(ctx context.Context, s *stock, name string, size int64, stored bool) error {
	err := s.holds(ctx, e, e.Target, name, 0, size)
	if errors.Is(err, sdk.NotFound) && !stored {
		return nil
	}
	return err
}
