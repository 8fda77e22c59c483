package sdktest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

func lifeCases() []Case {
	return []Case{
		{"a plugin ends by itself, with status 0, when it is told to (SIGTERM)", Process, endsOnTerm},
		{"a plugin that is told to end while it works ends all the same, and keeps what it has stored", Process, endsBusy},
		{"SIGINT is not for a plugin: it goes on", Process, ignoresInt},
		{"a plugin ends when its host is gone: when its standard input ends", Process, endsWithoutHost},
		{"standard output holds the handshake and nothing else", Process, quietStdout},
		{"Drain ends what is running, refuses what comes and counts what is left", Process, drains},
		{"calls that the host cancels have ended in the plugin soon", Process, cancelledCallsEnd},
		{"a plugin that was stopped and goes on finishes its calls", Process, stopAndGo},
		{"a call that takes long says so at least once a second", Process, longPutIsHeard},
	}
}

func endsOnTerm(ctx context.Context, e *Env) error {
	idle := func(i Instance) error {
		if err := i.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return e.awaitExit(i, endsWhenTold, "SIGTERM")
	}
	if err := e.withInstance(ctx, 0, idle); err != nil {
		return fmt.Errorf("not configured: %w", err)
	}
	return e.withConfigured(ctx, func(i Instance) error {
		if err := e.works(ctx, i, "before-term"); err != nil {
			return err
		}
		return idle(i)
	})
}

// busyPuts has several workers put ranges of s through i until a Put fails, as begun will see to, or busyFor is over; it gives the names
// that Put answered nil for.
func busyPuts(ctx context.Context, e *Env, i Instance, s *stock, n int64, begun func(done int64)) (stored [][]string) {
	const workers = 6
	ctx, cancel := context.WithTimeout(ctx, e.bound(busyFor))
	defer cancel()
	stored = make([][]string, workers)
	var done atomic.Int64
	_ = together(workers, func(worker int) error {
		for round := 0; ; round++ {
			name := fmt.Sprintf("busy-%d-%d", worker, round)
			if err := s.put(ctx, e, i, name, busyAt(worker, round), n); err != nil {
				return err // the end that the caller has brought about
			}
			stored[worker] = append(stored[worker], name)
			begun(done.Add(1))
		}
	})
	return stored
}

// busyAt is where in its stock the object of a worker and round begins.
func busyAt(worker, round int) int64 { return int64(worker)*4096 + int64(round%64)*64 }

const (
	busyStock = 3<<20 + 6*4096 + 64*64
	busyFor   = 2 * time.Minute // a slow store is not yet a bad one
)

// checkBusy reads what busyPuts left: what was stored is there, and whatever is there is whole.
func (e *Env) checkBusy(ctx context.Context, s *stock, n int64, stored [][]string) error {
	listed, err := e.list(ctx, sdk.ListRequest{Prefix: e.key("busy-")})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, name := range trim(e, listed) {
		there[name] = true
		var worker, round int
		if _, err := fmt.Sscanf(name, "busy-%d-%d", &worker, &round); err != nil {
			return fmt.Errorf("an object that nobody stored is listed: %s", name)
		}
		if err := s.holds(ctx, e, e.Target, name, busyAt(worker, round), n); err != nil {
			return err
		}
	}
	for _, names := range stored {
		for _, name := range names {
			if !there[name] {
				return fmt.Errorf("the Put of %s returned nil, and it is not there", name)
			}
		}
	}
	return e.remove(ctx, trim(e, listed)...)
}

func endsBusy(ctx context.Context, e *Env) error {
	const n = 3 << 20
	return e.withStock(busyStock, 1, func(s *stock) error {
		return e.withConfigured(ctx, func(i Instance) error {
			signalled := errors.New("not eight Puts of 3 MiB were done in time")
			stored := busyPuts(ctx, e, i, s, n, func(done int64) {
				if done == 8 {
					signalled = i.Signal(syscall.SIGTERM)
				}
			})
			if signalled != nil {
				return signalled
			}
			if err := e.awaitExit(i, endsWhenTold, "SIGTERM during Puts"); err != nil {
				return err
			}
			return e.checkBusy(ctx, s, n, stored)
		})
	})
}

func ignoresInt(ctx context.Context, e *Env) error {
	return e.withConfigured(ctx, func(i Instance) error {
		for round := range 3 {
			if err := i.Signal(syscall.SIGINT); err != nil {
				return err
			}
			if err := e.works(ctx, i, fmt.Sprintf("after-int-%d", round)); err != nil {
				return fmt.Errorf("after SIGINT: %w", err)
			}
		}
		if e.ends(i, 100*time.Millisecond) {
			_, how := i.Exit()
			return fmt.Errorf("after SIGINT the process %s", how)
		}
		return nil
	})
}

func endsWithoutHost(ctx context.Context, e *Env) error {
	hangUp := func(i Instance) error {
		if err := i.HangUp(); err != nil {
			return err
		}
		if !e.ends(i, endsWithHost) {
			return fmt.Errorf("the process is still there %s after its standard input ended", endsWithHost)
		}
		return nil
	}
	if err := e.withInstance(ctx, 0, hangUp); err != nil {
		return fmt.Errorf("not configured: %w", err)
	}
	return e.withConfigured(ctx, hangUp)
}

func quietStdout(ctx context.Context, e *Env) error {
	return e.withConfigured(ctx, func(i Instance) error {
		if err := e.works(ctx, i, "quiet"); err != nil {
			return err
		}
		_ = i.Configure(ctx, e.Process.Config()) // refused, as another case says; here for what is printed about it
		if err := i.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		e.ends(i, endsWhenTold)
		if lines := i.Stdout(); len(lines) > 0 {
			return fmt.Errorf("%d lines were written on standard output, the first is %.200q; write logs to standard error (in Go, to Env.Log)", len(lines), lines[0])
		}
		return nil
	})
}

func drains(ctx context.Context, e *Env) error {
	const n = 3 << 20
	return e.withStock(busyStock, 1, func(s *stock) error {
		return e.withConfigured(ctx, func(i Instance) error {
			drained := make(chan error, 1)
			stored := busyPuts(ctx, e, i, s, n, func(done int64) {
				if done == 4 {
					running, err := i.Drain(ctx, e.bound(answersSoon))
					if err == nil && running != 0 {
						err = fmt.Errorf("%d calls are still running %s after Drain", running, answersSoon)
					}
					drained <- err
				}
			})
			select {
			case err := <-drained:
				if err != nil {
					return fmt.Errorf("drain: %w", err)
				}
			default:
				return errors.New("not four Puts of 3 MiB were done in time")
			}
			_, err := e.through(i).store(ctx, sdk.PutRequest{Key: e.key("late")}, []byte("x"))
			if err := wantCode(err, sdk.Unavailable, "put after Drain"); err != nil {
				return err
			}
			return e.checkBusy(ctx, s, n, stored)
		})
	})
}

// cancelledCallsEnd looks into the plugin by its own account: a Drain tells how many calls have not ended.
func cancelledCallsEnd(ctx context.Context, e *Env) error {
	const n = 16 << 20
	return e.withStock(n+8*4096, 1, func(s *stock) error {
		return e.withConfigured(ctx, func(i Instance) error {
			if err := s.put(ctx, e, i, "read", 0, n); err != nil {
				return err
			}
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			err := e.promptly("calls that were cancelled", func() {
				_ = together(16, func(worker int) error { // they end as they like
					if worker%2 == 0 {
						return s.put(short, e, i, fmt.Sprintf("cancelled-%d", worker), int64(worker/2)*4096, n)
					}
					return s.holds(short, e, i, "read", 0, n)
				})
			})
			if err != nil {
				return err
			}
			if running, err := i.Drain(ctx, e.bound(answersSoon)); err != nil || running > 0 {
				return fmt.Errorf("%d calls are still running in the plugin %s after the host has cancelled them (error: %v)", running, answersSoon, err)
			}
			return nil
		})
	})
}

func stopAndGo(ctx context.Context, e *Env) error {
	const n = 8 << 20
	return e.withStock(n, 1, func(s *stock) error {
		return e.withConfigured(ctx, func(i Instance) error {
			done := make(chan error, 1)
			if err := i.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			go func() { done <- s.put(ctx, e, i, "stopped", 0, n) }()
			timer := time.NewTimer(time.Second)
			defer timer.Stop()
			var err error
			select {
			case err = <-done:
				err = errors.Join(errors.New("a Put is answered while the process is stopped"), err)
			case <-timer.C:
			}
			if err := errors.Join(err, i.Signal(syscall.SIGCONT)); err != nil {
				return err
			}
			if err := <-done; err != nil {
				return fmt.Errorf("after SIGSTOP and SIGCONT: %w", err)
			}
			return s.holds(ctx, e, e.Target, "stopped", 0, n)
		})
	})
}

// How longPutIsHeard makes a store slow: it lets the process run for a moment, and stops it for a longer one. A fast store needs the short
// moment to take long enough; in it a slow runtime on a busy machine may not come to send an event, so what is not heard gets more hearings
// with the longer one.
const (
	heardPatience = 3 * time.Second // an event a second, and room for a busy machine
	slowRun       = 3 * time.Millisecond
	kindRun       = 24 * time.Millisecond
	slowStop      = 250 * time.Millisecond
	kindHearings  = 3 // a machine that is busy once may be busy twice
)

func longPutIsHeard(ctx context.Context, e *Env) error {
	err := heardAt(ctx, e, slowRun)
	if err == nil || sdk.CodeOf(err) != sdk.PluginHung {
		return err
	}
	for range kindHearings {
		if heardAt(ctx, e, kindRun) == nil {
			return nil
		}
	}
	return err // also when the second was over too soon to tell
}

func heardAt(ctx context.Context, e *Env, run time.Duration) error {
	const n, puts = 48 << 20, 4
	patience := e.bound(heardPatience)
	return e.withStock(n+puts*4096, 1, func(s *stock) error {
		return e.withInstance(ctx, patience, func(i Instance) error {
			if err := i.Configure(ctx, e.Process.Config()); err != nil {
				return err
			}
			done := make(chan error, 1)
			go func() {
				done <- together(puts, func(worker int) error {
					return s.put(ctx, e, i, fmt.Sprintf("slow-%d", worker), int64(worker)*4096, n)
				})
			}()
			long, err := drawOut(i, run, patience, done)
			if err != nil {
				return fmt.Errorf("puts that take long: %w", err)
			}
			if !long {
				return skipped("this store is done with 192 MiB before a Put has taken long enough to be silent")
			}
			return nil
		})
	})
}

// drawOut slows the process down for twice the patience, or until done, and then lets it finish. long tells whether it took more than the
// patience.
func drawOut(i Instance, run, patience time.Duration, done <-chan error) (long bool, err error) {
	silent, over := time.NewTimer(patience), time.NewTimer(2*patience)
	defer silent.Stop()
	defer over.Stop()
	pace := time.NewTimer(0)
	defer pace.Stop()
	for stopped := false; ; {
		select {
		case err := <-done:
			return long, errors.Join(err, i.Signal(syscall.SIGCONT))
		case <-silent.C:
			long = true
		case <-over.C:
			return true, errors.Join(i.Signal(syscall.SIGCONT), <-done)
		case <-pace.C:
			signal, wait := syscall.SIGSTOP, slowStop
			if stopped {
				signal, wait = syscall.SIGCONT, run
			}
			if err := i.Signal(signal); err != nil {
				return long, errors.Join(err, <-done)
			}
			stopped = !stopped
			pace.Reset(wait)
		}
	}
}
