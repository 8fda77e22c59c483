package syncer

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// Where fencing is advisory a store may take any number of creates of one key, and the last one stays. What replaces the answer Exists is
// looking: before, whether the key is taken, and after, whether what is there is ours. One writer alone is safe with that, as long as it
// never sends two contents to one key: a request that its caller gave up may land at any time, and must then change nothing. Two writers
// are told apart only when their writes do not overlap; docs/decisions/0006 says what remains.

// createUnfenced is create without trust in IfAbsent.
func (r remote) createUnfenced(ctx context.Context, key string, body sdk.Body) error {
	taken := &sdk.Error{Code: sdk.Exists, Op: "put", Key: key, Err: errors.New("seen by looking, for fencing is advisory")}
	_, err := r.get(ctx, key, repository.MaxCommit)
	switch {
	case err == nil:
		return taken
	case !isNotFound(err):
		return err
	}
	if err := r.put(ctx, key, sdk.ClassMeta, body); err != nil && !errors.Is(err, sdk.Exists) {
		return err
	}
	data, err := r.get(ctx, key, repository.MaxCommit)
	switch {
	case isNotFound(err):
		return &sdk.Error{Code: sdk.Unavailable, Op: "put", Key: key, Err: errors.New("what was written is not there when it is read back")}
	case err != nil:
		return fmt.Errorf("read back: %w", err)
	case repository.Sum(data) != body.SHA256():
		return taken
	}
	return nil
}

// sentCommit is a commit with the bytes that were sent for it.
type sentCommit struct {
	known

	text []byte
}
