package syncer

import (
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
			if rep, err := w.Verify(t.Context(), VerifyRequest{}); err != nil || len(rep.Problems) != 0 {
				t.Errorf("given up: %+v, %v", rep, err)
			}
		})
	}
}
