package host

import (
	"time"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// rightsView is nil for no probe.
func rightsView(r *syncer.ProbeReport) *client.RightsView {
	if r == nil {
		return nil
	}
	view := &client.RightsView{
		ProbedAt: r.At.UTC(), Read: rightView(r.Read), Write: rightView(r.Write), List: rightView(r.List), Delete: rightView(r.Delete),
		Conditional: rightView(r.Conditional),
	}
	if r.Skew != nil {
		view.ClockAhead, view.ClockWithin = inMillis(r.Skew.Ahead), inMillis(r.Skew.Within)
	}
	return view
}

func rightView(r syncer.Right) client.RightView {
	return client.RightView{State: string(r.State), Code: r.Code, Error: r.Error, Provider: r.Provider, Hint: r.Hint, Took: inMillis(r.Took)}
}

func inMillis(d time.Duration) string { return d.Round(time.Millisecond).String() }
