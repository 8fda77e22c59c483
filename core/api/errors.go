package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cairnsync/cairn/sdk/client"
)

// Error is the body of every answer that is not a success.
type Error struct {
	Message string         `json:"message" doc:"What went wrong and what to do about it."`
	Code    string         `json:"error_code" doc:"Stable name of the kind of error."`
	Details map[string]any `json:"details" doc:"Values that belong to the error."`

	status     int
	retryAfter time.Duration
}

// Errorf makes an error with an HTTP status.
func Errorf(status int, code, format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...), Code: code, Details: map[string]any{}, status: status}
}

// With adds a detail.
func (e *Error) With(key string, value any) *Error {
	e.Details[key] = value
	return e
}

// After tells the client when to come again.
func (e *Error) After(d time.Duration) *Error {
	e.retryAfter = d
	return e
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// GetStatus is the HTTP status; it makes the error known to the HTTP library.
func (e *Error) GetStatus() int { return e.status }

// GetHeaders holds Retry-After where the error is a matter of time.
func (e *Error) GetHeaders() http.Header {
	headers := http.Header{}
	if e.retryAfter > 0 {
		seconds := int64((e.retryAfter + time.Second - 1) / time.Second)
		headers.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	return headers
}

// asError gives any error the shape of the API.
func asError(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return Errorf(http.StatusInternalServerError, client.CodeInternal, "%v", err)
}

// sameShape turns the HTTP library's own errors (an unknown parameter, a body too large) into Error.
func sameShape(_ huma.Context, _ string, body any) (any, error) {
	model, ok := body.(*huma.ErrorModel)
	if !ok {
		return body, nil
	}
	parts := []string{}
	for _, detail := range model.Errors {
		parts = append(parts, strings.TrimSpace(detail.Message+" "+detail.Location))
	}
	message := model.Detail
	if len(parts) > 0 {
		message += ": " + strings.Join(parts, "; ")
	}
	return Errorf(model.Status, codeOf(model.Status), "%s", message), nil
}

func codeOf(status int) string {
	switch {
	case status == http.StatusNotFound:
		return client.CodeNotFound
	case status == http.StatusRequestEntityTooLarge:
		return client.CodeTooLarge
	case status >= http.StatusInternalServerError:
		return client.CodeInternal
	}
	return client.CodeBadRequest
}
