package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// page is a ListBucketResult; extra goes in as it is.
func page(extra string, keys ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` + extra)
	for _, key := range keys {
		fmt.Fprintf(&b, "<Contents><Key>%s</Key><LastModified>2026-12-01T00:00:00.000Z</LastModified><Size>%d</Size></Contents>", key, len(key))
	}
	return b.String() + "</ListBucketResult>"
}

const (
	endOfList = "<IsTruncated>false</IsTruncated>"
	more      = "<IsTruncated>true</IsTruncated><NextContinuationToken>t1</NextContinuationToken>"
)

func list(t *testing.T, target sdk.Target, req sdk.ListRequest) (keys []string, err error) {
	t.Helper()
	for obj, err := range target.List(t.Context(), req) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, obj.Key)
	}
	return keys, nil
}

// CASES A34
func TestAListingBeginsAfterItsStartAndFollowsTheTokens(t *testing.T) {
	store := record(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continuation-token") == "" {
			io.WriteString(w, page(more, "k/2", "k/3"))
			return
		}
		io.WriteString(w, page(endOfList, "k/4"))
	})
	keys, err := list(t, openAt(t, store.URL), sdk.ListRequest{Prefix: "k/", StartAfter: "k/1", Limit: 2})
	if err != nil || !slices.Equal(keys, []string{"k/2", "k/3", "k/4"}) {
		t.Fatalf("%q, %v", keys, err)
	}
	var asked []string
	for _, req := range store.requests() {
		q := req.URL.Query()
		asked = append(asked, strings.Join([]string{q.Get("list-type"), q.Get("prefix"), q.Get("max-keys"), q.Get("start-after"), q.Get("continuation-token")}, " "))
	}
	if want := []string{"2 k/ 2 k/1 ", "2 k/ 2  t1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestWhatIsNoListingIsNeverTakenForAnEmptyOne(t *testing.T) {
	half := page(endOfList, "k/1", "k/2")
	for name, c := range map[string]struct {
		body string
		code sdk.Code
		says string
	}{
		"an error in a 200":              {errorXML("InternalError", "We encountered an internal error."), sdk.Unavailable, "internal error"},
		"a SlowDown in a 200":            {errorXML("SlowDown", "Please reduce your request rate."), sdk.Throttled, "SlowDown, request R7"},
		"an AccessDenied in a 200":       {errorXML("AccessDenied", "Access Denied"), sdk.PermissionDenied, "s3:ListBucket"},
		"nothing":                        {"", sdk.Unavailable, "no <ListBucketResult>"},
		"a page of a proxy":              {"<html><body>Please log in</body></html>", sdk.Unavailable, "check the endpoint"},
		"another document":               {"<ListAllMyBucketsResult/>", sdk.Unavailable, "no <ListBucketResult>"},
		"half a listing":                 {half[:len(half)-len("<Size>3</Size></Contents></ListBucketResult>")], sdk.Unavailable, "cannot be read"},
		"more, and not where":            {page("<IsTruncated>true</IsTruncated>", "k/1"), sdk.Corrupt, "not where"},
		"more, at an empty token":        {page("<IsTruncated>true</IsTruncated><NextContinuationToken></NextContinuationToken>", "k/1"), sdk.Corrupt, "not where"},
		"not whether more follows":       {page("", "k/1"), sdk.Corrupt, "whether more follows"},
		"an empty one without that":      {page(""), sdk.Corrupt, "whether more follows"},
		"the same page for ever":         {page(more), sdk.Corrupt, "same page again"},
		"an object without a time":       {page(endOfList + "<Contents><Key>k/1</Key><Size>1</Size></Contents>"), sdk.Corrupt, "without its size or its time"},
		"an object without a size":       {page(endOfList + "<Contents><Key>k/1</Key><LastModified>2026-12-01T00:00:00Z</LastModified></Contents>"), sdk.Corrupt, "without its size or its time"},
		"keys that jump back":            {page(endOfList, "k/2", "k/1"), sdk.Corrupt, `"k/1" after "k/2"`},
		"keys that nobody has asked for": {page(endOfList, "other"), sdk.Corrupt, "prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := list(t, openAt(t, record(t, says(200, c.body)).URL), sdk.ListRequest{Prefix: "k/"})
			wantError(t, err, c.code, c.says)
		})
	}
}

func TestAnEmptyListingIsOne(t *testing.T) {
	keys, err := list(t, openAt(t, record(t, says(200, page(endOfList))).URL), sdk.ListRequest{Prefix: "k/"})
	if err != nil || len(keys) > 0 {
		t.Errorf("%q, %v", keys, err)
	}
}

// CASES A12
func TestAnAnswerInA200CountsForEveryVerbThatHasOne(t *testing.T) {
	store := record(t, says(200, errorXML("SlowDown", "Please reduce your request rate."), "Retry-After", "3"))
	for _, verb := range []string{"put", "list", "delete"} {
		e := wantError(t, call(t.Context(), openAt(t, store.URL), verb), sdk.Throttled, "SlowDown")
		if e.RetryAfter.Seconds() != 3 {
			t.Errorf("%s: retry after %v", verb, e.RetryAfter)
		}
	}
}
