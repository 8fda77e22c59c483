package main

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cairnsync/cairn/sdk"
)

// errorTable says what the answers of an S3 store mean; what never reached one is left to blobtarget.
type errorTable struct {
	bucket string
	now    func() time.Time // for a Retry-After that is a date
}

// explain is nil for an error that is no answer of a store.
func (t errorTable) explain(err error) *sdk.Error {
	var api smithy.APIError
	var res *smithyhttp.ResponseError
	isAPI := errors.As(err, &api)
	isResponse := errors.As(err, &res) && res.HTTPStatusCode() > 0 // 0: the client wraps failures without any response, too
	switch {
	case !isAPI && !isResponse:
		return nil
	case !isAPI && res.HTTPStatusCode()/100 == 2:
		return t.unreadable(err)
	}
	var code, message string
	if isAPI {
		code, message = api.ErrorCode(), api.ErrorMessage()
	}
	if !isResponse {
		e := t.row(code, 0, message)
		return &e
	}
	header := res.Response.Header
	e := t.row(code, res.HTTPStatusCode(), message)
	e.Provider = provider(code, requestID(err, header))
	e.RetryAfter = t.retryAfter(header.Get("Retry-After"))
	if e.Attribute == "region" {
		e.Hint = regionHint(header.Get("X-Amz-Bucket-Region"), message)
	}
	return &e
}

// unreadable is an answer of status 200 that ended early or is no XML; the network has told why, or nobody has.
func (t errorTable) unreadable(err error) *sdk.Error {
	var broken *smithy.DeserializationError
	if !errors.As(err, &broken) {
		return nil
	}
	return &sdk.Error{Code: sdk.Unavailable, Err: fmt.Errorf("the store's answer cannot be read: %w", broken.Err)}
}

// row is one entry of the table: by the store's own code, else by the status.
func (t errorTable) row(code string, status int, message string) sdk.Error {
	for _, part := range []func(string) (sdk.Error, bool){t.objects, t.access, t.settings, t.load} {
		if e, ok := part(code); ok {
			e.Err = told(code, status, message)
			return e
		}
	}
	e := t.byStatus(status)
	e.Err = told(code, status, message)
	return e
}

// told is what the store said, without the client's words around it.
func told(code string, status int, message string) error {
	message = strings.TrimSpace(message)
	switch {
	case message != "" && !strings.EqualFold(strings.ReplaceAll(message, " ", ""), code):
		return errors.New(message)
	case status != 0:
		return fmt.Errorf("the store answers %d %s", status, http.StatusText(status))
	}
	return fmt.Errorf("the store answers %s", code)
}

// provider is the vendor's code and the request's id, for its support.
func provider(code, request string) string {
	switch {
	case request == "":
		return code
	case code == "":
		return "request " + request
	}
	return code + ", request " + request
}

func requestID(err error, header http.Header) string {
	var id interface{ ServiceRequestID() string }
	if errors.As(err, &id) && id.ServiceRequestID() != "" {
		return id.ServiceRequestID()
	}
	return header.Get("X-Amz-Request-Id")
}

// retryAfter reads seconds or a date.
func (t errorTable) retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(t.now()))
}

// regionHint names the right region where the store does, in a header or in words.
func regionHint(header, message string) string {
	region := header
	if found := regexp.MustCompile(`expecting '([A-Za-z0-9-]+)'`).FindStringSubmatch(message); region == "" && found != nil {
		region = found[1]
	}
	if region == "" {
		return "the bucket is in another region or at another endpoint: correct region or endpoint"
	}
	return fmt.Sprintf("the bucket is in another region: region = %q", region)
}
