package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/cairnsync/cairn/sdk"
)

// answer is what the store says, as its client makes an error of it.
func answer(status int, code string, header ...string) error {
	h := http.Header{"X-Ms-Request-Id": {"7f1e"}, "Date": {"Tue, 01 Dec 2026 22:00:00 GMT"}}
	if code != "" {
		h.Set("X-Ms-Error-Code", code)
	}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	body := "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>What happened.\nRequestId:7f1e\nTime:now</Message></Error>"
	return runtime.NewResponseError(&http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))})
}

// answers has a row for every code of the table and every status that the plugin knows.
func answers() []struct {
	status int
	code   string
	want   sdk.Code
	says   string // in hint or attribute
} {
	return []struct {
		status int
		code   string
		want   sdk.Code
		says   string
	}{
		{404, "BlobNotFound", sdk.NotFound, ""},
		{409, "BlobAlreadyExists", sdk.Exists, ""},
		{403, "AuthenticationFailed", sdk.Unauthenticated, "expired"},
		{400, "InvalidAuthenticationInfo", sdk.Unauthenticated, "key"},
		{401, "NoAuthenticationInformation", sdk.Unauthenticated, "key"},
		{403, "AuthorizationFailure", sdk.PermissionDenied, "firewall"},
		{403, "AuthorizationPermissionMismatch", sdk.PermissionDenied, "Storage Blob Data Contributor"},
		{403, "AuthorizationProtocolMismatch", sdk.PermissionDenied, "https"},
		{403, "AuthorizationResourceTypeMismatch", sdk.PermissionDenied, "srt=co"},
		{403, "AuthorizationServiceMismatch", sdk.PermissionDenied, "ss=b"},
		{403, "AuthorizationSourceIPMismatch", sdk.PermissionDenied, "addresses"},
		{403, "InsufficientAccountPermissions", sdk.PermissionDenied, "racwdl"},
		{403, "UnauthorizedBlobOverwrite", sdk.PermissionDenied, "racwdl"},
		{403, "AccountIsDisabled", sdk.PermissionDenied, "subscription"},
		{409, "ContainerDisabled", sdk.PermissionDenied, "administrator"},
		{409, "BlobImmutableDueToPolicy", sdk.PermissionDenied, "immutability"},
		{412, "LeaseIdMissing", sdk.PermissionDenied, "lease"},
		{403, "KeyBasedAuthenticationNotPermitted", sdk.PermissionDenied, "role"},
		{409, "PublicAccessNotPermitted", sdk.PermissionDenied, "role"},
		{404, "ContainerNotFound", sdk.InvalidConfig, "container"},
		{404, "ResourceNotFound", sdk.InvalidConfig, "container"},
		{400, "InvalidResourceName", sdk.InvalidConfig, "container"},
		{400, "InvalidUri", sdk.InvalidConfig, "endpoint"},
		{400, "InvalidBlobTier", sdk.InvalidConfig, "access_tier"},
		{409, "BlobTierInadequateForContentLength", sdk.InvalidConfig, "access_tier"},
		{409, "AccessTierNotSupportedForBlobType", sdk.InvalidConfig, "access_tier"},
		{409, "FeatureNotYetSupportedForHierarchicalNamespaceAccounts", sdk.InvalidConfig, "hierarchical"},
		{503, "ServerBusy", sdk.Throttled, ""},
		{500, "InternalError", sdk.Unavailable, ""},
		{500, "OperationTimedOut", sdk.Unavailable, ""},
		{409, "AccountBeingCreated", sdk.Unavailable, "wait"},
		{409, "ContainerBeingDeleted", sdk.Unavailable, "30 seconds"},
		{409, "SystemInUse", sdk.Unavailable, ""},
		{409, "BlobArchived", sdk.Unavailable, "rehydrate"},
		{409, "BlobBeingRehydrated", sdk.Unavailable, "hours"},
		{400, "Md5Mismatch", sdk.Corrupt, "changed"},
		{400, "InvalidMd5", sdk.Corrupt, ""},
		{416, "InvalidRange", sdk.Corrupt, ""},
		{413, "RequestBodyTooLarge", sdk.Unsupported, ""},
		{409, "InvalidBlobType", sdk.Unsupported, "block blobs"},
		{409, "SnapshotsPresent", sdk.Unsupported, "snapshots"},

		{200, "", sdk.Unavailable, "proxy"},
		{301, "", sdk.InvalidConfig, "endpoint"},
		{400, "", sdk.Internal, ""},
		{401, "", sdk.Unauthenticated, "key"},
		{403, "", sdk.PermissionDenied, "role"},
		{403, "SomethingNew", sdk.PermissionDenied, "role"},
		{404, "", sdk.InvalidConfig, "endpoint"},
		{407, "", sdk.Unavailable, "HTTPS_PROXY"},
		{408, "", sdk.Unavailable, ""},
		{409, "", sdk.Unavailable, ""},
		{413, "", sdk.Unsupported, ""},
		{416, "", sdk.Corrupt, ""},
		{429, "", sdk.Throttled, ""},
		{501, "", sdk.Unsupported, ""},
		{502, "", sdk.Unavailable, ""},
		{503, "", sdk.Unavailable, ""},
		{507, "", sdk.NoSpace, "capacity"},
	}
}

// CASES A14
func TestEveryAnswerOfAzureHasAMeaning(t *testing.T) {
	seen := map[bloberror.Code]bool{}
	for _, c := range answers() {
		seen[bloberror.Code(c.code)] = true
		t.Run(strconv.Itoa(c.status)+" "+c.code, func(t *testing.T) {
			told := table{}.explain(answer(c.status, c.code))
			if told == nil || told.Code != c.want {
				t.Fatalf("%v, want %s", told, c.want)
			}
			if all := told.Hint + told.Attribute; !strings.Contains(all, c.says) {
				t.Errorf("%q does not say %q", all, c.says)
			}
			if !strings.Contains(told.Provider, c.code) || !strings.Contains(told.Provider, "request 7f1e") {
				t.Errorf("the provider is %q", told.Provider)
			}
			if want := "answer " + strconv.Itoa(c.status) + ": What happened."; told.Err.Error() != want {
				t.Errorf("the cause is %q, want %q", told.Err, want)
			}
		})
	}
	for code := range meanings() {
		if !seen[code] {
			t.Errorf("%s is in the table and in no row of this test", code)
		}
	}
	if told := (table{}).explain(io.ErrUnexpectedEOF); told != nil {
		t.Errorf("an error of the network is an answer of the store: %v", told)
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
		told := table{}.explain(answer(503, "ServerBusy", "Retry-After", value))
		if told.RetryAfter != want {
			t.Errorf("Retry-After %q is %v, want %v", value, told.RetryAfter, want)
		}
	}
}

func TestARefusedSignatureSaysWhenItEnds(t *testing.T) {
	told := table{loc: location{sas: testSAS}}.explain(answer(403, "AuthenticationFailed"))
	if !strings.Contains(told.Hint, "2026-12-31T00:00:00Z") {
		t.Errorf("the hint is %q", told.Hint)
	}
}
