package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// CASES A71
func TestOnlyTheStoresOwnWordProvesThatAKeyIsAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   sdk.Code
		says   string
	}{
		"the store's word":                {says(404, errorXML("NoSuchKey", "The specified key does not exist.")), sdk.NotFound, "does not exist"},
		"a bucket that is not there":      {says(404, errorXML("NoSuchBucket", "The specified bucket does not exist")), sdk.InvalidConfig, `"bucket"`},
		"a bare 404":                      {says(404, ""), sdk.Unavailable, "not the answer of an S3 store"},
		"a page of a proxy":               {says(404, "<html><body><h1>Not Found</h1></body></html>"), sdk.Unavailable, "endpoint"},
		"a page that is no XML":           {says(404, "<html><p>Not & Found"), sdk.Unavailable, "endpoint"},
		"a 403, as without s3:ListBucket": {says(403, errorXML("AccessDenied", "Access Denied")), sdk.PermissionDenied, "does not tell a missing object from a forbidden one"},
		"a bare 403":                      {says(403, ""), sdk.PermissionDenied, "s3:ListBucket"},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, call(t.Context(), openAt(t, record(t, c.answer).URL), "get"), c.want, c.says)
		})
	}
}

// CASES A73
func TestARangeIsAskedForAsItIs(t *testing.T) {
	const content = "0123456789"
	store := record(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	})
	target := openAt(t, store.URL)
	for _, c := range []struct {
		off, length int64
		want, asked string
	}{
		{0, -1, content, ""},
		{3, -1, "3456789", "bytes=3-"},
		{0, 4, "0123", "bytes=0-3"},
		{9, 1, "9", "bytes=9-9"},
		{8, 9, "89", "bytes=8-16"},
	} {
		t.Run(fmt.Sprint(c.off, c.length), func(t *testing.T) {
			res, err := target.Get(t.Context(), sdk.GetRequest{Key: "k", Offset: c.off, Length: c.length})
			if err != nil {
				t.Fatal(err)
			}
			have, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || string(have) != c.want || res.Size != int64(len(c.want)) {
				t.Errorf("%q of %d bytes, %v", have, res.Size, err)
			}
			if asked := store.last(t).Header.Get("Range"); asked != c.asked {
				t.Errorf("asked for %q", asked)
			}
		})
	}
	refuses := openAt(t, record(t, says(416, errorXML("InvalidRange", "The requested range is not satisfiable"))).URL)
	_, err := refuses.Get(t.Context(), sdk.GetRequest{Key: "k", Offset: 10, Length: 1})
	wantError(t, err, sdk.Corrupt, "InvalidRange")
}

// CASES A16
func TestAnObjectThatIsCutIsNeverAWholeOne(t *testing.T) {
	store := record(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
	})
	wantError(t, call(t.Context(), openAt(t, store.URL), "get"), sdk.Corrupt, "get k/1")
}

// CASES A66
func TestEachVerbIsTriedOnce(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "9")
	t.Setenv("AWS_RETRY_MODE", "adaptive")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the-secret")
	for _, credentials := range []func(*Config){func(*Config) {}, fromChain} {
		for _, verb := range verbs() {
			store := record(t, says(503, errorXML("SlowDown", "Please reduce your request rate."), "Retry-After", "2"))
			e := wantError(t, call(t.Context(), openAt(t, store.URL, credentials), verb), sdk.Throttled, "SlowDown, request R7")
			if n := len(store.requests()); n != 1 || e.RetryAfter != 2*time.Second {
				t.Errorf("%s: %d requests, retry after %v", verb, n, e.RetryAfter)
			}
		}
	}
}
