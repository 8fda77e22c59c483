package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/cairnsync/cairn/sdk"
)

// failures makes one call of each verb, all of which fail.
func failures(t *testing.T, target sdk.Target) []error {
	t.Helper()
	_, put := target.Put(t.Context(), sdk.PutRequest{Key: "k/1", Body: sdk.BytesBody([]byte("x"))})
	_, get := target.Get(t.Context(), sdk.GetRequest{Key: "k/1", Length: -1})
	errs := []error{put, get, target.Delete(t.Context(), []string{"k/1"})}
	for _, err := range target.List(t.Context(), sdk.ListRequest{Prefix: "k/"}) {
		errs = append(errs, err)
	}
	if len(errs) != 4 {
		t.Fatalf("%d failures: %v", len(errs), errs)
	}
	return errs
}

func TestNoSecretLeavesInAnError(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Ms-Error-Code", "AuthenticationFailed")
		w.WriteHeader(http.StatusForbidden)
		secret := r.URL.RawQuery + " or " + r.URL.Query().Get("sig")
		if r.Header.Get("Authorization") != "" {
			secret = testKey
		}
		fmt.Fprintf(w, "<Error><Message>wrong: %s</Message></Error>", secret)
	}))
	t.Cleanup(echo.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		name string
		url  string
		code sdk.Code
	}{
		{"a store that echoes what it was sent", echo.URL, sdk.Unauthenticated},
		{"a store that is gone", gone.URL, sdk.Unavailable},
	} {
		for way, cfg := range map[string]Config{
			"a signature":         {Account: "acc", SASToken: testSAS, Endpoint: c.url},
			"a key":               {Account: "acc", AccountKey: testKey, Endpoint: c.url},
			"a connection string": {ConnectionString: sdk.Secret("AccountName=acc;SharedAccessSignature=" + testSAS + ";BlobEndpoint=" + c.url + "/acc")},
		} {
			t.Run(c.name+", "+way, func(t *testing.T) {
				cfg.Container = "box"
				for _, err := range failures(t, openTarget(t, cfg)) {
					e := wantCode(t, err, c.code, "k/")
					all := fmt.Sprintf("%v %+v %s %s", err, err, e.Hint, e.Provider)
					if strings.Contains(all, "c2VjcmV0") {
						t.Errorf("%q tells a secret", all)
					}
				}
			})
		}
	}
}

func TestAStoreThatIsGoneIsUnavailableAndNamed(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	target := openTarget(t, Config{Container: "box", Account: "acc", AccountKey: testKey, Endpoint: gone.URL})
	for _, err := range failures(t, target) {
		wantCode(t, err, sdk.Unavailable, strings.TrimPrefix(gone.URL, "http://"), "connection refused")
	}
}

// identityOf is a credential that hands out numbered tokens.
type identityOf struct {
	tokens atomic.Int64
	err    error
}

func (i *identityOf) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if i.err != nil {
		return azcore.AccessToken{}, i.err
	}
	return azcore.AccessToken{Token: fmt.Sprint("token-", i.tokens.Add(1)), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// serveTokens is a store that is opened by tokens, which go over TLS only.
func serveTokens(t *testing.T, credential azcore.TokenCredential, handler http.HandlerFunc) sdk.Target {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	loc, err := locate(Config{Container: "box", Account: "acc", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	base := newTransport()
	base.TLSClientConfig.RootCAs = x509.NewCertPool()
	base.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	target, err := assemble(t.Context(), loc, "", base, func(policy.ClientOptions) (azcore.TokenCredential, error) { return credential, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() }) // always nil
	return target
}

// CASES A64
func TestATokenThatIsRefusedIsReplacedAndTheCallMadeOnceMore(t *testing.T) {
	for _, c := range []struct {
		name     string
		accepted string
		header   string // of the refusal
		want     error
		requests int64
	}{
		{"the next one is accepted", "Bearer token-2", "", nil, 2},
		{"with a challenge that is not Azure's", "Bearer token-2", `Bearer realm="proxy"`, nil, 2},
		{"none is accepted", "", "", sdk.Unauthenticated, 2},
		{"the first is accepted", "Bearer token-1", "", nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int64
			target := serveTokens(t, &identityOf{}, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				body, err := io.ReadAll(r.Body)
				if err != nil || len(body) != 100_000 {
					t.Errorf("a body of %d bytes, %v", len(body), err)
				}
				if r.Header.Get("Authorization") == c.accepted {
					w.WriteHeader(http.StatusCreated)
					return
				}
				if c.header != "" {
					w.Header().Set("WWW-Authenticate", c.header)
				}
				w.WriteHeader(http.StatusUnauthorized)
			})
			_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody(make([]byte, 100_000))})
			if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if n := requests.Load(); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

func TestWithoutCredentialsTheFirstCallSaysHowToGiveSome(t *testing.T) {
	target := serveTokens(t, &identityOf{err: errors.New("no credential in the chain")}, func(http.ResponseWriter, *http.Request) {
		t.Error("a request without a token")
	})
	for _, err := range failures(t, target) {
		wantCode(t, err, sdk.Unauthenticated, "no credential in the chain", "AZURE_CLIENT_ID")
	}
}

func TestAnAuthorityThatIsDownIsNotARefusal(t *testing.T) {
	failed := func(status int) error {
		if status == 0 {
			return &azidentity.AuthenticationFailedError{}
		}
		return &azidentity.AuthenticationFailedError{RawResponse: &http.Response{StatusCode: status, Body: http.NoBody}}
	}
	for _, c := range []struct {
		name        string
		err         error
		unreachable bool
		want        sdk.Code
	}{
		{"it refuses", failed(400), false, sdk.Unauthenticated},
		{"it refuses after another did not answer", failed(401), true, sdk.Unauthenticated},
		{"it fails", failed(503), false, sdk.Unavailable},
		{"it has too many requests", failed(429), false, sdk.Unavailable},
		{"it cannot be reached", failed(0), true, sdk.Unavailable},
		{"there is no credential, and no metadata service", errors.New("none"), true, sdk.Unauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantCode(t, identityFault(c.err, c.unreachable), c.want)
		})
	}
}

func TestAnAuthorityThatCannotBeReachedIsUnavailable(t *testing.T) {
	base := &transport{base: refusing{}}
	credential, err := azidentity.NewClientSecretCredential("tenant", "client", "secret", &azidentity.ClientSecretCredentialOptions{
		ClientOptions: policy.ClientOptions{Transport: base, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = identity{inner: credential}.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
	wantCode(t, err, sdk.Unavailable, "refused", "authority")
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

func TestOpenAsksNobody(t *testing.T) {
	base := newTransport()
	base.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		t.Errorf("%s is asked", address)
		return nil, net.ErrClosed
	}
	for _, cfg := range []Config{{Account: "acc"}, {Account: "acc", AccountKey: testKey}, {Account: "acc", SASToken: testSAS}} {
		cfg.Container = "box"
		loc, err := locate(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := assemble(t.Context(), loc, "", base, defaultChain); err != nil {
			t.Error(err)
		}
	}
}

func TestAPageThatEndsInItsMiddleIsAnErrorAndNotTheEndOfAListing(t *testing.T) {
	const page = `<?xml version="1.0"?><EnumerationResults><Prefix>k/</Prefix><Blobs><Blob><Name>k/1</Name><Properties>` +
		`<Last-Modified>Tue, 01 Dec 2026 22:00:00 GMT</Last-Modified><Content-Length>1</Content-Length></Properties></Blob></Blobs><NextMarker/></EnumerationResults>`
	list := func(text string, declared int) (n int, err error) {
		target := serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(declared))
			_, _ = io.WriteString(w, text) // a short one breaks the connection
		})
		for _, err := range target.List(t.Context(), sdk.ListRequest{Prefix: "k/"}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	if n, err := list(page, len(page)); n != 1 || err != nil {
		t.Errorf("%d objects, %v", n, err)
	}
	for cut := range len(page) {
		if cut%20 == 0 {
			_, err := list(page[:cut], cut)
			wantCode(t, err, sdk.Unavailable, "list k/")
			_, err = list(page[:cut], len(page))
			wantCode(t, err, sdk.Unavailable, "list k/")
		}
	}
	for _, other := range []string{"<html>login</html>", "<Error><Code>InternalError</Code></Error>", "<EnumerationResults></EnumerationResults>", "{}"} {
		_, err := list(other, len(other))
		wantCode(t, err, sdk.Unavailable, "list k/")
	}
}

// TestRequestsGoThroughTheProxyOfTheEnvironment is a process of its own: net/http reads the variables once.
func TestRequestsGoThroughTheProxyOfTheEnvironment(t *testing.T) {
	if os.Getenv("AZURE_TEST_PROXIED") != "" {
		target := openTarget(t, Config{Container: "box", Account: "acc", AccountKey: testKey, Endpoint: "http://acc.blob.store.invalid"})
		_, err := target.Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
		wantCode(t, err, sdk.NotFound)
		return
	}
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.String())
		w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(proxy.Close)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRequestsGoThroughTheProxyOfTheEnvironment$")
	cmd.Env = append(os.Environ(), "AZURE_TEST_PROXIED=1", "HTTP_PROXY="+proxy.URL)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if asked.Load() != "http://acc.blob.store.invalid/box/k" {
		t.Errorf("the proxy was asked for %v", asked.Load())
	}
}
