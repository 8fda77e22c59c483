package rudestore

import "net/http"

// trouble is what a store may complain of, whatever the vendor calls it.
type trouble uint8

const (
	none       trouble = iota
	incomplete         // the client went away: nobody is there to be answered
	noSuchKey
	keyExists
	conflict // another conditional write of the key is under way; only S3 says so
	rangeAfterEnd
	badDigest
	badRequest
	lengthRequired
	notImplemented
	noSuchBucket
	slowDown
	tooMany
	internalError
	accessDenied
	wrongCredentials
	expired
	moved
)

// said is a complaint in a vendor's words.
type said struct {
	status        int
	code, message string
}

// xmlCode is what the XML API of GCS calls it.
func (s said) xmlCode() string {
	switch s.status {
	case http.StatusNotFound:
		if s.message == noSuchBucket.words(GCS).message {
			return "NoSuchBucket"
		}
		return "NoSuchKey"
	case http.StatusForbidden:
		return "AccessDenied"
	case http.StatusUnauthorized:
		return "AuthenticationRequired"
	case http.StatusRequestedRangeNotSatisfiable:
		return "InvalidRange"
	case http.StatusTooManyRequests:
		return "SlowDown"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailable"
	}
	return "InternalError"
}

// words translates. What a vendor has no word for it calls an internal error.
func (what trouble) words(d Dialect) said {
	table := map[Dialect]map[trouble]said{S3: s3Words(), GCS: gcsWords(), Azure: azureWords()}[d]
	if s, ok := table[what]; ok {
		return s
	}
	return table[internalError]
}

func s3Words() map[trouble]said {
	return map[trouble]said{
		noSuchKey:        {404, "NoSuchKey", "The specified key does not exist."},
		keyExists:        {412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"},
		conflict:         {409, "ConditionalRequestConflict", "The conditional request cannot succeed due to a conflicting operation against this resource."},
		rangeAfterEnd:    {416, "InvalidRange", "The requested range is not satisfiable"},
		badDigest:        {400, "BadDigest", "The SHA256 you specified did not match the calculated checksum."},
		badRequest:       {400, "InvalidRequest", "The request is not valid."},
		lengthRequired:   {411, "MissingContentLength", "You must provide the Content-Length HTTP header."},
		notImplemented:   {501, "NotImplemented", "A header you provided implies functionality that is not implemented"},
		noSuchBucket:     {404, "NoSuchBucket", "The specified bucket does not exist"},
		slowDown:         {503, "SlowDown", "Please reduce your request rate."},
		tooMany:          {429, "TooManyRequests", "Too many requests."},
		internalError:    {500, "InternalError", "We encountered an internal error. Please try again."},
		accessDenied:     {403, "AccessDenied", "Access Denied"},
		wrongCredentials: {403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."},
		expired:          {400, "ExpiredToken", "The provided token has expired."},
		moved:            {301, "PermanentRedirect", "The bucket you are attempting to access must be addressed using the specified endpoint."},
	}
}

func gcsWords() map[trouble]said {
	return map[trouble]said{
		noSuchKey:        {404, "notFound", "No such object: " + bucket + "/the-key"},
		keyExists:        {412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold."},
		rangeAfterEnd:    {416, "requestedRangeNotSatisfiable", "Request range not satisfiable"},
		badDigest:        {400, "invalid", `Provided CRC32C "AAAAAA==" doesn't match calculated CRC32C "BBBBBB==".`},
		badRequest:       {400, "invalid", "Invalid value"},
		lengthRequired:   {411, "required", "You must provide a Content-Length."},
		notImplemented:   {501, "notImplemented", "Not implemented."},
		noSuchBucket:     {404, "notFound", "The specified bucket does not exist."},
		slowDown:         {503, "backendError", "We encountered an internal error. Please try again."},
		tooMany:          {429, "rateLimitExceeded", "The object exceeded the rate limit for object mutation operations (create, update, and delete)."},
		internalError:    {500, "backendError", "Backend Error"},
		accessDenied:     {403, "forbidden", "the caller does not have storage.objects.get access to the Google Cloud Storage object."},
		wrongCredentials: {401, "authError", "Invalid Credentials"},
		expired:          {401, "authError", "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."},
		moved:            {301, "movedPermanently", "The bucket has moved."},
	}
}

func azureWords() map[trouble]said {
	return map[trouble]said{
		noSuchKey:        {404, "BlobNotFound", "The specified blob does not exist."},
		keyExists:        {409, "BlobAlreadyExists", "The specified blob already exists."},
		rangeAfterEnd:    {416, "InvalidRange", "The range specified is invalid for the current size of the resource."},
		badDigest:        {400, "Md5Mismatch", "The MD5 value specified in the request did not match the MD5 value calculated by the server."},
		badRequest:       {400, "InvalidInput", "One of the request inputs is not valid."},
		lengthRequired:   {411, "MissingContentLengthHeader", "The Content-Length header was not specified."},
		notImplemented:   {501, "NotImplemented", "The requested operation is not implemented on the specified resource."},
		noSuchBucket:     {404, "ContainerNotFound", "The specified container does not exist."},
		slowDown:         {503, "ServerBusy", "Operations per second is over the account limit."},
		tooMany:          {429, "TooManyRequests", "The request rate is too high."},
		internalError:    {500, "InternalError", "The server encountered an internal error. Please retry the request."},
		accessDenied:     {403, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission."},
		wrongCredentials: {403, "AuthenticationFailed", "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."},
		expired:          {403, "AuthenticationFailed", "Server failed to authenticate the request. Signature not valid in the specified time frame."},
		moved:            {301, "ResourceMoved", "The account has moved."},
	}
}
