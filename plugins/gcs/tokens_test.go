package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/auth"

	"github.com/cairnsync/cairn/internal/rudestore"
	"github.com/cairnsync/cairn/sdk"
)

// google is a store behind TLS that wants a token, and the authority that gives them.
type google struct {
	*httptest.Server
	store *rudestore.Store

	issued   atomic.Int64 // tokens, numbered from 1
	refuse   atomic.Int64 // tokens up to this one are refused
	requests atomic.Int64 // of the store
	life     atomic.Int64 // of a token, in seconds
	trouble  atomic.Value // func(w, r) of the authority
	seen     sync.Map     // who asked the authority
}

func startGoogle(t *testing.T) *google {
	t.Helper()
	g := &google{store: rudestore.New(rudestore.GCS)}
	g.life.Store(3600)
	g.Server = httptest.NewTLSServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	return g
}

func (g *google) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		g.authority(w, r)
		return
	}
	g.requests.Add(1)
	var n int64
	if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer token-%d", &n); err != nil || n <= g.refuse.Load() {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":401,"message":"Invalid Credentials","errors":[{"reason":"authError"}]}}`)
		return
	}
	g.store.ServeHTTP(w, r)
}

func (g *google) authority(w http.ResponseWriter, r *http.Request) {
	assertion := r.FormValue("assertion") // the server notices only after the body that a client has gone
	if f, ok := g.trouble.Load().(func(http.ResponseWriter, *http.Request)); ok && f != nil {
		f(w, r)
		return
	}
	g.seen.Store(accountOf(assertion), true)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": fmt.Sprint("token-", g.issued.Add(1)), "token_type": "Bearer", "expires_in": g.life.Load(),
	})
}

// accountOf reads who made an assertion.
func accountOf(jwt string) string {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	_ = json.Unmarshal(text, &claims) // then there is no issuer
	return claims.Issuer
}

// keyFile writes the key of a service account.
func (g *google) keyFile(t *testing.T, path, account string) {
	t.Helper()
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": account, "private_key_id": "1", "private_key": privateKey(), "token_uri": g.URL + "/token",
	})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var privateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

func (g *google) open(t *testing.T, file string, now func() time.Time) *target {
	t.Helper()
	base := newTransport()
	base.TLSClientConfig.RootCAs = x509.NewCertPool()
	base.TLSClientConfig.RootCAs.AddCert(g.Certificate())
	target, err := assemble(t.Context(), Config{Bucket: "cairn-test", Endpoint: g.URL, CredentialsFile: file}, base, now)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, target)
	return target
}

// openWithKey is the usual case: a key file, and the clock of the machine.
func (g *google) openWithKey(t *testing.T) (target *target, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key.json")
	g.keyFile(t, file, "first@example.com")
	return g.open(t, file, time.Now), file
}

func put(t *testing.T, target sdk.Target, key string) error {
	t.Helper()
	_, err := target.Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody(make([]byte, 100_000))})
	return err
}

func keysOf(ctx context.Context, target sdk.Target) (keys []string, err error) {
	for obj, err := range target.List(ctx, sdk.ListRequest{}) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, obj.Key)
	}
	return keys, nil
}

func TestOneTokenIsFetchedForAllCallsThatWaitForIt(t *testing.T) {
	g := startGoogle(t)
	target, _ := g.openWithKey(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if err := put(t, target, fmt.Sprint("k/", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := g.issued.Load(); n != 1 {
		t.Errorf("%d tokens were fetched", n)
	}
	if keys, err := keysOf(t.Context(), target); len(keys) != 16 || err != nil {
		t.Errorf("%q, %v", keys, err)
	}
}

// CASES A64
func TestATokenThatIsRefusedIsReplacedAndTheCallMadeOnceMore(t *testing.T) {
	calls := map[string]func(sdk.Target) error{
		"put": func(target sdk.Target) error { return put(t, target, "k/new") },
		"get": func(target sdk.Target) error {
			res, err := target.Get(t.Context(), sdk.GetRequest{Key: "k/old", Length: -1})
			if err != nil {
				return err
			}
			defer res.Body.Close()
			_, err = io.Copy(io.Discard, res.Body)
			return err
		},
		"list":   func(target sdk.Target) error { _, err := keysOf(t.Context(), target); return err },
		"delete": func(target sdk.Target) error { return target.Delete(t.Context(), []string{"k/old"}) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			g := startGoogle(t)
			g.store.Plant("k/old", []byte("content"))
			g.refuse.Store(1)
			target, _ := g.openWithKey(t)
			if err := call(target); err != nil || g.requests.Load() != 2 || g.issued.Load() != 2 {
				t.Errorf("%v after %d requests with %d tokens", err, g.requests.Load(), g.issued.Load())
			}
			g.refuse.Store(1 << 40)
			g.requests.Store(0)
			wantCode(t, call(target), sdk.Unauthenticated, "refused")
			if n := g.requests.Load(); n != 2 {
				t.Errorf("%d requests with tokens that are all refused, want 2", n)
			}
		})
	}
}

// CASES A65
func TestARotatedKeyFileIsPickedUpByTheNextCall(t *testing.T) {
	g := startGoogle(t)
	target, file := g.openWithKey(t)
	if err := put(t, target, "k/1"); err != nil {
		t.Fatal(err)
	}
	next := file + ".next"
	g.keyFile(t, next, "second.account@example.com")
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	if err := put(t, target, "k/2"); err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"first@example.com", "second.account@example.com"} {
		if _, ok := g.seen.Load(account); !ok {
			t.Errorf("%s never asked for a token", account)
		}
	}
}

func TestTheFileThatTheEnvironmentNamesIsUsed(t *testing.T) {
	g := startGoogle(t)
	file := filepath.Join(t.TempDir(), "key.json")
	g.keyFile(t, file, "env@example.com")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	if err := put(t, g.open(t, "", time.Now), "k"); err != nil {
		t.Error(err)
	}
}

// CASES A64
func TestATokenIsReplacedBeforeItEnds(t *testing.T) {
	g := startGoogle(t)
	g.life.Store(200) // shorter than freshFor
	target, _ := g.openWithKey(t)
	for i := range 2 {
		if err := put(t, target, "k"); err != nil {
			t.Fatal(err)
		}
		if n := g.issued.Load(); n != int64(i+1) {
			t.Errorf("%d tokens for %d calls", n, i+1)
		}
	}
}

func TestCredentialsThatAreMissingOrBrokenAreUnauthenticatedAndTheFileIsReadAgain(t *testing.T) {
	g := startGoogle(t)
	file := filepath.Join(t.TempDir(), "key.json")
	target := g.open(t, file, time.Now)
	e := wantCode(t, put(t, target, "k"), sdk.Unauthenticated, file, "can read")
	if e.Attribute != "credentials_file" {
		t.Errorf("the attribute is %q", e.Attribute)
	}
	for _, text := range []string{`{"private_key": "secret`, `{"type":"service_account","private_key":"secret"}`, `{"type":"other_kind"}`, ``} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := wantCode(t, put(t, target, "k"), sdk.Unauthenticated); strings.Contains(err.Error(), `"secret`) {
			t.Errorf("%v tells a secret", err)
		}
	}
	g.keyFile(t, file, "late@example.com")
	if err := put(t, target, "k"); err != nil {
		t.Error(err)
	}
}

func TestAnAuthorityThatIsDownIsNotARefusal(t *testing.T) {
	g := startGoogle(t)
	target, _ := g.openWithKey(t)
	reply := func(status int, body string, retryAfter string) {
		g.trouble.Store(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", retryAfter)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	reply(400, `{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`, "")
	wantCode(t, put(t, target, "k"), sdk.Unauthenticated, "Invalid JWT Signature", "disabled")
	reply(404, `{}`, "")
	wantCode(t, put(t, target, "k"), sdk.Unauthenticated)
	g.trouble.Store(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	wantCode(t, put(t, target, "k"), sdk.Unavailable, "authority")
	if n := g.requests.Load(); n > 0 {
		t.Errorf("%d requests without a token", n)
	}
	g.trouble.Store((func(http.ResponseWriter, *http.Request))(nil))
	if err := put(t, target, "k"); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

func TestAnAuthorityThatFailsIsUnavailable(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		failed := &auth.Error{Response: &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"30"}}}, Err: errors.New("failed")}
		if e := wantCode(t, tokenFault(failed), sdk.Unavailable, "authority"); e.RetryAfter != 30*time.Second {
			t.Errorf("%d: retry after %v", status, e.RetryAfter)
		}
	}
}

func TestACallDoesNotWaitForATokenLongerThanItsContext(t *testing.T) {
	g := startGoogle(t)
	target, _ := g.openWithKey(t)
	asked, release := make(chan struct{}, 8), make(chan struct{})
	g.trouble.Store(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	})
	first := make(chan error, 1)
	go func() { first <- put(t, target, "k/1") }()
	<-asked

	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(0, cancel).Stop() // soon after the call has begun
	if _, err := keysOf(ctx, target); !errors.Is(err, sdk.Cancelled) {
		t.Errorf("a call that was given up: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("the other call ended too: %v", err)
	default:
	}
	close(release)
	wantCode(t, <-first, sdk.Unavailable)
}

func TestCloseEndsAFetchThatHangs(t *testing.T) {
	g := startGoogle(t)
	asked := make(chan struct{}, 8)
	g.trouble.Store(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	target, _ := g.openWithKey(t)
	done := make(chan error, 1)
	go func() { done <- put(t, target, "k") }()
	<-asked
	target.tokens.Close()
	wantCode(t, <-done, sdk.Unavailable)
}

// metadata is the metadata service of a machine of Google Cloud.
func metadata(t *testing.T, handler http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir())
}

func TestTheDefaultChainAsksTheMetadataServiceAndOpenDoesNot(t *testing.T) {
	var asked atomic.Int64
	metadata(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Metadata-Flavor", "Google")
		if !strings.HasSuffix(r.URL.Path, "/service-accounts/default/token") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"token-7","expires_in":3599,"token_type":"Bearer"}`)
	})
	g := startGoogle(t)
	target := g.open(t, "", time.Now)
	if n := asked.Load(); n > 0 {
		t.Errorf("Open asked %d times", n)
	}
	if err := put(t, target, "k"); err != nil {
		t.Error(err)
	}
}

func TestWithoutCredentialsTheFirstCallSaysHowToGiveSome(t *testing.T) {
	metadata(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		http.NotFound(w, r)
	})
	g := startGoogle(t)
	wantCode(t, put(t, g.open(t, "", time.Now), "k"), sdk.Unauthenticated, "credentials_file", "GOOGLE_APPLICATION_CREDENTIALS")
	if n := g.requests.Load(); n > 0 {
		t.Errorf("%d requests without a token", n)
	}
}
