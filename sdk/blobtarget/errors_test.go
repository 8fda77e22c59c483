package blobtarget_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"gocloud.dev/gcerrors"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
)

// getError is what a Get answers when the driver fails with err.
func getError(ctx context.Context, err error, code gcerrors.ErrorCode, table func(error) *sdk.Error) error {
	hooks := blobtarget.Hooks{Error: table, Put: func(context.Context, sdk.PutRequest) (sdk.PutResult, error) { return sdk.PutResult{}, err }}
	_, err = (&script{code: code}).target(hooks).Put(ctx, sdk.PutRequest{Key: "k", IfAbsent: true})
	return err
}

func TestGocloudsCodesHaveOursWhenTheTableIsSilent(t *testing.T) {
	silent := func(error) *sdk.Error { return nil }
	for code, want := range map[gcerrors.ErrorCode]sdk.Code{
		gcerrors.NotFound:           sdk.NotFound,
		gcerrors.AlreadyExists:      sdk.Exists,
		gcerrors.PermissionDenied:   sdk.PermissionDenied,
		gcerrors.ResourceExhausted:  sdk.Throttled,
		gcerrors.Unimplemented:      sdk.Unsupported,
		gcerrors.DeadlineExceeded:   sdk.Unavailable,
		gcerrors.Canceled:           sdk.Unavailable,
		gcerrors.FailedPrecondition: sdk.Internal,
		gcerrors.InvalidArgument:    sdk.Internal,
		gcerrors.Internal:           sdk.Internal,
		gcerrors.Unknown:            sdk.Internal,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			s := &script{code: code}
			_, err := s.target(blobtarget.Hooks{Error: silent}).Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
			wantError(t, err, want, "get", "k", errStore.Error())
		})
	}
}

func TestTheVendorsTableIsAskedFirstAndItsAnswerKeptWhole(t *testing.T) {
	table := func(err error) *sdk.Error {
		if !errors.Is(err, errStore) {
			return nil
		}
		return &sdk.Error{Code: sdk.Throttled, Provider: "SlowDown, request 7", Hint: "wait", RetryAfter: time.Minute}
	}
	s := &script{code: gcerrors.NotFound}
	_, err := s.target(blobtarget.Hooks{Error: table}).Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
	wantError(t, err, sdk.Throttled, "get", "k", "SlowDown, request 7", "wait", errStore.Error())
	var e *sdk.Error
	if !errors.As(err, &e) || e.RetryAfter != time.Minute || e.Hint != "wait" {
		t.Errorf("%#v", e)
	}
}

func TestWhatTheSDKHasSaidIsNotSaidAnotherWay(t *testing.T) {
	table := func(error) *sdk.Error { return &sdk.Error{Code: sdk.Throttled} }
	damaged := fmt.Errorf("send: %w", &sdk.Error{Code: sdk.Corrupt, Err: errStore})
	wantError(t, getError(t.Context(), damaged, 0, table), sdk.Corrupt, "put", "k", errStore.Error())
	wantError(t, getError(t.Context(), fmt.Errorf("send: %w", sdk.Exists), 0, table), sdk.Exists, "put", "k", "send")
}

func TestACallersEndIsToldFromATimeOutOfTheClient(t *testing.T) {
	table := func(error) *sdk.Error { return &sdk.Error{Code: sdk.Throttled} }
	late := fmt.Errorf("send: %w", context.DeadlineExceeded)
	gone := fmt.Errorf("send: %w", context.Canceled)
	for _, err := range []error{late, gone} {
		wantError(t, getError(t.Context(), err, 0, table), sdk.Unavailable, "put", "k", "send")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	hooks := blobtarget.Hooks{Put: func(context.Context, sdk.PutRequest) (sdk.PutResult, error) {
		cancel(errors.New("the host gave up"))
		return sdk.PutResult{}, gone
	}}
	_, err := (&script{}).target(hooks).Put(ctx, sdk.PutRequest{Key: "k", IfAbsent: true})
	wantError(t, err, sdk.Cancelled, "put", "k", "the host gave up")
}

func TestWithoutAnAnswerTheNetworkSaysWhatIsWrong(t *testing.T) {
	quiet := log.New(io.Discard, "", 0)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, c := range []struct {
		name string
		err  error
		code sdk.Code
		says string
	}{
		{"an untrusted certificate", requestError(t, secure.URL), sdk.Unavailable, "SSL_CERT_FILE"},
		{"plain http behind https", requestError(t, "https"+plain.URL[len("http"):]), sdk.Unavailable, "scheme"},
		{"nobody listens", requestError(t, closed.URL), sdk.Unavailable, "refused"},
		{"a host name that is none", fmt.Errorf("dial: %w", &net.DNSError{Err: "no such host", Name: "s3.nowhere", IsNotFound: true}), sdk.Unavailable, "does not resolve"},
		{"a connection cut", fmt.Errorf("read: %w", syscall.ECONNRESET), sdk.Unavailable, "reset"},
		{"an answer that ends early", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), sdk.Unavailable, "EOF"},
		{"a TLS alert", fmt.Errorf("remote: %w", tls.AlertError(40)), sdk.Unavailable, "handshake"},
		{"anything else", errStore, sdk.Internal, errStore.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, getError(t.Context(), c.err, 0, nil), c.code, "put", "k", c.says)
		})
	}
}

// requestError is what a client that knows nothing of the server's certificate gets.
func requestError(t *testing.T, url string) error {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(url)
	if err == nil {
		res.Body.Close()
		t.Fatalf("%s answers %s", url, res.Status)
	}
	return err
}

func TestAnObjectThatIsCutWhileItIsReadIsCorruptAndItsErrorsAreClassified(t *testing.T) {
	for _, c := range []struct {
		err  error
		code sdk.Code
	}{
		{io.ErrUnexpectedEOF, sdk.Corrupt},
		{syscall.ECONNRESET, sdk.Unavailable},
	} {
		s := &cutScript{script: script{object: "0123456789"}, err: c.err}
		res, err := blobtarget.New(s.bucket(), blobtarget.Hooks{}).Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
		if err != nil {
			t.Fatal(err)
		}
		have, err := io.ReadAll(res.Body)
		res.Body.Close()
		if len(have) != 10 {
			t.Errorf("%d bytes", len(have))
		}
		wantError(t, err, c.code, "get", "k")
	}
}
