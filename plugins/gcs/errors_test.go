package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"github.com/cairnsync/cairn/sdk"
)

// answer is what the store says, as its client makes an error of it.
func answer(status int, reason, message string, header ...string) error {
	h := http.Header{"X-Guploader-Uploadid": {"7f1e"}, "Date": {"Tue, 01 Dec 2026 22:00:00 GMT"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"reason":%q,"message":%q}]}}`, status, message, reason, message)
	return googleapi.CheckResponse(&http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))})
}

// CASES A14
func TestEveryAnswerOfTheStoreHasAMeaning(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		status  int
		reason  string
		message string
		want    sdk.Code
		says    string // in hint or attribute
	}{
		{403, "rateLimitExceeded", "", sdk.Throttled, ""},
		{429, "rateLimitExceeded", "The object exceeded the rate limit for object mutation operations.", sdk.Throttled, ""},
		{403, "userRateLimitExceeded", "", sdk.Throttled, ""},
		{403, "quotaExceeded", "", sdk.NoSpace, "quota"},
		{403, "storageQuotaExceeded", "", sdk.NoSpace, "quota"},
		{403, "accountDisabled", "", sdk.PermissionDenied, "billing"},
		{403, "billingNotEnabled", "", sdk.PermissionDenied, "billing"},
		{403, "UserProjectAccountProblem", "", sdk.PermissionDenied, "billing"},
		{403, "UserProjectAccessDenied", "", sdk.PermissionDenied, "GOOGLE_CLOUD_QUOTA_PROJECT"},
		{400, "userProjectMissing", "", sdk.InvalidConfig, "GOOGLE_CLOUD_QUOTA_PROJECT"},
		{412, "orgPolicyConstraintFailed", "Constraint constraints/gcp.restrictNonCmekServices violated.", sdk.PermissionDenied, "policy"},
		{403, "retentionPolicyNotMet", "", sdk.PermissionDenied, "retention policy"},
		{403, "objectUnderActiveHold", "", sdk.PermissionDenied, "hold"},
		{403, "sslRequired", "", sdk.InvalidConfig, "endpoint"},
		{400, "invalidBucketName", "", sdk.InvalidConfig, "bucket"},
		{503, "uploadBrokenConnection", "", sdk.Unavailable, ""},
		{400, "invalid", `Provided CRC32C "AAAAAA==" doesn't match calculated CRC32C "BBBBBB==".`, sdk.Corrupt, "changed"},

		{301, "", "", sdk.InvalidConfig, "endpoint"},
		{400, "invalid", "Invalid argument.", sdk.Internal, ""},
		{401, "authError", "", sdk.Unauthenticated, "key"},
		{403, "forbidden", "", sdk.PermissionDenied, "roles/storage.objectUser"},
		{404, "notFound", "The specified bucket does not exist.", sdk.InvalidConfig, "bucket"},
		{407, "", "", sdk.Unavailable, "HTTPS_PROXY"},
		{408, "", "", sdk.Unavailable, ""},
		{409, "conflict", "", sdk.Unavailable, ""},
		{413, "uploadTooLarge", "", sdk.Unsupported, ""},
		{416, "requestedRangeNotSatisfiable", "", sdk.Corrupt, ""},
		{429, "", "", sdk.Throttled, ""},
		{500, "backendError", "", sdk.Unavailable, ""},
		{501, "", "", sdk.Unsupported, ""},
		{503, "backendError", "", sdk.Unavailable, ""},
		{507, "", "", sdk.NoSpace, ""},
	} {
		seen[c.reason] = true
		t.Run(strconv.Itoa(c.status)+" "+c.reason, func(t *testing.T) {
			told := explain(answer(c.status, c.reason, c.message))
			if told == nil || told.Code != c.want {
				t.Fatalf("%v, want %s", told, c.want)
			}
			if all := told.Hint + told.Attribute; !strings.Contains(all, c.says) {
				t.Errorf("%q does not say %q", all, c.says)
			}
			if !strings.Contains(told.Provider, c.reason) || !strings.Contains(told.Provider, "request 7f1e") {
				t.Errorf("the provider is %q", told.Provider)
			}
			if !strings.Contains(told.Err.Error(), strconv.Itoa(c.status)) || !strings.Contains(told.Err.Error(), c.message) {
				t.Errorf("the cause is %q", told.Err)
			}
		})
	}
	for reason := range meanings() {
		if !seen[reason] {
			t.Errorf("%s is in the table and in no row of this test", reason)
		}
	}
	if told := explain(io.ErrUnexpectedEOF); told != nil {
		t.Errorf("an error of the network is an answer of the store: %v", told)
	}
}

// CASES A71
func TestAMissingObjectIsNotAMissingBucket(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want sdk.Code
	}{
		{"an object", fmt.Errorf("%w: %w", storage.ErrObjectNotExist, answer(404, "notFound", "No such object: b/k")), sdk.NotFound},
		{"an object, said in plain text", fmt.Errorf("%w: %w", storage.ErrObjectNotExist, &googleapi.Error{Code: 404, Body: "No such object: b/k"}), sdk.NotFound},
		{"an object, said in the two words of the emulator", fmt.Errorf("%w: %w", storage.ErrObjectNotExist, &googleapi.Error{Code: 404, Body: "Not Found\n"}), sdk.NotFound},
		{"nothing: a page of a proxy", fmt.Errorf("%w: %w", storage.ErrObjectNotExist, &googleapi.Error{Code: 404, Body: "<html><h1>404 Not Found</h1></html>"}), sdk.Unavailable},
		{"nothing: no words at all", fmt.Errorf("%w: %w", storage.ErrObjectNotExist, &googleapi.Error{Code: 404}), sdk.Unavailable},
		{"the bucket of an object, said in plain text", fmt.Errorf("%w: %w", storage.ErrObjectNotExist, &googleapi.Error{Code: 404, Body: "The specified bucket does not exist."}), sdk.InvalidConfig},
		{"the bucket of an object", fmt.Errorf("%w: %w", storage.ErrObjectNotExist, answer(404, "notFound", "The specified bucket does not exist.")), sdk.InvalidConfig},
		{"the bucket of a listing", fmt.Errorf("%w: %w", storage.ErrBucketNotExist, answer(404, "notFound", "")), sdk.InvalidConfig},
		{"the bucket of an upload", answer(404, "notFound", "Not Found"), sdk.InvalidConfig},
	} {
		t.Run(c.name, func(t *testing.T) {
			if told := explain(c.err); told.Code != c.want {
				t.Errorf("%v, want %s", told, c.want)
			}
		})
	}
}

// CASES A14
func TestOnlyAConditionThatFailedMeansThatTheKeyExists(t *testing.T) {
	create := sdk.PutRequest{Key: "k", IfAbsent: true}
	for reason, want := range map[string]sdk.Code{
		"conditionNotMet": sdk.Exists, "": sdk.Unavailable, "orgPolicyConstraintFailed": sdk.PermissionDenied, "somethingNew": sdk.Unavailable,
	} {
		if got := sdk.CodeOf(existed(create, answer(412, reason, ""))); got != want {
			t.Errorf("a 412 with the reason %q is %s, want %s", reason, got, want)
		}
	}
}

func TestAnAnswerSaysWhenToComeBack(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"7":                             7 * time.Second,
		"Tue, 01 Dec 2026 22:02:00 GMT": 2 * time.Minute,
		"Tue, 01 Dec 2026 21:00:00 GMT": 0,
		"-1":                            0,
		"soon":                          0,
	} {
		told := explain(answer(503, "backendError", "", "Retry-After", value))
		if told.RetryAfter != want {
			t.Errorf("Retry-After %q is %v, want %v", value, told.RetryAfter, want)
		}
	}
}

func TestAnAnswerThatIsAPageIsToldByItsFirstLine(t *testing.T) {
	page := "<html>\n" + strings.Repeat("<p>not here</p>\n", 1000)
	told := explain(&googleapi.Error{Code: 502, Body: page})
	if want := "answer 502: <html>"; told.Err.Error() != want {
		t.Errorf("%q, want %q", told.Err, want)
	}
	if told = explain(&googleapi.Error{Code: 502, Body: strings.Repeat("x", 10_000)}); len(told.Err.Error()) > 400 {
		t.Errorf("%d bytes of text", len(told.Err.Error()))
	}
}
