package host

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/client"
)

// heldStore lets no pack be read before it is let go.
type heldStore struct {
	syncer.Store

	open <-chan struct{}
}

func (s heldStore) Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error) {
	select {
	case <-s.open:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return s.Store.Fetch(ctx, req, f, off)
}

func TestStatusTellsHowFarAVerificationIs(t *testing.T) {
	w := newWorld(t)
	open := make(chan struct{})
	h := w.start(conf{}, func(o *Options) {
		o.around = func(s syncer.Store) syncer.Store { return heldStore{s, open} }
	}).up()
	h.insert(0, 50)
	h.checkpoint()
	h.push()
	if v := h.view("p").Targets[0].Verifying; v != nil {
		t.Errorf("before it begins: %+v", v)
	}
	done := make(chan error, 1)
	go func() {
		views, err := h.Verify(t.Context(), "p", client.VerifyOptions{Deep: true})
		if err == nil && (len(views) != 1 || views[0].Proof == nil) {
			t.Errorf("verified %+v", views)
		}
		done <- err
	}()
	h.until("it reads", func() bool {
		v := h.view("p").Targets[0].Verifying
		return v != nil && v.Total > 0 && v.Done == 0 && v.Commit > 0
	})
	close(open)
	must(t, <-done)
	if v := h.view("p").Targets[0].Verifying; v != nil {
		t.Errorf("after its end: %+v", v)
	}
}

func TestASampleThatIsNoPartIsRefused(t *testing.T) {
	h := newWorld(t).start(conf{}).up()
	for _, sample := range []float64{math.NaN(), -0.1, 1.1} {
		_, err := h.Verify(t.Context(), "p", client.VerifyOptions{Sample: sample})
		var answered *client.Error
		if !errors.As(err, &answered) || answered.Code != client.CodeBadRequest {
			t.Errorf("sample %v: %v", sample, err)
		}
	}
}
