package syncer

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// endless is a store whose listing never ends.
type endless struct{ sdk.Target }

func (endless) List(context.Context, sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		for yield(sdk.Object{Key: "k"}, nil) {
		}
	}
}

func TestAListingThatNeverEndsIsNotCollected(t *testing.T) {
	seen := 0
	var err error
	for _, err = range listed(t.Context(), endless{}, sdk.ListRequest{Prefix: "p"}, 1000) {
		seen++
	}
	if seen != 1001 || !errors.Is(err, sdk.Corrupt) {
		t.Errorf("after %d objects: %v", seen, err)
	}
}
