package main

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
)

// meaning is what an answer of the store comes to for the host and for the operator.
type meaning struct {
	code      sdk.Code
	attribute string
	hint      string
}

const (
	hintCredentials = "the credentials were refused: is the key disabled or deleted, or the clock of this machine wrong?"
	hintRights      = "give the account of the credentials the role roles/storage.objectUser on the bucket"
	hintBucket      = "create the bucket, or correct its name; this plugin never creates one"
	hintEndpoint    = "that is no answer of Cloud Storage: correct the endpoint, or look at the proxy in between"
	hintRetention   = "a retention policy or a hold of the bucket forbids it; retention cannot delete while it lasts"
	hintPolicy      = "a policy of the organization forbids it; look at what the constraint asks of the bucket"
	hintBilling     = "look at the project's billing"
	hintProject     = "the bucket makes the requester pay: name the project that does in GOOGLE_CLOUD_QUOTA_PROJECT in the env of the plugin block"
)

// meanings is the table of the JSON API's reasons. Those that say no more than their status are not in it.
func meanings() map[string]meaning {
	return map[string]meaning{
		"rateLimitExceeded":     {code: sdk.Throttled},
		"userRateLimitExceeded": {code: sdk.Throttled},

		"quotaExceeded":        {code: sdk.NoSpace, hint: "raise the quota of the project"},
		"storageQuotaExceeded": {code: sdk.NoSpace, hint: "raise the quota of the project"},

		"accountDisabled":           {code: sdk.PermissionDenied, hint: hintBilling},
		"billingNotEnabled":         {code: sdk.PermissionDenied, hint: hintBilling},
		"UserProjectAccountProblem": {code: sdk.PermissionDenied, hint: hintBilling},
		"UserProjectAccessDenied":   {code: sdk.PermissionDenied, hint: hintProject},
		"orgPolicyConstraintFailed": {code: sdk.PermissionDenied, hint: hintPolicy},
		"retentionPolicyNotMet":     {code: sdk.PermissionDenied, hint: hintRetention},
		"objectUnderActiveHold":     {code: sdk.PermissionDenied, hint: hintRetention},
		"sslRequired":               {code: sdk.InvalidConfig, attribute: "endpoint", hint: "give an https endpoint"},
		"userProjectMissing":        {code: sdk.InvalidConfig, attribute: "bucket", hint: hintProject},
		"invalidBucketName":         {code: sdk.InvalidConfig, attribute: "bucket", hint: hintBucket},

		"uploadBrokenConnection": {code: sdk.Unavailable},
	}
}

// byStatus is for an answer without a reason that the table knows.
func byStatus(status int) meaning {
	switch {
	case status == http.StatusUnauthorized:
		return meaning{code: sdk.Unauthenticated, hint: hintCredentials}
	case status == http.StatusForbidden:
		return meaning{code: sdk.PermissionDenied, hint: hintRights}
	case status == http.StatusNotFound:
		return meaning{code: sdk.InvalidConfig, attribute: "bucket", hint: hintBucket} // of an object: see explain
	case status >= 300 && status < 400:
		return meaning{code: sdk.InvalidConfig, attribute: "endpoint", hint: hintEndpoint}
	case status == http.StatusProxyAuthRequired:
		return meaning{code: sdk.Unavailable, hint: "the proxy asks for a login: give it in HTTPS_PROXY in the env of the plugin block"}
	case status == http.StatusTooManyRequests:
		return meaning{code: sdk.Throttled}
	case status == http.StatusRequestEntityTooLarge, status == http.StatusNotImplemented:
		return meaning{code: sdk.Unsupported}
	case status == http.StatusRequestedRangeNotSatisfiable:
		return meaning{code: sdk.Corrupt}
	case status == http.StatusInsufficientStorage:
		return meaning{code: sdk.NoSpace}
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusPreconditionFailed, status >= 500:
		return meaning{code: sdk.Unavailable}
	}
	return meaning{code: sdk.Internal}
}

// explain is blobtarget's Hooks.Error: nil for whatever is no answer of the store.
func explain(err error) *sdk.Error {
	var answer *googleapi.Error
	if !errors.As(err, &answer) {
		return nil
	}
	answer = parsed(answer)
	m := meaningOf(err, answer)
	return &sdk.Error{
		Code: m.code, Attribute: m.attribute, Hint: m.hint, Provider: provider(answer),
		RetryAfter: blobtarget.RetryAfter(answer.Header),
		Err:        errors.New(text(answer)),
	}
}

// parsed gives an answer to a read of content its message and reasons: Google's client reads them only where it expects JSON.
func parsed(answer *googleapi.Error) *googleapi.Error {
	if answer.Message != "" || answer.Body == "" {
		return answer
	}
	err := googleapi.CheckResponseWithBody(&http.Response{StatusCode: answer.Code, Header: answer.Header}, []byte(answer.Body))
	var full *googleapi.Error
	if !errors.As(err, &full) {
		return answer
	}
	return full
}

func meaningOf(err error, answer *googleapi.Error) meaning {
	if m, known := meanings()[reason(answer)]; known {
		return m
	}
	switch {
	case answer.Code == http.StatusNotFound && !speaks(answer):
		return meaning{code: sdk.Unavailable, hint: hintEndpoint}
	case errors.Is(err, storage.ErrObjectNotExist) && !saysBucket(answer):
		return meaning{code: sdk.NotFound}
	case answer.Code == http.StatusBadRequest && strings.Contains(strings.ToLower(text(answer)), "crc32c"):
		return meaning{code: sdk.Corrupt, hint: "the content was changed on its way to the store, or on the disk while it was read"}
	}
	return byStatus(answer.Code)
}

// speaks tells a 404 of the store from the page of something before it, which proves nothing about an object: Google's client makes
// ErrObjectNotExist of both. Where content was asked for the store answers in plain text, and so does its emulator, in two words.
func speaks(answer *googleapi.Error) bool {
	line := text(answer)
	return reason(answer) != "" || saysBucket(answer) || strings.Contains(line, "No such object") || strings.HasSuffix(line, "404: Not Found")
}

// saysBucket tells a missing bucket from a missing object: both are 404 with the reason notFound, and only the message differs.
func saysBucket(answer *googleapi.Error) bool {
	return strings.Contains(text(answer), "bucket does not exist")
}

func reason(answer *googleapi.Error) string {
	if len(answer.Errors) == 0 {
		return ""
	}
	return answer.Errors[0].Reason
}

// text is the answer in a line: its message, or the first line of what a server without messages says.
func text(answer *googleapi.Error) string {
	message := answer.Message
	if message == "" {
		message = answer.Body
	}
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	if len(message) > maxText {
		message = message[:maxText] + "…"
	}
	line := "answer " + strconv.Itoa(answer.Code)
	if message == "" {
		return line
	}
	return line + ": " + message
}

const maxText = 300

func provider(answer *googleapi.Error) string {
	var parts []string
	if r := reason(answer); r != "" {
		parts = append(parts, r)
	}
	if id := answer.Header.Get("X-Guploader-Uploadid"); id != "" {
		parts = append(parts, "request "+id)
	}
	return strings.Join(parts, ", ")
}
