package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// supervised runs a supervisor until the test ends, or until stop is called.
func supervised(t *testing.T, spec Spec, opts Options) (s *Supervisor, stop func()) {
	t.Helper()
	s, err := New(spec, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	stop = func() {
		cancel()
		wait(t, "Run returns", ended)
	}
	t.Cleanup(stop)
	return s, stop
}

func TestATargetIsUsableAtOnceAndItsStatusSaysWhatRuns(t *testing.T) {
	opts, log := testOptions(t)
	spec := testSpec(t, "good")
	s, stop := supervised(t, spec, opts)
	if err := put(t.Context(), s, "k"); err != nil {
		t.Fatal(err)
	}
	st := s.Status()
	want, err := Hash(t.Context(), spec.Path)
	if err != nil {
		t.Fatal(err)
	}
	if st.State != StateReady || st.Name != "test" || st.Version != "1.2.3" || formatChecksum(st.SHA256) != want || st.Restarts != 0 || st.Description == "" {
		t.Errorf("got %+v", st)
	}
	if err := syscall.Kill(st.PID, 0); err != nil {
		t.Errorf("no process %d: %v", st.PID, err)
	}
	stop()
	if st := s.Status(); st.State != StateStopped || st.PID != 0 {
		t.Errorf("after the stop: %+v", st)
	}
	if err := put(t.Context(), s, "k"); !errors.Is(err, sdk.PluginGone) {
		t.Errorf("after the stop a call answers %v", err)
	}
	wantEmpty(t, opts.RuntimeDir)
	if log.count("[INFO]  plugin: plugin started") != 1 || log.count("[INFO]  plugin: plugin stopped") != 1 || log.count("[ERROR]") != 0 {
		t.Error("want one INFO line for the start, one for the stop, and no error")
	}
	if log.count("reason=\"stopped by the host\"") != 1 {
		t.Error("the stop gives no reason")
	}
}

func TestAPluginThatIsKilledIsStartedAgainAndTheStatusSaysHowItEnded(t *testing.T) {
	opts, log := testOptions(t)
	s, _ := supervised(t, testSpec(t, "good"), opts)
	if err := put(t.Context(), s, "k"); err != nil {
		t.Fatal(err)
	}
	first := s.Status().PID
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another process serves", func() bool {
		st := s.Status()
		return st.State == StateReady && st.PID != first
	})
	if err := put(t.Context(), s, "k"); err != nil {
		t.Fatal(err)
	}
	st := s.Status()
	if st.Restarts != 1 || st.LastExit.Reason != "was ended by signal 9 (killed)" || st.LastExit.At.IsZero() {
		t.Errorf("got %+v", st)
	}
	if log.count("[ERROR] plugin: plugin ended") != 1 {
		t.Error("the end is not in the log")
	}
}

func TestAPanicOfAPluginIsInTheStatusAndAtErrorInTheLog(t *testing.T) {
	opts, log := testOptions(t)
	s, _ := supervised(t, testSpec(t, "good"), opts)
	if err := put(t.Context(), s, "x/panic"); !errors.Is(err, sdk.PluginGone) {
		t.Fatalf("got %v", err)
	}
	eventually(t, "it is started again", func() bool { return s.Status().Restarts == 1 })
	tail := strings.Join(s.Status().LastExit.Stderr, "\n")
	if !strings.Contains(tail, "panic: a goroutine of the plugin") || !strings.Contains(tail, "main_test.go") {
		t.Errorf("the last lines are %q", tail)
	}
	if log.count("[ERROR] plugin: panic: a goroutine of the plugin") != 1 {
		t.Error("the panic is not logged at error")
	}
}

func TestAHungPluginIsReapedAndTheNextPutWorks(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Hung = 5 * time.Second
	s, _ := supervised(t, testSpec(t, "good"), opts)
	if err := put(t.Context(), s, "x/stop"); !errors.Is(err, sdk.PluginHung) {
		t.Fatalf("got %v, want PluginHung", err)
	}
	if err := put(t.Context(), s, "k"); err != nil {
		// The call may still meet the process that is about to be reaped; it then loses it.
		if !errors.Is(err, sdk.PluginHung) && !errors.Is(err, sdk.PluginGone) {
			t.Fatal(err)
		}
		if err := put(t.Context(), s, "k"); err != nil {
			t.Fatal(err)
		}
	}
	if reason := s.Status().LastExit.Reason; reason != "hung during put and was killed" {
		t.Errorf("the status says %q", reason)
	}
}

// A call that waits for its stream has nobody at the other end who could say a word, so no pace of events tells that the plugin hangs.
func TestAPluginThatAllowsNoStreamIsReapedAsHungAndLeftAloneInTheEnd(t *testing.T) {
	for _, op := range []string{"put", "get", "fetch", "list", "delete"} {
		t.Run(op, func(t *testing.T) {
			opts, _ := testOptions(t)
			opts.Timeouts.Hung, opts.Timeouts.Stall, opts.Restart.Crashes = 2*time.Second, 30*time.Second, 2
			if op == "delete" { // which has no events, and may take as long as bytes may stand still
				opts.Timeouts.Stall = time.Second
			}
			spec := rogueSpec(t, "shut")
			s, _ := supervised(t, spec, opts)
			hung := 0
			for {
				err := call(t.Context(), s, op, spooled(t, spec.Spool, nil))
				if permanent(err) {
					break
				}
				if errors.Is(err, sdk.PluginHung) {
					hung++
				} else if !errors.Is(err, sdk.PluginGone) { // it may meet the process that is about to be reaped
					t.Fatalf("got %v", err)
				}
			}
			if st := s.Status(); hung < opts.Restart.Crashes || st.Restarts != opts.Restart.Crashes-1 || st.LastExit.Reason != "hung during "+strings.Replace(op, "fetch", "get", 1)+" and was killed" {
				t.Errorf("%d times hung, %d restarts, %q", hung, st.Restarts, st.LastExit.Reason)
			}
		})
	}
}

// permanent says that the chain of err tells a caller to give up.
func permanent(err error) bool {
	e, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err)
	return ok && e.Permanent()
}

func TestATargetThatCrashesTooOftenIsBrokenUntilItIsReset(t *testing.T) {
	opts, log := testOptions(t)
	opts.Restart.Crashes = 3
	s, stop := supervised(t, testSpec(t, "good"), opts)
	breakIt := func() {
		for {
			err := put(t.Context(), s, "x/exit") // may meet a process that has just died of the one before
			if !errors.Is(err, sdk.PluginGone) {
				t.Fatalf("got %v", err)
			}
			if permanent(err) {
				return
			}
		}
	}
	breakIt()
	if restarts := s.Status().Restarts; restarts != opts.Restart.Crashes-1 {
		t.Errorf("broken after %d restarts", restarts)
	}
	err := put(t.Context(), s, "k")
	var e *sdk.Error
	if !errors.As(err, &e) || e.Code != sdk.PluginGone || !permanent(err) {
		t.Fatalf("got %v", err)
	}
	for _, text := range []string{"is broken: exited with code 3", "last words", "cairn checkpoint push", "cairn pipeline start"} {
		if all := err.Error() + ": " + e.Hint; strings.Count(all, text) != 1 {
			t.Errorf("%q does not say %q once", all, text)
		}
	}
	s.Reset()
	if err := put(t.Context(), s, "k"); err != nil {
		t.Fatal(err)
	}
	breakIt()
	if log.count("crashed too often") != 2 {
		t.Error("breaking is not logged")
	}
	stop()
	if err := put(t.Context(), s, "k"); !errors.Is(err, sdk.PluginGone) || !permanent(err) {
		t.Errorf("after the stop: %v", err)
	}
}

func TestATargetWhosePluginIsMissingServesOnceItIsThere(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Restart.Crashes, opts.Timeouts.Ready = 2, 10*time.Millisecond
	spec := testSpec(t, "good")
	binary := spec.Path
	spec.Path = filepath.Join(shortDir(t), "cairn-plugin-test")
	s, _ := supervised(t, spec, opts)
	eventually(t, "it was tried often", func() bool { return s.Status().Restarts > 20 })
	err := put(t.Context(), s, "k")
	if !errors.Is(err, sdk.PluginGone) || permanent(err) || strings.Count(err.Error(), "there is no such file") != 1 {
		t.Errorf("got %v", err)
	}
	if st := s.Status().State; st != StateDegraded {
		t.Errorf("it is %s", st)
	}
	if err := os.Symlink(binary, spec.Path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it serves", func() bool { return put(t.Context(), s, "k") == nil })
}

// The reaper closes the connection, and a call that has not yet seen it break is then cancelled by gRPC.
func TestACallThatMeetsTheClosingOfADeadConnectionIsGoneNotCancelled(t *testing.T) {
	opts, _ := testOptions(t)
	p := begun(t, testSpec(t, "exit7"))
	wait(t, "it ends", p.exited)
	s := &session{opts: opts, proc: p, out: p.out}
	s.opts.Timeouts = opts.Timeouts.withDefaults()
	cancelled := &sdk.Error{Code: sdk.Cancelled}
	if err := s.settle(t.Context(), "put", "k", cancelled); !errors.Is(err, sdk.PluginGone) || errors.Is(err, sdk.Cancelled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.settle(ctx, "put", "k", cancelled); !errors.Is(err, sdk.Cancelled) {
		t.Errorf("cancelled by its caller: %v", err)
	}
}

func TestAFailedStartTellsTheLastLineOnce(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Ready = 10 * time.Millisecond
	s, _ := supervised(t, testSpec(t, "exit7"), opts)
	eventually(t, "a start has failed", func() bool { return s.Status().Restarts > 0 })
	err := put(t.Context(), s, "k")
	if err == nil || strings.Count(err.Error(), "cannot find my licence") != 1 || strings.Count(err.Error(), "run the file by hand") != 1 {
		t.Errorf("got %v", err)
	}
}

func TestACallWaitsForAProcessNoLongerThanItsContext(t *testing.T) {
	opts, _ := testOptions(t)
	s, _ := supervised(t, testSpec(t, "deaf"), opts)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := put(ctx, s, "k")
	if !errors.Is(err, sdk.PluginGone) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is starting") {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := put(ctx, s, "k"); !errors.Is(err, sdk.Cancelled) || errors.Is(err, sdk.PluginGone) {
		t.Errorf("a caller that gave up gets %v", err)
	}
}

func TestACallWithoutADeadlineWaitsForReadyOnly(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Ready = 20 * time.Millisecond
	s, err := New(testSpec(t, "good"), opts) // nobody calls Run
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.List(t.Context(), sdk.ListRequest{}) {
		if !errors.Is(err, sdk.PluginGone) || !strings.Contains(err.Error(), "has not been started") {
			t.Errorf("got %v", err)
		}
	}
}

func TestASupervisorRunsOnce(t *testing.T) {
	opts, _ := testOptions(t)
	s, _ := supervised(t, testSpec(t, "good"), opts)
	if err := put(t.Context(), s, "k"); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("a second Run is accepted")
	}
}

func TestBadPluginsAreAMatterOfTheirOwnTargets(t *testing.T) {
	opts, _ := testOptions(t)
	bad, _ := supervised(t, testSpec(t, "exit0"), opts)
	good, _ := supervised(t, testSpec(t, "good"), opts)
	if err := put(t.Context(), good, "k"); err != nil {
		t.Error(err)
	}
	if st := bad.Status().State; st == StateReady {
		t.Errorf("the bad one is %s", st)
	}
}

// The pauses are real ones of the default policy, in simulated time.
func TestTheStartsOfABadTargetAreSpacedAndNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var starts []time.Duration
		s, err := New(Spec{Target: "t", Path: "/x"}, Options{
			RuntimeDir: "/tmp/ph-none", Now: time.Now, Jitter: func() float64 { return 0.999999999 },
		})
		if err != nil {
			t.Fatal(err)
		}
		s.start = func(context.Context, Spec, Options) (*session, sdk.Description, error) {
			starts = append(starts, time.Since(began).Round(time.Second))
			return nil, sdk.Description{}, errors.New("no luck")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := fmt.Sprint(starts[:8]); got != "[0s 2s 6s 14s 30s 1m2s 2m2s 3m2s]" || s.Status().State != StateDegraded {
			t.Errorf("starts at %v, now %s", got, s.Status().State)
		}
		made := len(starts)
		if made < 24*60 || made > 24*60+10 {
			t.Errorf("%d starts in a day", made)
		}
		if next := time.Until(s.Status().NextTry); next <= 0 || next > time.Minute {
			t.Errorf("the next try is in %v", next)
		}
		s.Reset() // need not wait
		synctest.Wait()
		if len(starts) != made+1 {
			t.Errorf("Reset in a pause: %d starts", len(starts))
		}
		cancel()
		synctest.Wait()
		if s.Status().State != StateStopped {
			t.Errorf("now %s", s.Status().State)
		}
	})
}
