package sdk_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairnsync/cairn/sdk"
)

// CASES A56
func TestASizeIsReadInOneWayAndPrintedBackInCanonicalUnits(t *testing.T) {
	for text, want := range map[string]string{
		"64": "64B", "0": "0B", "64MiB": "64MiB", "64 MiB": "64MiB", "1024KiB": "1MiB", "1536MiB": "1536MiB", "2B": "2B", "2048": "2KiB",
		"2048B": "2KiB", "7EiB": "7EiB", "9223372036854775807": "9223372036854775807B",
	} {
		size, err := sdk.ParseSize(text)
		if err != nil || size.String() != want {
			t.Errorf("%q is %s, %v; want %s", text, size, err, want)
		}
	}
	for _, text := range []string{
		"64M", "64MB", "64K", "64kib", "64mib", "-1", "+1", "1e3", "1.5GiB", "", "MiB", "0x10", "1_000", "8EiB", "9223372036854775808",
		"99999999999999999999", "1 2", "12MiBB", "12MiB MiB", "½MiB",
	} {
		if size, err := sdk.ParseSize(text); err == nil {
			t.Errorf("%q is taken as %s", text, size)
		} else if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not name %q: %v", text, err)
		}
	}
}

// CASES A56
func TestEverySizePrintedIsReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := sdk.Size(rapid.Int64Range(0, math.MaxInt64).Draw(t, "size") >> rapid.IntRange(0, 62).Draw(t, "shift") << rapid.IntRange(0, 1).Draw(t, "even"))
		if size < 0 {
			size = -(size + 1)
		}
		text, err := json.Marshal(size)
		if err != nil {
			t.Fatal(err)
		}
		var back sdk.Size
		if err := json.Unmarshal(text, &back); err != nil || back != size {
			t.Fatalf("%d prints as %s, read back as %d, %v", int64(size), text, int64(back), err)
		}
	})
}

func TestASecretPrintsAsDotsHoweverItIsPrinted(t *testing.T) {
	const value = "hunter2"
	cfg := struct {
		Key sdk.Secret
		Ptr *sdk.Secret
	}{Key: value}
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	printed := []string{string(text), cfg.Key.String(), fmt.Sprint(cfg), fmt.Sprint(cfg.Key), fmt.Errorf("x %v", cfg.Key).Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%.2s"} {
		printed = append(printed, fmt.Sprintf(verb, cfg.Key), fmt.Sprintf(verb, cfg), fmt.Sprintf(verb, []sdk.Secret{cfg.Key}))
	}
	for _, p := range printed {
		if strings.Contains(p, value) || strings.Contains(p, fmt.Sprintf("%x", value)) || strings.Contains(p, "hu") {
			t.Errorf("a secret is printed: %s", p)
		}
	}
	if cfg.Key.Reveal() != value {
		t.Error("Reveal does not give the value")
	}
}
