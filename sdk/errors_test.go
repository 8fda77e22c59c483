package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestAnErrorReadsAsOneSentence(t *testing.T) {
	for want, err := range map[string]error{
		"put a/b: permission denied: no right to write (AccessDenied, request 7)": &sdk.Error{
			Code: sdk.PermissionDenied, Op: "put", Key: "a/b", Provider: "AccessDenied, request 7", Err: errors.New("no right to write"),
		},
		"get a: not found":                           &sdk.Error{Code: sdk.NotFound, Op: "get", Key: "a"},
		"put c: already exists":                      &sdk.Error{Code: sdk.Exists, Op: "put", Key: "c", Err: sdk.Exists},
		"bucket: invalid configuration: is required": &sdk.Error{Code: sdk.InvalidConfig, Attribute: "bucket", Err: errors.New("is required")},
		"internal error":                             &sdk.Error{},
		"list: disk on fire":                         &sdk.Error{Op: "list", Err: errors.New("disk on fire")},
	} {
		if err.Error() != want {
			t.Errorf("%q; want %q", err, want)
		}
	}
}

func TestCodeOfIsTheFirstCodeThatIsNotInternal(t *testing.T) {
	throttled := &sdk.Error{Code: sdk.Throttled}
	for name, c := range map[string]struct {
		err  error
		want sdk.Code
	}{
		"a bare code":                        {sdk.NoSpace, sdk.NoSpace},
		"an Error":                           {throttled, sdk.Throttled},
		"wrapped":                            {fmt.Errorf("outer: %w", throttled), sdk.Throttled},
		"below an unclassified Error":        {&sdk.Error{Err: fmt.Errorf("x: %w", throttled)}, sdk.Throttled},
		"the outer of two":                   {&sdk.Error{Code: sdk.Unavailable, Err: throttled}, sdk.Unavailable},
		"in the second of joined":            {errors.Join(errors.New("a"), throttled), sdk.Throttled},
		"wrapped twice in one":               {fmt.Errorf("%w and %w", errors.New("a"), sdk.Corrupt), sdk.Corrupt},
		"none":                               {errors.New("a"), sdk.Internal},
		"a cancelled context":                {fmt.Errorf("x: %w", context.Canceled), sdk.Cancelled},
		"a deadline":                         {context.DeadlineExceeded, sdk.Unavailable},
		"a code before a cancelled context":  {fmt.Errorf("%w: %w", context.Canceled, sdk.Unavailable), sdk.Unavailable},
		"an unclassified Error and a cancel": {&sdk.Error{Err: context.Canceled}, sdk.Cancelled},
	} {
		if got := sdk.CodeOf(c.err); got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

func TestErrorsIsFindsACodeInAnyChain(t *testing.T) {
	err := fmt.Errorf("push: %w", errors.Join(errors.New("x"), &sdk.Error{Code: sdk.NotFound, Err: fmt.Errorf("y: %w", context.Canceled)}))
	if !errors.Is(err, sdk.NotFound) || errors.Is(err, sdk.Exists) || !errors.Is(err, context.Canceled) {
		t.Errorf("errors.Is does not see through %v", err)
	}
}

func TestEveryCodeHasANameThatReadsBack(t *testing.T) {
	names := map[string]bool{}
	for code := sdk.Internal; code.Known(); code++ {
		text, err := json.Marshal(code)
		if err != nil {
			t.Fatal(err)
		}
		back := sdk.Corrupt
		if err := json.Unmarshal(text, &back); err != nil || back != code {
			t.Errorf("%s is read back as %s, %v", text, back, err)
		}
		if code.Error() == "" || names[code.String()] {
			t.Errorf("code %d has the name %q and the words %q", code, code.String(), code.Error())
		}
		names[code.String()] = true
	}
	if len(names) != int(sdk.PluginHung)+1 {
		t.Errorf("%d codes have names", len(names))
	}
}

func TestACodeOfTheFutureIsInternalWhenReadByName(t *testing.T) {
	code := sdk.Corrupt
	if err := json.Unmarshal([]byte(`"Melted"`), &code); err != nil || code != sdk.Internal {
		t.Errorf("read as %s, %v", code, err)
	}
	if got := sdk.Code(200).String(); got != "Code(200)" {
		t.Errorf("an unknown number prints as %q", got)
	}
}
