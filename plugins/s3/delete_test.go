package main

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// byKey gives the errors of a Delete, which are joined.
func byKey(t *testing.T, err error) map[string]*sdk.Error {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%v is no joined error", err)
	}
	errs := map[string]*sdk.Error{}
	for _, one := range joined.Unwrap() {
		var e *sdk.Error
		if !errors.As(one, &e) {
			t.Fatalf("%v is no *sdk.Error", one)
		}
		errs[e.Key] = e
	}
	return errs
}

// CASES A35
func TestADeleteAnswersForEachKey(t *testing.T) {
	store := record(t, says(200, `<DeleteResult><Deleted><Key>a</Key></Deleted>
		<Error><Key>b</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>
		<Error><Key>c</Key><Code>NoSuchKey</Code><Message>gone</Message></Error>
		<Error><Key>d</Key><Code>SlowDown</Code><Message>Reduce your rate</Message></Error></DeleteResult>`, "X-Amz-Request-Id", "R9"))
	errs := byKey(t, openAt(t, store.URL).Delete(t.Context(), []string{"a", "b", "c", "d", "e"}))
	if len(errs) != 3 || errs["b"] == nil || errs["d"] == nil || errs["e"] == nil {
		t.Fatalf("%v", errs)
	}
	wantError(t, errs["b"], sdk.PermissionDenied, "delete b", "AccessDenied, request R9", "s3:DeleteObject")
	wantError(t, errs["d"], sdk.Throttled, "delete d", "Reduce your rate")
	wantError(t, errs["e"], sdk.Unavailable, "delete e", "says nothing of this key")
}

func TestADeleteIsOneRequestThatOldStoresTakeToo(t *testing.T) {
	store := record(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<DeleteResult><Deleted><Key>a</Key></Deleted><Deleted><Key>b/c</Key></Deleted></DeleteResult>")
	})
	if err := openAt(t, store.URL).Delete(t.Context(), []string{"a", "b/c"}); err != nil {
		t.Fatal(err)
	}
	if n := len(store.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	req := store.last(t)
	sum := md5.Sum(req.body)
	if have := req.Header.Get("Content-Md5"); have != base64.StdEncoding.EncodeToString(sum[:]) {
		t.Errorf("Content-MD5: %q", have)
	}
	var sent struct {
		Object []struct{ Key string }
	}
	if err := xml.Unmarshal(req.body, &sent); err != nil || !slices.Equal(sent.Object, []struct{ Key string }{{"a"}, {"b/c"}}) {
		t.Errorf("%+v, %v", sent, err)
	}
}

func TestAStoreWithoutDeleteObjectsIsToldAsSuch(t *testing.T) {
	for code, status := range map[string]int{"NotImplemented": 501, "MethodNotAllowed": 405} {
		store := record(t, says(status, errorXML(code, "not here")))
		err := openAt(t, store.URL).Delete(t.Context(), []string{"a"})
		wantError(t, err, sdk.Unsupported, "DeleteObjects", code+", request R7")
	}
}
