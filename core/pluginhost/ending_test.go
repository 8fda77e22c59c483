package pluginhost

import (
	"strings"
	"testing"
	"time"
)

// never is a timeout of which a test sees that it was not waited for.
const never = 10 * bound

func TestAPluginThatNeitherDrainsNorEndsIsTakenDownByTheDeadline(t *testing.T) {
	opts, log := testOptions(t)
	opts.Timeouts.Drain, opts.Timeouts.Term = never, never
	s, stop := supervised(t, rogueSpec(t, "stubborn"), opts)
	if err := put(t.Context(), s, "k"); err != nil {
		t.Fatal(err)
	}
	s.EndBy(opts.Now().Add(time.Second))
	stop()
	if log.count("[WARN]  plugin: plugin not drained: it did not answer in time") != 1 || log.count("[INFO]  plugin: plugin stopped") != 1 {
		t.Error("the log does not tell")
	}
}

// Each start of a host, and each check of a configuration, waited for SIGKILL twice, with no word.
func TestAProcessForOneQuestionIsNotWaitedForOnceItHasAnswered(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Drain, opts.Timeouts.Term = never, never
	spec := rogueSpec(t, "stubborn")
	for what, ask := range map[string]func() error{
		"describe": func() error { _, err := Describe(t.Context(), spec, opts); return err },
		"validate": func() error { return Validate(t.Context(), spec, opts) },
	} {
		answered := make(chan error, 1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			answered <- ask()
		}()
		wait(t, what+" returns", ended)
		if err := <-answered; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The answer was waited for as long as a step of the clean-up more, and the store was called unavailable.
func TestADrainThatIsNotAnsweredTakesItsTimeAndNoMore(t *testing.T) {
	opts, log := testOptions(t)
	opts.Timeouts.Drain, opts.Timeouts.Kill = 300*time.Millisecond, never
	store := open(t, rogueSpec(t, "mute"), opts)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		store.Close(t.Context())
	}()
	wait(t, "the plugin is taken down", closed)
	if log.count("plugin not drained: it did not answer in time; a call or its closing hangs") != 1 || strings.Contains(log.String(), "store unavailable") {
		t.Error("the log does not say who did not answer")
	}
}

func TestAShareOfWhatIsLeftIsNeverMoreThanTheStepMayTake(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	now := func() time.Time { return at }
	for _, row := range []struct {
		left, may, parts, want time.Duration
	}{
		{30 * time.Second, 10 * time.Second, 2, 10 * time.Second},
		{3 * time.Second, 10 * time.Second, 2, 1500 * time.Millisecond},
		{time.Second, 10 * time.Second, 1, time.Second},
		{-time.Hour, 10 * time.Second, 1, 0},
	} {
		if got := (haste{by: at.Add(row.left), now: now}).share(row.may, row.parts); got != row.want {
			t.Errorf("%+v: got %v", row, got)
		}
	}
	if late := (haste{by: at, now: now}); late.step(never) != leastStep || late.step(time.Millisecond) != time.Millisecond {
		t.Errorf("the clean-up gets %v", late.step(never))
	}
	if got := (haste{}).step(time.Hour); got != time.Hour {
		t.Errorf("without a deadline: %v", got)
	}
}
