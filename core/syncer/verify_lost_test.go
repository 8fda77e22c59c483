package syncer

import (
	"errors"
	"strings"
	"testing"
)

// CASES A9: what was committed and is gone is a problem of its own, whether or not a push has met it already, and at each depth.
func TestAVerificationMissesWhatThisHostHasCommitted(t *testing.T) {
	for name, noticed := range map[string]bool{"before a push has noticed": false, "after a push has noticed": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.worker()
			b.pushes(w, 1, 3)
			b.wipe()
			if noticed {
				if err := b.push(w, b.publish(4, b.filesOf(4)), Periodic); err == nil {
					t.Fatal("a push into nothing is called a success")
				}
				if s := w.Status(); s.Committed != nil || s.Lost == nil || s.Lost.Step != 3 {
					t.Fatalf("status %+v", s)
				}
			}
			for _, req := range []VerifyRequest{{}, {From: &Selector{}}, {Level: VerifyDeep}} {
				rep, err := w.Verify(t.Context(), req)
				if err != nil || len(rep.Problems) == 0 || rep.Proof != nil {
					t.Fatalf("%+v: %+v, %v", req, rep, err)
				}
				p := rep.Problems[len(rep.Problems)-1]
				if p.Kind != MissingCommit || !strings.Contains(p.What, "nor is any other") || !strings.Contains(p.Remedy, "cairn pipeline adopt") {
					t.Errorf("%+v: %+v", req, p)
				}
			}
			if err := w.Adopt(t.Context()); err != nil { // the operator gives it up
				t.Fatal(err)
			}
			if _, err := w.Verify(t.Context(), VerifyRequest{}); !errors.Is(err, ErrNoRepository) {
				t.Errorf("given up: %v", err)
			}
			_ = b.push(w, b.publish(5, b.filesOf(5)), Periodic) // the one that notices, where none has yet
			b.pushes(w, 6, 6)
			if rep, err := w.Verify(t.Context(), VerifyRequest{}); err != nil || rep.Proof == nil || w.Status().Damage != nil {
				t.Errorf("begun anew: %+v, %v, damage %+v", rep, err, w.Status().Damage)
			}
		})
	}
}
