package syncer

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/sdk"
)

// probing asks the store for its rights: all of them, or with readOnly only what can be known without writing.
type probing func(ctx context.Context, readOnly bool) ProbeReport

// tryRights is the probing of a worker's jobs: with their retries, in their turn, counted in their records.
func (w *Worker) tryRights(ctx context.Context, readOnly bool) ProbeReport {
	p := newProber(remote{calls: w.calls, store: w.cfg.Store, prefix: w.cfg.Prefix}, w.cfg.Writer.ID)
	if readOnly {
		return p.look(ctx)
	}
	return p.run(ctx)
}

// qualify finds out, once a session and before anything is claimed, whether the store keeps what the protocol stands on. What was found out in
// an earlier run does not count: rights are taken away and given, and a store may be another one behind the same name. A store that does not answer is no
// verdict: the job fails as any other call of it would have.
func (s *session) qualify(ctx context.Context) error {
	if s.probed {
		return nil
	}
	report := s.probe(ctx, false)
	s.rights = &report
	verdict := report.Judge(s.fencing)
	s.logRights(report, verdict)
	if verdict.Use == UseUnknown {
		return fmt.Errorf("find out what the store allows: %w", verdict.cause)
	}
	if err := verdict.Refusal(s.target); err != nil {
		return err
	}
	s.probed, s.plain = true, report.Conditional.State != RightOK
	return nil
}

// lookRefused names the right whose lack kept the session from looking, where that can be known without writing: whose the repository is, or
// whether there is one, is not known.
func (s *session) lookRefused(ctx context.Context, err error) error {
	if !errors.Is(err, sdk.PermissionDenied) {
		return err
	}
	report := s.probe(ctx, true)
	if refusal := report.Judge(s.fencing).Refusal(s.target); refusal != nil {
		s.rights = &report
		return refusal
	}
	return err
}

// logRights logs what was found, once a probe.
func (s *session) logRights(r ProbeReport, v Verdict) {
	keys := []any{
		"target", s.target, "use", v.Use, "read", r.Read.State, "write", r.Write.State, "list", r.List.State, "delete", r.Delete.State,
		"conditional", r.Conditional.State,
	}
	if r.Skew != nil {
		keys = append(keys, "clock_ahead", r.Skew.Ahead, "within", r.Skew.Within)
	}
	s.log.Info("store probed", keys...)
	for _, warning := range Warnings(s.fencing, &r) {
		s.log.Warn("target is limited", "target", s.target, "limit", warning)
	}
}
