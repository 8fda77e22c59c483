package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/cairnsync/cairn/sdk"
)

// objects are answers about an object and its content.
func (t errorTable) objects(code string) (sdk.Error, bool) {
	switch code {
	case "NoSuchKey":
		return sdk.Error{Code: sdk.NotFound}, true
	case "PreconditionFailed": // conditions are sent with creates only
		return sdk.Error{Code: sdk.Exists}, true
	case "ConditionalRequestConflict", "OperationAborted": // nothing was stored; the next attempt meets the winner, if there is one
		return sdk.Error{Code: sdk.Unavailable}, true
	case "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "ContentSHA256Mismatch",
		"IncompleteBody", "InvalidRange":
		return sdk.Error{Code: sdk.Corrupt}, true
	case "EntityTooLarge", "MaxMessageLengthExceeded", "RequestEntityTooLarge":
		return sdk.Error{Code: sdk.Unsupported, Hint: tooLargeHint()}, true
	case "InvalidObjectState", "ObjectNotInActiveTierError":
		return sdk.Error{Code: sdk.Unavailable, Hint: "the object lies in an archive: restore it in the store, and keep the target's objects out of archiving lifecycle rules"}, true
	case "ExistingObjectIsDirectory", "ExistingObjectIsFile", "ObjectParentIsFile", "XMinioObjectExistsAsDirectory", "XMinioParentIsObject":
		return sdk.Error{Code: sdk.Unsupported, Hint: "this store keeps objects as files: choose prefixes of which none is a folder of another"}, true
	case "KeyTooLongError":
		return sdk.Error{Code: sdk.Unsupported, Hint: "choose a shorter prefix"}, true
	}
	return sdk.Error{}, false
}

func tooLargeHint() string {
	return fmt.Sprintf("let the store, and a proxy before it, take requests of %d MiB", sdk.MaxObject>>20)
}

// access are answers about who asks.
func (t errorTable) access(code string) (sdk.Error, bool) {
	switch code {
	case "AccessDenied", "Forbidden", "AllAccessDisabled", "AccountProblem", "NotSignedUp", "InvalidPayer", "UnauthorizedAccess":
		return sdk.Error{Code: sdk.PermissionDenied, Hint: t.rightsHint()}, true
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken":
		return sdk.Error{Code: sdk.Unauthenticated, Hint: "the temporary credentials are no longer good: give new ones, or a source that renews them"}, true
	case "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException", "XAdminUserNotFound":
		return sdk.Error{Code: sdk.Unauthenticated, Hint: "this store does not know the access key; is it of this store and still active?"}, true
	case "SignatureDoesNotMatch", "InvalidSecurity":
		return sdk.Error{Code: sdk.Unauthenticated, Hint: "the secret key does not belong to the access key, or a proxy changes requests on their way"}, true
	case "RequestTimeTooSkewed", "RequestExpired":
		return sdk.Error{Code: sdk.Unavailable, Hint: "the clock of this machine and that of the store differ by more than 15 minutes; set it, or let NTP do so"}, true
	}
	return sdk.Error{}, false
}

func (t errorTable) rightsHint() string {
	return fmt.Sprintf("the target needs s3:ListBucket on %s, and s3:GetObject, s3:PutObject and s3:DeleteObject on %s/*; "+
		"without s3:ListBucket a store does not tell a missing object from a forbidden one", t.bucket, t.bucket)
}

// settings are answers that blame the configuration. The hint of a region is filled in by explain, which has the header.
func (t errorTable) settings(code string) (sdk.Error, bool) {
	invalid := func(attribute, hint string) (sdk.Error, bool) {
		return sdk.Error{Code: sdk.InvalidConfig, Attribute: attribute, Hint: hint}, true
	}
	switch code {
	case "NoSuchBucket", "InvalidBucketName":
		return invalid("bucket", fmt.Sprintf("there is no bucket %q at this endpoint: create it (cairn makes no buckets), or correct bucket, region or endpoint", t.bucket))
	case "PermanentRedirect", "TemporaryRedirect", "MovedPermanently", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return invalid("region", "")
	case "InvalidStorageClass":
		return invalid("storage_class", "this store does not know the class; leave storage_class out, or name one of the store's own")
	case "InvalidEncryptionAlgorithmError", "ServerSideEncryptionConfigurationNotFoundError":
		return invalid("sse", "this store does not encrypt that way; leave sse out for the bucket's own")
	case "InvalidArgument", "InvalidRequest", "MalformedXML":
		return sdk.Error{Code: sdk.Unsupported, Hint: "the store refuses a request that Amazon S3 takes; is it recent enough for conditional writes and SHA-256 checksums?"}, true
	case "NotImplemented", "MethodNotAllowed":
		return sdk.Error{Code: sdk.Unsupported, Hint: "the store does not know this request; see its documentation on S3 compatibility"}, true
	}
	if strings.HasPrefix(code, "KMS.") {
		return invalid("sse_kms_key_id", "the KMS key cannot be used: is it there, enabled, in this region, and may these credentials use it?")
	}
	return sdk.Error{}, false
}

// load are answers of a store that has too much to do, or no room.
func (t errorTable) load(code string) (sdk.Error, bool) {
	switch code {
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled",
		"TooManyRequests", "TooManyRequestsException", "BandwidthLimitExceeded", "EC2ThrottledException", "PriorRequestNotComplete":
		return sdk.Error{Code: sdk.Throttled}, true
	case "InternalError", "ServiceUnavailable", "RequestTimeout", "Busy", "XMinioServerNotInitialized":
		return sdk.Error{Code: sdk.Unavailable}, true
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientCapacity", "StorageFull", "StorageQuotaExceeded", "InsufficientStorage":
		return sdk.Error{Code: sdk.NoSpace, Hint: fmt.Sprintf("free space in the store, or raise the quota of bucket %s", t.bucket)}, true
	}
	return sdk.Error{}, false
}

// byStatus is for codes that nobody has heard of, and for answers without one. A bare 404 or 412 comes from something before
// the store, or from a wrong endpoint: it proves nothing about an object.
func (t errorTable) byStatus(status int) sdk.Error {
	switch status {
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return sdk.Error{Code: sdk.InvalidConfig, Attribute: "region"}
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return sdk.Error{Code: sdk.Unauthenticated}
	case http.StatusForbidden:
		return sdk.Error{Code: sdk.PermissionDenied, Hint: t.rightsHint()}
	case http.StatusNotFound:
		return sdk.Error{Code: sdk.Unavailable, Hint: "this is not the answer of an S3 store; check the endpoint, path_style, and proxies before it"}
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return sdk.Error{Code: sdk.Unsupported}
	case http.StatusRequestEntityTooLarge:
		return sdk.Error{Code: sdk.Unsupported, Hint: tooLargeHint()}
	case http.StatusRequestedRangeNotSatisfiable:
		return sdk.Error{Code: sdk.Corrupt}
	case http.StatusTooManyRequests:
		return sdk.Error{Code: sdk.Throttled}
	case http.StatusInsufficientStorage:
		return sdk.Error{Code: sdk.NoSpace}
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusPreconditionFailed: // of the last two, put has looked what is there
		return sdk.Error{Code: sdk.Unavailable}
	}
	if status >= http.StatusInternalServerError {
		return sdk.Error{Code: sdk.Unavailable}
	}
	return sdk.Error{Code: sdk.Internal}
}
