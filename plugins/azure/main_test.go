package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openTarget goes the way of a plugin: the configuration, then Open.
func openTarget(t *testing.T, cfg Config) sdk.Target {
	t.Helper()
	p := plugin()
	if err := p.Validate(cfg); err != nil {
		t.Fatal(err)
	}
	opened, err := p.Open(t.Context(), sdk.Env{Log: hclog.NewNullLogger()}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.(*target).Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// wantCode checks the code and that text, hint and attribute hold the words.
func wantCode(t *testing.T, err error, code sdk.Code, words ...string) *sdk.Error {
	t.Helper()
	var e *sdk.Error
	if !errors.As(err, &e) || sdk.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, word := range words {
		if all := e.Error() + " " + e.Hint + " " + e.Attribute; !strings.Contains(all, word) {
			t.Errorf("%q does not say %q", all, word)
		}
	}
	return e
}
