package pluginhost

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"pgregory.net/rapid"

	"github.com/cairnsync/cairn/sdk"
)

func TestASecretIsFoundInEveryFormThatProgramsPrint(t *testing.T) {
	const secret = "p/w+0rd &\"quoted\"\tü"
	m := newMask([]string{secret})
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"as it is":                    "key is " + secret + "!",
		"in JSON":                     string(quoted),
		"in Go syntax":                strconv.Quote(secret),
		"in a query":                  "https://x/?sig=" + url.QueryEscape(secret) + "&y=1",
		"in a path":                   "/" + url.PathEscape(secret) + "/",
		"in base64":                   base64.StdEncoding.EncodeToString([]byte(secret)),
		"in base64 for URLs":          base64.URLEncoding.EncodeToString([]byte(secret)),
		"in hex":                      hex.EncodeToString([]byte(secret)),
		"in an HTTP basic header":     "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+secret)),
		"in another basic header":     "Basic " + base64.StdEncoding.EncodeToString([]byte("users:"+secret+":x")),
		"in one with a third remnant": "Basic " + base64.StdEncoding.EncodeToString([]byte("userss:"+secret)),
	} {
		got := m.text(text)
		if !strings.Contains(got, dots) || strings.Contains(got, secret) || len(got) >= len(text)+len(dots) {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
	for _, harmless := range []string{"", "nothing here", "p/w+0rd"} {
		if got := m.text(harmless); got != harmless {
			t.Errorf("%q became %q", harmless, got)
		}
	}
}

// Each row is what a program of another language prints of the secret.
func TestASecretIsFoundAsOtherLanguagesWriteIt(t *testing.T) {
	for secret, forms := range map[string][]string{
		"motdepassé/€😀": {
			`motdepass\u00e9/\u20ac\ud83d\ude00`, `motdepass\u00E9/\u20AC\uD83D\uDE00`, // Python; .NET
			`motdepass\u00e9\/\u20ac\ud83d\ude00`,     // PHP
			`motdepass\u00e9/\u20ac\U0001f600`,        // Go's %+q
			"motdepass%C3%A9%2F%E2%82%AC%F0%9F%98%80", // encodeURIComponent
			"motdepass%c3%a9%2f%e2%82%ac%f0%9f%98%80", // C# of old
			"motdepass%C3%A9/%E2%82%AC%F0%9F%98%80",   // Python
		},
		"a b&c<d>'(e)!*": {
			`a b&c<d>'(e)!*`, `a b\u0026c\u003cd\u003e'(e)!*`,
			"a%20b%26c%3Cd%3E'(e)!*", "a%20b%26c%3cd%3e'(e)!*", // encodeURIComponent
			"a%20b%26c%3Cd%3E%27%28e%29%21%2A", // RFC 3986
			"a+b%26c%3cd%3e%27%28e%29%21%2a",
		},
		"quote\"and\\<back>": {`quote\"and\\<back>`, `quote\"and\\\u003cback\u003e`},
	} {
		m := newMask([]string{secret})
		for _, form := range forms {
			if got := m.text("before " + form + " after"); got != "before "+dots+" after" {
				t.Errorf("%q became %q", form, got)
			}
		}
	}
}

func TestAKeyInPEMIsFoundLineByLine(t *testing.T) {
	m := newMask([]string{"-----BEGIN KEY-----\nMIIEvQIBADANBgkq\r\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"})
	if got := m.text("second line: hkiG9w0BAQEFAASC, first: MIIEvQIBADANBgkq"); got != "second line: "+dots+", first: "+dots {
		t.Errorf("got %q", got)
	}
}

func TestASecretIsMaskedWholeWhereAnotherIsItsBeginning(t *testing.T) {
	m := newMask([]string{"minio", "minioadmin", "abc", "", "of"})
	if got := m.text("minioadmin minio abc of"); got != dots+" "+dots+" abc of" {
		t.Errorf("got %q", got)
	}
	if newMask([]string{"abc", ""}) != nil {
		t.Error("a secret of three bytes makes a mask")
	}
}

func TestASecretThatALineIsCutInIsMaskedByItsFirstPart(t *testing.T) {
	m := newMask([]string{"correct horse battery"})
	for given, want := range map[string]string{
		"it is correct hor":                  "it is " + dots,
		"it is cor":                          "it is cor", // fewer bytes than any secret that is masked
		"it is correct horse battery and co": "it is " + dots + " and co",
		"":                                   "",
	} {
		if got := m.cut(given); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}

func TestAMaskedErrorIsStillWhatItWas(t *testing.T) {
	m := newMask([]string{"hunter2hunter2"})
	err := fmt.Errorf("outer hunter2hunter2: %w", errors.Join(
		&sdk.Error{Code: sdk.Exists, Op: "put", Key: "hunter2hunter2", Hint: "use hunter2hunter2", Provider: "hunter2hunter2", Err: fmt.Errorf("with hunter2hunter2: %w", io.ErrUnexpectedEOF)},
		io.ErrClosedPipe,
	))
	got := m.error(err)
	if !errors.Is(got, sdk.Exists) || !errors.Is(got, io.ErrUnexpectedEOF) || !errors.Is(got, io.ErrClosedPipe) {
		t.Errorf("the chain is lost: %v", got)
	}
	var e *sdk.Error
	if !errors.As(got, &e) || strings.Contains(fmt.Sprintf("%+v %v %s %s", *e, got, e.Hint, e.Err), "hunter2") {
		t.Errorf("it is still there: %+v, %v", e, got)
	}
	if m.error(nil) != nil || m.error(io.EOF) != io.EOF || (*mask)(nil).error(err) != err {
		t.Error("an error without a secret is changed")
	}
}

func TestOfAnEnvironmentAllButPlainSettingsIsSecret(t *testing.T) {
	for name, row := range map[string]struct{ value, secret string }{
		"HTTPS_PROXY":                    {"http://proxy:3128", ""},
		"HTTP_PROXY":                     {"http://me:pass!word@proxy:3128", "pass!word"},
		"NODE_PATH":                      {"/opt/modules", ""},
		"GOMEMLIMIT":                     {"1000000000", ""},
		"TZ":                             {"UTC", ""},
		"AWS_SECRET_ACCESS_KEY":          {"/wJalrXUtnFEMI/K7MDENG", "/wJalrXUtnFEMI/K7MDENG"},
		"GOOGLE_APPLICATION_CREDENTIALS": {"/etc/gcs.json", "/etc/gcs.json"},
		"TOKEN_FILE":                     {"/etc/token", ""},
		"SAS":                            {"https://x.blob/c?sig=abcdef", "https://x.blob/c?sig=abcdef"},
		"ANYTHING":                       {"some longer words", "some longer words"},
		"API_TOKEN":                      {"12345678", "12345678"},
	} {
		got := secretsOf(Spec{Env: map[string]string{name: row.value}, Secrets: []string{"of the config"}})
		want := []string{"of the config"}
		if row.secret != "" {
			want = append(want, row.secret)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s=%s: secrets %q, want %q", name, row.value, got, want)
		}
	}
}

// Whatever a secret looks like and wherever a plugin's line holds it, the log and the crash report do not.
func TestNoLineThatHoldsASecretShowsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[ -~]{8,40}`).Draw(t, "secret")
		around := rapid.StringMatching(`[ -~]{0,20}`).Draw(t, "around")
		line := around + secret + around
		if rapid.Bool().Draw(t, "json") {
			quoted, err := json.Marshal(map[string]any{"@level": "info", "@message": line, "field": secret, "deep": []string{line}})
			if err != nil {
				t.Fatal(err)
			}
			line = string(quoted)
		}
		var log strings.Builder
		o := newOutput(hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace, JSONFormat: rapid.Bool().Draw(t, "format")}), newMask([]string{secret}), time.Now)
		o.stderr(strings.NewReader(line + "\n"))
		for name, text := range map[string]string{"log": log.String(), "tail": strings.Join(o.tail.last(10), "\n")} {
			for _, form := range formsOf(secret) {
				if strings.Contains(text, form) && !strings.Contains(strings.ReplaceAll(around+around, secret, ""), form) {
					t.Fatalf("%s shows %q: %q", name, form, text)
				}
			}
		}
	})
}
