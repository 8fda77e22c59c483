package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

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
	for _, c := range []struct {
		name      string
		candidate Candidate
		missing   []string
	}{
		{"with settings", Candidate{Settings: []string{"url=x"}}, []string{"dir"}},
		{"with an element of a map", Candidate{Settings: []string{"url.x=y"}}, []string{"dir"}},
		{"with a file", Candidate{Config: "cairn.hcl"}, nil},
	} {
		hints, missing := c.candidate.Advice(errors.Join(missing, wrong))
		if !slices.Equal(hints, []string{"such as mem://"}) || !slices.Equal(missing, c.missing) {
			t.Errorf("%s: hints %q, missing %q", c.name, hints, missing)
		}
	}
}
