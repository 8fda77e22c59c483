package rpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// maxErrorText bounds one text of an error on the wire: it travels in a trailer, and a store's HTML page helps nobody.
const maxErrorText = 8 << 10

// toWire gives the whole of err: the first code that is not Internal, and of each other field the first that is set in the chain.
func toWire(err error) *pb.TargetError {
	code := sdk.CodeOf(err)
	wire := &pb.TargetError{Message: wireText(err.Error())}
	if top, ok := err.(*sdk.Error); ok {
		wire.Message = ""
		if top.Err != nil {
			wire.Message = wireText(top.Err.Error())
		}
	}
	for e := range targetErrors(err) {
		fillWire(wire, e)
	}
	// Only the host can tell that a plugin is gone or hangs.
	if code != sdk.PluginGone && code != sdk.PluginHung && code.Known() {
		wire.Code = pb.ErrorCode(code)
	}
	return wire
}

func fillWire(wire *pb.TargetError, e *sdk.Error) {
	for _, field := range []struct {
		to   *string
		from string
	}{
		{&wire.Op, e.Op},
		{&wire.Key, e.Key},
		{&wire.Attribute, e.Attribute},
		{&wire.Provider, e.Provider},
		{&wire.Hint, e.Hint},
	} {
		if *field.to == "" {
			*field.to = wireText(field.from)
		}
	}
	if wire.RetryAfterNanos == 0 {
		wire.RetryAfterNanos = int64(e.RetryAfter)
	}
}

// targetErrors walks every *sdk.Error in the chain of err, outermost first.
func targetErrors(err error) func(yield func(*sdk.Error) bool) {
	var walk func(err error, yield func(*sdk.Error) bool) bool
	walk = func(err error, yield func(*sdk.Error) bool) bool {
		if e, ok := err.(*sdk.Error); ok && !yield(e) {
			return false
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			return walk(e.Unwrap(), yield)
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				if !walk(one, yield) {
					return false
				}
			}
		}
		return true
	}
	return func(yield func(*sdk.Error) bool) { walk(err, yield) }
}

// wireText makes text fit for a protobuf string.
func wireText(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// fromWire is the error as the host sees it: bounded and printable, whatever the plugin sent. A code that this host does not know, or that no plugin may send, is Internal.
func fromWire(wire *pb.TargetError) *sdk.Error {
	e := &sdk.Error{
		Op: readable(wire.GetOp(), maxLabel), Key: readable(wire.GetKey(), sdk.MaxKey), Attribute: readable(wire.GetAttribute(), maxLabel),
		Provider: readable(wire.GetProvider(), maxErrorText), Hint: readable(wire.GetHint(), maxErrorText),
		RetryAfter: min(max(0, time.Duration(wire.GetRetryAfterNanos())), maxRetryAfter),
	}
	if n := wire.GetCode(); n >= 0 && n <= math.MaxUint8 {
		e.Code = sdk.Code(n)
	}
	if !e.Code.Known() || e.Code == sdk.PluginGone || e.Code == sdk.PluginHung {
		e.Code = sdk.Internal
	}
	if wire.GetMessage() != "" {
		e.Err = errors.New(readable(wire.GetMessage(), maxErrorText))
	}
	return e
}

// toStatus is how a handler ends: the gRPC code is for tools and other languages, the detail for the host.
func toStatus(err error) error {
	wire := toWire(err)
	st, detailErr := status.New(grpcCode(sdk.Code(wire.GetCode())), wireText(err.Error())).WithDetails(wire)
	if detailErr != nil {
		return status.Error(codes.Internal, detailErr.Error())
	}
	return st.Err()
}

func grpcCode(code sdk.Code) codes.Code {
	switch code {
	case sdk.NotFound:
		return codes.NotFound
	case sdk.Exists:
		return codes.AlreadyExists
	case sdk.PermissionDenied:
		return codes.PermissionDenied
	case sdk.Unauthenticated:
		return codes.Unauthenticated
	case sdk.InvalidConfig:
		return codes.InvalidArgument
	case sdk.Throttled, sdk.NoSpace:
		return codes.ResourceExhausted
	case sdk.Unavailable:
		return codes.Unavailable
	case sdk.Corrupt:
		return codes.DataLoss
	case sdk.Cancelled:
		return codes.Canceled
	case sdk.Unsupported:
		return codes.Unimplemented
	}
	return codes.Internal
}

// fromStatus turns what a call ended with into an sdk error. ctx is the call's own: when it has ended, its cause is the answer, for
// then the status tells only that.
func fromStatus(ctx context.Context, op, key string, err error) error {
	if ctx.Err() != nil {
		return ended(ctx, op, key)
	}
	st := status.Convert(err)
	if st.Code() == codes.DeadlineExceeded && strikes(ctx) {
		return ended(ctx, op, key)
	}
	for _, detail := range st.Details() {
		if wire, ok := detail.(*pb.TargetError); ok {
			return whole(fromWire(wire), op, key)
		}
	}
	said := readable(st.Message(), maxErrorText)
	e := &sdk.Error{Op: op, Key: key, Err: fmt.Errorf("the plugin answers %s without details: %s", st.Code(), said)}
	switch st.Code() {
	case codes.Unavailable, codes.Canceled: // gRPC's own words for a broken and for a closed connection: the caller has cancelled nothing
		e.Code, e.Err = sdk.PluginGone, errors.New(said)
	case codes.DeadlineExceeded:
		e.Code = sdk.Unavailable
	case codes.Unimplemented:
		e.Code = sdk.Unsupported
	}
	return e
}

// echo is how far the two ends of a call may be apart about its deadline.
const echo = time.Second

// strikes waits for the deadline of ctx when it is due: it travels with the call, and the plugin's clock may strike first.
func strikes(ctx context.Context) bool {
	if _, ok := ctx.Deadline(); !ok {
		return false
	}
	timer := time.NewTimer(echo)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// whole adds what the host asked for where the plugin did not say it.
func whole(e *sdk.Error, op, key string) *sdk.Error {
	if e.Op == "" {
		e.Op = op
	}
	if e.Key == "" {
		e.Key = key
	}
	return e
}

// ended is the error of a call whose context is over: the watch's own verdict, or the caller's.
func ended(ctx context.Context, op, key string) error {
	cause := context.Cause(ctx)
	var verdict *sdk.Error
	if errors.As(cause, &verdict) {
		return whole(&sdk.Error{Code: verdict.Code, Hint: verdict.Hint, Err: verdict.Err}, op, key)
	}
	return &sdk.Error{Code: sdk.CodeOf(ctx.Err()), Op: op, Key: key, Err: cause}
}

// leaves flattens joined errors, so that each can cross on its own.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, leaves(one)...)
	}
	return all
}

// diagnostics are the faults of a configuration, one each.
func diagnostics(err error) *pb.Diagnostics {
	found := &pb.Diagnostics{}
	if err == nil {
		return found
	}
	for _, one := range leaves(err) {
		wire := toWire(one)
		wire.Code = pb.ErrorCode_INVALID_CONFIG
		found.Errors = append(found.Errors, wire)
	}
	return found
}

func fromDiagnostics(found *pb.Diagnostics) error {
	var all []error
	for i, wire := range found.GetErrors() {
		if i == maxDiagnostics {
			all = append(all, &sdk.Error{Code: sdk.InvalidConfig, Err: fmt.Errorf("and %d more", len(found.GetErrors())-i)})
			break
		}
		all = append(all, fromWire(wire))
	}
	return errors.Join(all...)
}
