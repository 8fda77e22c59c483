package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

const twoLate = `
target "t" {
  plugin = "gone"
  config {
    path   = "/there"
    count  = 9007199254740993
    strict = true
    tags   = ["a", "bee-bee"]
    key    = env("KEY")
  }
}
target "u" {
  plugin = "slow"
  config { path = "/elsewhere" }
}
`

// An attacker's plugin that exited, or was silent, when it was asked what its targets take kept the whole host from starting.
func TestAHostStartsThoughAPluginCannotBeAskedWhatItTakes(t *testing.T) {
	text := twoLate + pipeline("p", "storage \"file\" {\nsync \"t\" {}\n}")
	if _, found := load(t, text); !found.HasErrors() {
		t.Error("a check lets it pass")
	}
	opts := options(t)
	opts.Start = true
	cfg, found := loadWith(t, text, opts)
	if found.HasErrors() {
		t.Fatal(found)
	}
	for _, say := range []string{`warning: `, `plugin "gone" cannot be asked what it takes`, `plugin "slow" cannot be asked`, "too late. Until it can, its targets do not work, and everything else does."} {
		if text := found.Error(); !strings.Contains(text, say) || strings.Contains(text, "s3cret") {
			t.Errorf("%s\ndoes not say %q, or a secret", text, say)
		}
	}
	body := cfg.Targets[0].Body
	if got, err := body.JSON(); err != nil || string(got) != `{"count":9007199254740993,"key":"s3cret","path":"/there","strict":true,"tags":["a","bee-bee"]}` {
		t.Errorf("the plugin gets %s, %v", got, err)
	}
	secrets := body.Secrets()
	if slices.Sort(secrets); !slices.Equal(secrets, []string{"/there", "a", "bee-bee", "s3cret"}) {
		t.Errorf("secrets %q", secrets)
	}
	for name, shown := range body.Redacted() {
		if shown != dots {
			t.Errorf("%s is shown as %v", name, shown)
		}
	}
}

// What cannot be evaluated is a fault whoever reads it, and does not show what is beside it.
func TestABodyThatIsTakenAsItIsWrittenIsEvaluated(t *testing.T) {
	opts := options(t)
	opts.Start = true
	text := "target \"t\" {\nplugin = \"gone\"\nconfig {\npath = env(\"NOPE\")\nother = null\n}\n}\n" + pipeline("p", `storage "file" {}`)
	_, found := loadWith(t, text, opts)
	for _, say := range []string{"environment variable NOPE is not set", "other is null"} {
		if !found.HasErrors() || !strings.Contains(found.Error(), say) {
			t.Errorf("%v\ndoes not say %q", found, say)
		}
	}
}

// A data_dir from which no program can run keeps every plugin from running: that is the host's own fault, and is told before it starts.
func TestAHostDoesNotStartWhereNoPluginCanRun(t *testing.T) {
	opts := options(t)
	opts.Start = true
	opts.Schema = func(Host, Plugin) (sdk.Schema, error) {
		return sdk.Schema{}, fmt.Errorf("start plugin: %w", &HostFaultError{errors.New("mounted noexec")})
	}
	if _, found := loadWith(t, twoLate+pipeline("p", `storage "file" {}`), opts); !found.HasFaults() || !strings.Contains(found.Error(), "mounted noexec") {
		t.Errorf("%v", found)
	}
}
