package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func TestAStoreThatCannotBeUsedEndsTheExamBeforeItBegins(t *testing.T) {
	for _, c := range []struct {
		op   string // of the call that fails
		code sdk.Code
		ends bool
	}{
		{"put", sdk.Unavailable, true},
		{"put", sdk.Unauthenticated, true},
		{"get", sdk.PermissionDenied, true},
		{"list", sdk.InvalidConfig, true},
		{"delete", sdk.PermissionDenied, true},
		{"put", sdk.NoSpace, true},
		{"put", sdk.Internal, false}, // the plugin's defect: the cases tell
		{"get", sdk.NotFound, false},
		{"none", sdk.Internal, false},
	} {
		store := sdktest.NewMem()
		target := &sdktest.Faulty{Target: store, Before: func(_ context.Context, call sdktest.Call) error {
			if call.Op == c.op {
				return c.code
			}
			return nil
		}}
		err := usable(t.Context(), target)
		if (err != nil) != c.ends {
			t.Errorf("%s answers %s: %v", c.op, c.code, err)
		}
		if err != nil && (!errors.Is(err, c.code) || !strings.HasSuffix(err.Error(), "; nothing was examined")) {
			t.Errorf("%s answers %s: %v", c.op, c.code, err)
		}
		for obj := range store.List(t.Context(), sdk.ListRequest{}) {
			if c.op != "delete" {
				t.Errorf("%s answers %s: %s is left", c.op, c.code, obj.Key)
			}
		}
	}
}

func TestARefusedConfigurationSaysWhatCanBeDone(t *testing.T) {
	missing := &sdk.Error{Code: sdk.InvalidConfig, Attribute: "dir", Err: errors.New("a value is required")}
	wrong := &sdk.Error{Code: sdk.InvalidConfig, Attribute: "url", Err: errors.New("not a URL"), Hint: "such as mem://"}
	err := errors.Join(missing, wrong)
	f := checkFlags{candidate: host.Candidate{Settings: []string{"url=x"}}}
	for _, c := range []struct {
		name, config, want string
	}{
		{"with settings", "", err.Error() + "\n  give --config FILE or --set dir=VALUE\n  such as mem://"},
		{"with a file", "cairn.hcl", err.Error() + "\n  such as mem://"},
	} {
		f.candidate.Config = c.config
		if have := f.advised(err); have.Error() != c.want || !errors.Is(have, sdk.InvalidConfig) {
			t.Errorf("%s: %q; want %q", c.name, have, c.want)
		}
	}
}

func TestAReasonThatManyCasesShareStandsOnce(t *testing.T) {
	r := report{}
	for range 5 {
		r.add(sdktest.Result{Case: sdktest.Case{Name: "a case", Level: sdktest.Process}, Skipped: "no second process"}, 0)
	}
	r.add(sdktest.Result{Case: sdktest.Case{Name: "alone", Level: sdktest.Core}, Skipped: "no second instance"}, 0)
	var text strings.Builder
	r.writeSkips(&text)
	if want := "skipped: [process] 5 cases: no second process\nskipped: [core] alone: no second instance\n"; text.String() != want {
		t.Errorf("%q; want %q", text.String(), want)
	}
}
