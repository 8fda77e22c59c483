package blobtarget

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"gocloud.dev/gcerrors"

	"github.com/cairnsync/cairn/sdk"
)

// failed gives err what was being done and a code. What a hook or the SDK has said already stays.
func (t *target) failed(ctx context.Context, op, key string, err error) *sdk.Error {
	told := t.explain(ctx, err)
	told.Op, told.Key = op, key
	if told.Err == nil && err != error(told.Code) {
		told.Err = err
	}
	return &told
}

// explain asks, in this order: the error itself, the context, the vendor's table, gocloud's codes, the network.
func (t *target) explain(ctx context.Context, err error) sdk.Error {
	var own *sdk.Error
	if errors.As(err, &own) && own.Code != sdk.Internal {
		return *own
	}
	var code sdk.Code
	if errors.As(err, &code) && code != sdk.Internal {
		return sdk.Error{Code: code}
	}
	if e, ok := ended(ctx, err); ok {
		return e
	}
	if t.hooks.Error != nil {
		if e := t.hooks.Error(err); e != nil {
			return *e
		}
	}
	if code, ok := portable(gcerrors.Code(err)); ok {
		return sdk.Error{Code: code}
	}
	return network(err)
}

// ended tells the caller's giving up from a time-out of the client's own, which says something about the store.
func ended(ctx context.Context, err error) (sdk.Error, bool) {
	canceled, late := errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded)
	switch {
	case !canceled && !late:
		return sdk.Error{}, false
	case ctx.Err() != nil:
		return sdk.Error{Code: sdk.CodeOf(ctx.Err()), Err: context.Cause(ctx)}, true
	}
	return sdk.Error{Code: sdk.Unavailable}, true
}

// portable is gocloud's list of codes. FailedPrecondition is not in it: only a conditional write knows what it means.
func portable(code gcerrors.ErrorCode) (sdk.Code, bool) {
	switch code {
	case gcerrors.NotFound:
		return sdk.NotFound, true
	case gcerrors.AlreadyExists:
		return sdk.Exists, true
	case gcerrors.PermissionDenied:
		return sdk.PermissionDenied, true
	case gcerrors.ResourceExhausted:
		return sdk.Throttled, true
	case gcerrors.Unimplemented:
		return sdk.Unsupported, true
	case gcerrors.Canceled, gcerrors.DeadlineExceeded:
		return sdk.Unavailable, true
	}
	return sdk.Internal, false
}

// checkName refuses a key, prefix or start that gocloud's drivers write under another name: "../", and what looks like an escape of theirs.
func checkName(name string) error {
	escaped := strings.Contains(name, "__0x") && regexp.MustCompile(`__0x[0-9a-fA-F]+__`).MatchString(name)
	if !escaped && !strings.Contains(name, "../") {
		return nil
	}
	return &sdk.Error{
		Code: sdk.Unsupported, Err: fmt.Errorf("%q would be stored under another name", name),
		Hint: `choose a prefix without "../" and "__0x…__"`,
	}
}
