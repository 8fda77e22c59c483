package main

import (
	"context"
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

	"github.com/cairnsync/cairn/sdk"
)

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
