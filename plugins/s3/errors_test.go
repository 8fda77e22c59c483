package main

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// CASES A14
func TestTheAnswersOfStoresHaveTheirMeaning(t *testing.T) {
	for _, c := range []struct {
		code   string
		status int
		want   sdk.Code
		says   string // in the hint or the attribute, "" = no hint is needed
	}{
		{"NoSuchKey", 404, sdk.NotFound, ""},
		{"PreconditionFailed", 412, sdk.Exists, ""},
		{"ConditionalRequestConflict", 409, sdk.Unavailable, ""},
		{"OperationAborted", 409, sdk.Unavailable, ""},
		{"BadDigest", 400, sdk.Corrupt, ""},
		{"InvalidDigest", 400, sdk.Corrupt, ""},
		{"XAmzContentSHA256Mismatch", 400, sdk.Corrupt, ""},
		{"XAmzContentChecksumMismatch", 400, sdk.Corrupt, ""},
		{"IncompleteBody", 400, sdk.Corrupt, ""},
		{"InvalidRange", 416, sdk.Corrupt, ""},
		{"EntityTooLarge", 400, sdk.Unsupported, "64 MiB"},
		{"MaxMessageLengthExceeded", 400, sdk.Unsupported, "64 MiB"},
		{"InvalidObjectState", 403, sdk.Unavailable, "archive"},
		{"ExistingObjectIsDirectory", 409, sdk.Unsupported, "folder"},
		{"ObjectParentIsFile", 409, sdk.Unsupported, "folder"},
		{"XMinioObjectExistsAsDirectory", 409, sdk.Unsupported, "folder"},
		{"KeyTooLongError", 400, sdk.Unsupported, "prefix"},
		{"AccessDenied", 403, sdk.PermissionDenied, "s3:ListBucket"},
		{"AllAccessDisabled", 403, sdk.PermissionDenied, "s3:ListBucket"},
		{"AccountProblem", 403, sdk.PermissionDenied, "s3:ListBucket"},
		{"ExpiredToken", 400, sdk.Unauthenticated, "temporary credentials"},
		{"TokenRefreshRequired", 400, sdk.Unauthenticated, "temporary credentials"},
		{"InvalidToken", 400, sdk.Unauthenticated, "temporary credentials"},
		{"InvalidAccessKeyId", 403, sdk.Unauthenticated, "does not know the access key"},
		{"XAdminUserNotFound", 404, sdk.Unauthenticated, "does not know the access key"}, // versitygw
		{"SignatureDoesNotMatch", 403, sdk.Unauthenticated, "secret key"},
		{"RequestTimeTooSkewed", 403, sdk.Unavailable, "clock"},
		{"NoSuchBucket", 404, sdk.InvalidConfig, `no bucket "bucket"`},
		{"InvalidBucketName", 400, sdk.InvalidConfig, `no bucket "bucket"`},
		{"PermanentRedirect", 301, sdk.InvalidConfig, "region"},
		{"TemporaryRedirect", 307, sdk.InvalidConfig, "region"},
		{"AuthorizationHeaderMalformed", 400, sdk.InvalidConfig, "region"},
		{"IllegalLocationConstraintException", 400, sdk.InvalidConfig, "region"},
		{"InvalidStorageClass", 400, sdk.InvalidConfig, "storage_class"},
		{"InvalidEncryptionAlgorithmError", 400, sdk.InvalidConfig, "sse"},
		{"KMS.NotFoundException", 400, sdk.InvalidConfig, "sse_kms_key_id"},
		{"KMS.DisabledException", 400, sdk.InvalidConfig, "sse_kms_key_id"},
		{"InvalidArgument", 400, sdk.Unsupported, "recent enough"},
		{"NotImplemented", 501, sdk.Unsupported, "compatibility"},
		{"MethodNotAllowed", 405, sdk.Unsupported, "compatibility"},
		{"SlowDown", 503, sdk.Throttled, ""},
		{"ThrottlingException", 400, sdk.Throttled, ""},
		{"RequestLimitExceeded", 503, sdk.Throttled, ""},
		{"TooManyRequests", 429, sdk.Throttled, ""},
		{"InternalError", 500, sdk.Unavailable, ""},
		{"ServiceUnavailable", 503, sdk.Unavailable, ""},
		{"RequestTimeout", 400, sdk.Unavailable, ""},
		{"QuotaExceeded", 403, sdk.NoSpace, "quota of bucket bucket"},
		{"XMinioStorageFull", 507, sdk.NoSpace, "quota of bucket bucket"},
		{"InsufficientCapacity", 503, sdk.NoSpace, "quota of bucket bucket"},
		// Codes that nobody has heard of go by their status.
		{"Quux", 307, sdk.InvalidConfig, "region"},
		{"Quux", 400, sdk.Internal, ""},
		{"Quux", 401, sdk.Unauthenticated, ""},
		{"Quux", 403, sdk.PermissionDenied, "s3:ListBucket"},
		{"Quux", 404, sdk.Unavailable, "endpoint"},
		{"Quux", 405, sdk.Unsupported, ""},
		{"Quux", 408, sdk.Unavailable, ""},
		{"Quux", 409, sdk.Unavailable, ""},
		{"Quux", 412, sdk.Unavailable, ""},
		{"Quux", 413, sdk.Unsupported, "64 MiB"},
		{"Quux", 416, sdk.Corrupt, ""},
		{"Quux", 429, sdk.Throttled, ""},
		{"Quux", 500, sdk.Unavailable, ""},
		{"Quux", 502, sdk.Unavailable, ""},
		{"Quux", 503, sdk.Unavailable, ""},
		{"Quux", 504, sdk.Unavailable, ""},
		{"Quux", 507, sdk.NoSpace, ""},
	} {
		t.Run(fmt.Sprint(c.code, " ", c.status), func(t *testing.T) {
			store := record(t, says(c.status, errorXML(c.code, "what the store says"), "X-Amz-Request-Id", "R7"))
			req := putRequest("k/1", "x")
			req.IfAbsent = c.want == sdk.Exists // a Put without a condition is never told so
			_, err := openAt(t, store.URL).Put(t.Context(), req)
			e := wantError(t, err, c.want, "put k/1", "what the store says", c.code+", request R7", c.says)
			if c.says == "" && e.Hint != "" {
				t.Errorf("the hint %q is in no row", e.Hint)
			}
		})
	}
}

func TestTheRightRegionIsNamedWhereTheStoreSaysIt(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		header  []string
		hint    string
	}{
		"in words":     {"The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-central-1'", nil, `region = "eu-central-1"`},
		"in a header":  {"The bucket must be addressed using the specified endpoint.", []string{"X-Amz-Bucket-Region", "ap-south-1"}, `region = "ap-south-1"`},
		"not anywhere": {"The bucket must be addressed using the specified endpoint.", nil, "correct region or endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			store := record(t, says(301, errorXML("PermanentRedirect", c.message), c.header...))
			e := wantError(t, call(t.Context(), openAt(t, store.URL), "get"), sdk.InvalidConfig, c.hint)
			if e.Attribute != "region" || len(store.requests()) != 1 {
				t.Errorf("attribute %q after %d requests", e.Attribute, len(store.requests()))
			}
		})
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	table := errorTable{now: func() time.Time { return now }}
	for value, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-7":                            0,
		"soon":                          0,
		"Tue, 01 Dec 2026 12:00:30 GMT": 30 * time.Second,
		"Tue, 01 Dec 2026 11:00:00 GMT": 0,
	} {
		if have := table.retryAfter(value); have != want {
			t.Errorf("Retry-After: %s is %v, want %v", value, have, want)
		}
	}
}

func TestAStoreThatCannotBeReachedIsUnavailable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	for _, verb := range verbs() {
		wantError(t, call(t.Context(), openAt(t, server.URL), verb), sdk.Unavailable, "refused")
	}
}
