package syncer

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/cairnsync/cairn/sdk"
)

// Store is a target as the syncer uses it. A plugin process behind the RPC implements it with Fetch done on the plugin's side; Direct
// makes one of any target in this process.
type Store interface {
	sdk.Target

	// Fetch does a Get and writes the bytes into f from off on, without passing them through the caller. It returns how many bytes the
	// range had: fewer than asked for when the object ends before. On an error the content of that part of f is not defined. f is a
	// file of the spool, which stays open until Fetch has returned.
	Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error)
}

// Direct makes a Store of a target in this process, held to the contract by sdk.Guard.
func Direct(t sdk.Target) Store { return directStore{sdk.Guard(t)} }

type directStore struct{ sdk.Target }

var _ Store = directStore{}

func (s directStore) Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error) {
	got, err := s.Get(ctx, req)
	if err != nil {
		return 0, err
	}
	defer got.Body.Close() // nothing was written through it
	n, err := io.Copy(io.NewOffsetWriter(f, off), got.Body)
	if err != nil {
		return n, fmt.Errorf("fetch %s: %w", req.Key, err)
	}
	return n, nil
}

// readObject reads a small object whole. More than limit bytes, as the store declares them or as they come, are sdk.Corrupt.
func readObject(ctx context.Context, s sdk.Target, key string, limit int64) ([]byte, error) {
	return readRange(ctx, s, sdk.GetRequest{Key: key, Length: -1}, limit)
}

// readRange is readObject for a part of one.
func readRange(ctx context.Context, s sdk.Target, req sdk.GetRequest, limit int64) ([]byte, error) {
	key := req.Key
	got, err := s.Get(ctx, req)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close() // nothing was written through it
	if got.Size > limit {
		return nil, &sdk.Error{Code: sdk.Corrupt, Op: "get", Key: key, Err: fmt.Errorf("%d bytes, at most %d can be right", got.Size, limit)}
	}
	content, err := io.ReadAll(io.LimitReader(got.Body, got.Size+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if int64(len(content)) != got.Size {
		return nil, &sdk.Error{Code: sdk.Corrupt, Op: "get", Key: key, Err: fmt.Errorf("%d bytes came of %d that were declared", len(content), got.Size)}
	}
	return content, nil
}

// The most objects that a listing is taken to have. Of commits, epochs and gc objects the deadline of a listing lets no more through from any
// real store; of probes a thousandth would do.
const (
	maxListed       = 1 << 20
	maxListedProbes = 100_000
)

// listed is a listing that ends: one that goes on beyond so many objects is sdk.Corrupt, and not collected until the memory is gone.
func listed(ctx context.Context, s sdk.Target, req sdk.ListRequest, most int) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		seen := 0
		for obj, err := range s.List(ctx, req) {
			if seen++; err == nil && seen > most {
				err = &sdk.Error{Code: sdk.Corrupt, Op: "list", Key: req.Prefix, Err: fmt.Errorf("more than %d objects, which cannot be right", most)}
			}
			if !yield(obj, err) || err != nil {
				return
			}
		}
	}
}

// isNotFound says that an object is proven absent. Every other error, a 403 among them, leaves that open.
func isNotFound(err error) bool { return err != nil && sdk.CodeOf(err) == sdk.NotFound }
