package host

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
)

func TestSettingsBecomeTheConfigurationThatTheSchemaWants(t *testing.T) {
	schema := sdk.Schema{Attributes: []sdk.Attribute{
		{Name: "path", Type: sdk.TypeString},
		{Name: "key", Type: sdk.TypeSecret},
		{Name: "every", Type: sdk.TypeDuration},
		{Name: "limit", Type: sdk.TypeSize},
		{Name: "create", Type: sdk.TypeBool},
		{Name: "depth", Type: sdk.TypeInt},
		{Name: "hosts", Type: sdk.TypeList},
		{Name: "labels", Type: sdk.TypeMap},
	}}
	for _, c := range []struct{ name, settings, want string }{
		{"none", "", `{}`},
		{"texts", "path=/a=b key=k every=10s limit=16MiB", `{"every":"10s","key":"k","limit":"16MiB","path":"/a=b"}`},
		{"values", "create=true depth=-3", `{"create":true,"depth":-3}`},
		{"collections", "hosts=a hosts=b labels.x=1 labels.y.z=2", `{"hosts":["a","b"],"labels":{"x":"1","y.z":"2"}}`},
		{"the last of two", "path=a path=b", `{"path":"b"}`},
		{"an empty one", "path=", `{"path":""}`},
	} {
		body, err := settingsJSON(schema, strings.Fields(c.settings))
		if err != nil || string(body) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, body, err, c.want)
		}
	}
	for _, wrong := range []string{"path", "nope=1", "create=perhaps", "depth=1.5"} {
		if body, err := settingsJSON(schema, []string{wrong}); err == nil || !strings.Contains(err.Error(), "setting") {
			t.Errorf("%s: %s, %v", wrong, body, err)
		}
	}
}

// What `plugin check --set key=…` gives is as secret as what a configuration file gives.
func TestTheSecretsOfSettingsReachTheMask(t *testing.T) {
	about := sdk.Description{Name: "p", Schema: sdk.Schema{Attributes: []sdk.Attribute{
		{Name: "path", Type: sdk.TypeString}, {Name: "key", Type: sdk.TypeSecret}, {Name: "token", Type: sdk.TypeSecret},
	}}}
	spec, err := Candidate{Settings: []string{"path=/a", "key=hush=hush", "token=t0ken"}}.spec(about, "", LoadOptions{})
	if err != nil || strings.Join(spec.Secrets, " ") != "hush=hush t0ken" {
		t.Errorf("secrets %q, %v", spec.Secrets, err)
	}
}

func TestATranscriptKeepsWhatThePluginSaysAndNothingElse(t *testing.T) {
	said := &transcript{}
	log := said.logger().Named("plugin").With("target", "t")
	log.Warn("opened", "path", "/x", "stream", "stderr")
	log.Debug("hello", "stream", "stdout")
	log.Warn("plugin clean-up", "error", "of the host")
	if have := strings.Join(said.Said(), "\n"); have != "opened target=t path=/x\nhello target=t" {
		t.Errorf("said %q", have)
	}
	if have := said.Stdout(); len(have) != 1 || have[0] != "hello" {
		t.Errorf("stdout %q", have)
	}
	for range 3 {
		log.Log(hclog.Info, strings.Repeat("x", transcriptBytes/2), "stream", "stderr")
	}
	if n := len(said.Said()); n > 3 {
		t.Errorf("%d lines of a plugin that never stops are kept", n)
	}
}
