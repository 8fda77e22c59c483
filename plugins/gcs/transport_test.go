package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnsync/cairn/internal/rudestore"
	"github.com/cairnsync/cairn/sdk"
)

// failures makes one call of each verb, all of which fail.
func failures(t *testing.T, target sdk.Target) []error {
	t.Helper()
	_, get := target.Get(t.Context(), sdk.GetRequest{Key: "k/1", Length: -1})
	_, list := keysOf(t.Context(), target)
	return []error{put(t, target, "k/1"), get, list, target.Delete(t.Context(), []string{"k/1"})}
}

func TestAStoreThatIsGoneIsUnavailableAndNamed(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, err := range failures(t, openTarget(t, Config{Bucket: "cairn-test", Endpoint: gone.URL})) {
		wantCode(t, err, sdk.Unavailable, strings.TrimPrefix(gone.URL, "http://"), "connection refused")
	}
}

func TestOnlyTheConfigurationSaysWhereTheStoreIs(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the emulator of the environment was asked: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(elsewhere.Close)
	for _, name := range []string{"STORAGE_EMULATOR_HOST", "STORAGE_EMULATOR_HOST_GRPC"} {
		t.Setenv(name, elsewhere.URL)
	}
	all := func(target sdk.Target) {
		if err := put(t, target, "k/1"); err != nil {
			t.Error(err)
		}
		res, err := target.Get(t.Context(), sdk.GetRequest{Key: "k/1", Offset: 10, Length: 5})
		if err != nil || res.Size != 5 {
			t.Fatalf("%+v, %v", res, err)
		}
		res.Body.Close()
		if keys, err := keysOf(t.Context(), target); len(keys) != 1 || err != nil {
			t.Errorf("%q, %v", keys, err)
		}
		if err := target.Delete(t.Context(), []string{"k/1"}); err != nil {
			t.Error(err)
		}
	}
	t.Run("over http", func(t *testing.T) {
		server := rudestore.New(rudestore.GCS).Start(t)
		all(openTarget(t, Config{Bucket: server.Bucket, Endpoint: server.Endpoint}))
	})
	t.Run("over https, with credentials", func(t *testing.T) {
		g := startGoogle(t)
		target, _ := g.openWithKey(t)
		all(target)
		if g.issued.Load() != 1 {
			t.Error("no token was fetched")
		}
	})
}

func TestOpenAsksNobody(t *testing.T) {
	base := newTransport()
	base.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		t.Errorf("%s is asked", address)
		return nil, net.ErrClosed
	}
	metadata(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the metadata service is asked for %s", r.URL) })
	for _, cfg := range []Config{{}, {CredentialsFile: filepath.Join(t.TempDir(), "missing.json")}, {Endpoint: "http://127.0.0.1:1"}} {
		cfg.Bucket = "cairn-test"
		target, err := assemble(t.Context(), cfg, base, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, target)
	}
}

func TestAListingBeginsAtItsStartAndAsksForNoMoreThanItNeeds(t *testing.T) {
	target := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		for name, want := range map[string]string{
			"startOffset": "k/2", "prefix": "k/", "projection": "noAcl", "versions": "false", "maxResults": "7",
		} {
			if got := q.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		fields := strings.FieldsFunc(q.Get("fields"), func(r rune) bool { return strings.ContainsRune(",()", r) })
		slices.Sort(fields)
		if got := strings.Join(fields, " "); got != "items name nextPageToken prefixes size updated" {
			t.Errorf("the fields are %s", got)
		}
		_, _ = io.WriteString(w, `{"items":[{"name":"k/2","size":"1"},{"name":"k/3","size":"1"}]}`)
	})
	var keys []string
	for obj, err := range target.List(t.Context(), sdk.ListRequest{Prefix: "k/", StartAfter: "k/2", Limit: 7}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, obj.Key)
	}
	if fmt.Sprint(keys) != "[k/3]" {
		t.Errorf("listed %q", keys)
	}
}

func TestAPageThatEndsInItsMiddleIsAnErrorAndNotTheEndOfAListing(t *testing.T) {
	const page = `{"nextPageToken":"","items":[{"name":"k/1","size":"1","updated":"2026-12-01T22:00:00Z"},{"name":"k/2","size":"1"}]}`
	list := func(text string, declared int) (int, error) {
		target := serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(declared))
			_, _ = io.WriteString(w, text) // a short one breaks the connection
		})
		keys, err := keysOf(t.Context(), target)
		return len(keys), err
	}
	if n, err := list(page, len(page)); n != 2 || err != nil {
		t.Errorf("%d objects, %v", n, err)
	}
	for cut := 1; cut < len(page); cut += 10 {
		_, err := list(page[:cut], cut)
		wantCode(t, err, sdk.Unavailable, "list")
		_, err = list(page[:cut], len(page))
		wantCode(t, err, sdk.Unavailable, "list")
	}
	for _, other := range []string{"<html>login</html>", `{"error":{"code":500}}`, `[]`, `"items"`} {
		_, err := list(other, len(other))
		wantCode(t, err, sdk.Unavailable, "list")
	}
}

// TestRequestsGoThroughTheProxyOfTheEnvironment is a process of its own: net/http reads the variables once.
func TestRequestsGoThroughTheProxyOfTheEnvironment(t *testing.T) {
	if os.Getenv("GCS_TEST_PROXIED") != "" {
		target := openTarget(t, Config{Bucket: "cairn-test", Endpoint: "http://gcs.store.invalid"})
		_, err := target.Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
		wantCode(t, err, sdk.NotFound)
		return
	}
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Host + r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "No such object: cairn-test/k")
	}))
	t.Cleanup(proxy.Close)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRequestsGoThroughTheProxyOfTheEnvironment$")
	cmd.Env = append(os.Environ(), "GCS_TEST_PROXIED=1", "HTTP_PROXY="+proxy.URL)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if asked.Load() != "gcs.store.invalid/storage/v1/b/cairn-test/o/k" {
		t.Errorf("the proxy was asked for %v", asked.Load())
	}
}
