package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cairnsync/cairn/sdk"
)

func rogueSpec(t *testing.T, behaviour string) Spec {
	t.Helper()
	spec := testSpec(t, "rogue")
	spec.Env[behaviourVar] = behaviour
	spec.Path = planted(t, "cairn-plugin-rogue", fmt.Sprintf("#!/bin/sh\nexec %d>&1\nexec %s\n", rogueStdout, spec.Path), 0o700)
	return spec
}

// call makes one call of the store by its name; a get is read to its end.
func call(ctx context.Context, s store, op string, f *os.File) (err error) {
	switch op {
	case "put":
		err = put(ctx, s, "k")
	case "fetch":
		_, err = s.Fetch(ctx, sdk.GetRequest{Key: "k", Length: -1}, f, 0)
	case "list":
		for _, err = range s.List(ctx, sdk.ListRequest{}) {
		}
	case "delete":
		err = s.Delete(ctx, []string{"k"})
	case "get":
		var res sdk.GetResult
		if res, err = s.Get(ctx, sdk.GetRequest{Key: "k", Length: -1}); err == nil {
			defer res.Body.Close()
			_, err = fmt.Fscanf(res.Body, "%99s", new(string)) // reads on until the end
		}
	}
	return err
}

// wantReadable demands that a text can be shown: bounded, on one line, nothing for a terminal to act on.
func wantReadable(t *testing.T, text string) {
	t.Helper()
	if len(text) > 64<<10 || strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) >= 0 {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}

func TestAnAnswerThatBreaksTheProtocolFailsItsCallAndNothingElse(t *testing.T) {
	for _, row := range []struct {
		behaviour, op string
		code          sdk.Code // meaningless where says is ""
		says          string   // "" = the call succeeds
	}{
		{"chatty", "put", 0, ""},    // events after Done are not read
		{"flood", "put", 0, ""},     // 5,000 events are read slowly
		{"backwards", "put", 0, ""}, // a digest of three bytes is none
		{"empty", "put", sdk.Internal, "without saying that it is done"},
		{"hint", "put", sdk.Internal, "the plugin answers"},
		{"escape", "put", sdk.Throttled, `\x1b[2J\r\nsuccess`},
		{"unknown", "put", sdk.Internal, "m"},
		{"gone", "put", sdk.Internal, "m"},
		{"bare", "put", sdk.Internal, "the plugin answers"},
		{"undecodable", "put", sdk.Internal, "unmarshal"},
		{"huge", "get", sdk.Corrupt, "no object of ours is larger"},
		{"huge", "fetch", sdk.Corrupt, "no object of ours is larger"},
		{"long", "get", sdk.Corrupt, ""},
		{"short", "get", sdk.Corrupt, "3 bytes came"},
		{"other", "get", sdk.Corrupt, "not those that the plugin read"},
		{"overlong", "get", sdk.Corrupt, ""},
		{"unopened", "get", sdk.Internal, "before it says how many"},
		{"absent", "fetch", sdk.Corrupt, "the spool file holds 0 of the 5 bytes"},
		{"unordered", "list", sdk.Internal, `lists "a" after "b"`},
		{"escape", "list", 0, ""}, // no key of ours: left out
		{"negative", "list", sdk.Internal, "size of -1"},
		{"unended", "list", sdk.Internal, "without saying that it is complete"},
		{"stranger", "delete", sdk.Internal, "not asked to delete"},
	} {
		t.Run(row.behaviour+" "+row.op, func(t *testing.T) {
			opts, log := testOptions(t)
			spec := rogueSpec(t, row.behaviour)
			s := open(t, spec, opts)
			f, err := os.Create(filepath.Join(spec.Spool, "f"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			err = call(t.Context(), s, row.op, f)
			switch {
			case row.says == "" && row.code == 0:
				if err != nil {
					t.Errorf("got %v", err)
				}
			case err == nil || sdk.CodeOf(err) != row.code || !strings.Contains(err.Error(), row.says):
				t.Errorf("got %v, want %v with %q", err, row.code, row.says)
			default:
				wantReadable(t, err.Error())
				var e *sdk.Error
				if errors.As(err, &e) {
					wantReadable(t, e.Hint)
				}
			}
			if log.count("\x1b") > 0 {
				t.Error("an escape reaches the log")
			}
			for _, op := range []string{"put", "get", "list", "delete"} { // the process and its connection are as good as before
				if op == row.op {
					continue
				}
				if err := call(t.Context(), s, op, nil); errors.Is(err, sdk.PluginGone) || errors.Is(err, sdk.PluginHung) {
					t.Errorf("then %s: %v", op, err)
				}
			}
		})
	}
}

func TestAnEndlessCallEndsWithItsCaller(t *testing.T) {
	opts, _ := testOptions(t)
	s := open(t, rogueSpec(t, "endless"), opts)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := put(ctx, s, "k"); err == nil || errors.Is(err, sdk.PluginGone) || errors.Is(err, sdk.PluginHung) {
		t.Errorf("an endless put ends with %v", err)
	}
	if err := s.Delete(t.Context(), []string{"k"}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestAPluginThatNeverAnswersIsGivenUpAtEachStepOfItsStart(t *testing.T) {
	for _, row := range []struct {
		behaviour, step string
		patience        time.Duration // for the steps before that one too
		start           func(context.Context, Spec, Options) error
	}{
		{"never-describes", "describe", 300 * time.Millisecond, func(ctx context.Context, s Spec, o Options) error { _, err := Describe(ctx, s, o); return err }},
		{"never-validates", "validate", 300 * time.Millisecond, Validate},
		{"never-configures", "configure", 5 * time.Second, func(ctx context.Context, s Spec, o Options) error { _, _, err := Open(ctx, s, o); return err }},
	} {
		opts, _ := testOptions(t)
		opts.Timeouts.Call, opts.Timeouts.Drain = row.patience, 100*time.Millisecond
		err := row.start(t.Context(), rogueSpec(t, row.behaviour), opts)
		wantStartError(t, err, CauseTimeout, "did not answer "+row.step+" within "+row.patience.String())
		if strings.Contains(err.Error(), "store unavailable") {
			t.Errorf("%v speaks of a store", err)
		}
	}
}

func TestADeleteThatIsNeverAnsweredIsNotTakenForAHungPlugin(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Stall, opts.Timeouts.Drain = 300*time.Millisecond, 100*time.Millisecond
	s := open(t, rogueSpec(t, "never-deletes"), opts)
	if err := s.Delete(t.Context(), []string{"k"}); !errors.Is(err, sdk.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestAPluginThatDoesNotKnowItselfIsToldApart(t *testing.T) {
	for behaviour, says := range map[string]string{
		"nameless": "does not say its name", "vaster": "larger than max", "garbled": "breaks the contract of plugins at describe",
		"confused": "the plugin answers Unknown without details: exception calling application",
	} {
		opts, _ := testOptions(t)
		_, err := Describe(t.Context(), rogueSpec(t, behaviour), opts)
		wantStartError(t, err, CauseBreach, says, "report this to its author")
	}
	opts, _ := testOptions(t)
	about, err := Describe(t.Context(), rogueSpec(t, "vast"), opts)
	if err != nil || len(about.Name) > 300 || len(about.Doc) > 10<<10 {
		t.Errorf("%d bytes of name, %d of doc, %v", len(about.Name), len(about.Doc), err)
	}
}

func TestAValidateThatFailsAsACallIsAFaultOfThePlugin(t *testing.T) {
	for behaviour, says := range map[string]string{"confused": "exception calling application", "panicking": "nil map"} {
		opts, _ := testOptions(t)
		err := Validate(t.Context(), rogueSpec(t, behaviour), opts)
		wantStartError(t, err, CauseBreach, "breaks the contract of plugins at validate", says, "report this to its author")
	}
}

// What a plugin says of itself is shown and nothing else hangs on it: a target goes by the name in its configuration.
func TestAPluginThatDescribesItselfDifferentlyEachTimeServesAllTheSame(t *testing.T) {
	opts, _ := testOptions(t)
	s, _ := supervised(t, rogueSpec(t, "protean"), opts)
	var names []string
	for range 2 {
		if err := put(t.Context(), s, "k"); err != nil {
			t.Fatal(err)
		}
		st := s.Status()
		names = append(names, st.Name)
		if st.Plugin != "test" || st.State != StateReady {
			t.Errorf("got %+v", st)
		}
		killed(t, s)
	}
	if names[0] == names[1] {
		t.Errorf("it is %s twice: the test shows nothing", names[0])
	}
}

func TestALieAboutTheSpoolIsNoProof(t *testing.T) {
	for _, behaviour := range []string{"liar", "elsewhere"} {
		opts, _ := testOptions(t)
		spec := rogueSpec(t, behaviour)
		_, _, err := Open(t.Context(), spec, opts)
		wantStartError(t, err, CauseConfig, "does not see the spool directory "+spec.Spool)
		if names := namesIn(t, spec.Spool); len(names) != 0 {
			t.Errorf("left in the spool: %v", names)
		}
	}
}

func TestAPluginThatCutsItsConnectionAndLivesIsReapedAndTheNextPutWorks(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Kill = time.Second
	s, _ := supervised(t, rogueSpec(t, "disconnects"), opts)
	if err := put(t.Context(), s, "k"); !errors.Is(err, sdk.PluginGone) {
		t.Fatalf("got %v", err)
	}
	eventually(t, "another process serves", func() bool { return s.Status().Restarts == 1 && s.Status().State == StateReady })
	if reason := s.Status().LastExit.Reason; reason != "lost its connection during put and was killed" && !strings.HasPrefix(reason, "exited") {
		t.Errorf("the status says %q", reason)
	}
	if err := s.Delete(t.Context(), []string{"k"}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
