package main

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"github.com/cairnsync/cairn/sdk"
)

// rereadAfter is how long credentials without an end are used before their source is read again: a rotated file is picked up within it.
const rereadAfter = time.Minute

// chain is the vendor's default chain, read anew each time: the vendor's own reads the shared files once for the life of a process.
// It is used behind an aws.CredentialsCache.
type chain struct {
	load func(context.Context) (aws.Config, error)
	now  func() time.Time
}

// Retrieve looks through the chain.
func (c chain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	cfg, err := c.load(ctx)
	if err != nil {
		return aws.Credentials{}, noCredentials(ctx, err)
	}
	found, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, noCredentials(ctx, err)
	}
	if !found.CanExpire {
		found.CanExpire, found.Expires = true, c.now().Add(rereadAfter)
	}
	return found, nil
}

func noCredentials(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &sdk.Error{
		Code: sdk.Unauthenticated, Err: err,
		Hint: "no credentials were found: give access_key and secret_key, a profile, or AWS_… variables in the env of the plugin block (a plugin sees no others, and no HOME)",
	}
}

// refresher repeats a request once, with fresh credentials, when the store says that the old ones are no longer good. It repeats
// nothing else, and nothing twice.
type refresher struct {
	aws.NopRetryer
	cache *aws.CredentialsCache
}

// MaxAttempts is two: the request and its one repetition.
func (refresher) MaxAttempts() int { return 2 }

// IsErrorRetryable says whether fresh credentials may help.
func (refresher) IsErrorRetryable(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "InvalidAccessKeyId", "XAdminUserNotFound":
		return true
	}
	return false
}

// RetryDelay is asked before the repetition: it drops the old credentials.
func (r refresher) RetryDelay(int, error) (time.Duration, error) {
	r.cache.Invalidate()
	return 0, nil
}
