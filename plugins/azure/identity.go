package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/cairnsync/cairn/sdk"
)

const hintChain = `a plugin sees no environment but its own: give account_key, sas_token or connection_string, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and ` +
	`AZURE_CLIENT_SECRET (or what a managed or workload identity needs) in the env of the plugin block`

// identity gives the errors of a credential the codes that the host acts on.
type identity struct {
	inner azcore.TokenCredential
}

// GetToken asks the credential.
func (i identity) GetToken(ctx context.Context, opts policy.TokenRequestOptions) (azcore.AccessToken, error) {
	seen := &atomic.Pointer[error]{}
	token, err := i.inner.GetToken(context.WithValue(ctx, faultKey{}, seen), opts)
	if err == nil || ctx.Err() != nil {
		return token, err
	}
	return token, identityFault(err, seen.Load() != nil)
}

// identityFault tells a refusal from an authority that cannot be reached. azidentity keeps the error of the network as text, so the
// transport has noted whether there was one; a metadata service that is not there is no outage, it is no credential.
func identityFault(err error, unreachable bool) error {
	var failed *azidentity.AuthenticationFailedError
	if errors.As(err, &failed) {
		if res := failed.RawResponse; res != nil {
			unreachable = res.StatusCode >= http.StatusInternalServerError || res.StatusCode == http.StatusTooManyRequests
		}
		if unreachable {
			return &sdk.Error{Code: sdk.Unavailable, Err: err, Hint: "the authority that gives tokens does not answer"}
		}
	}
	return &sdk.Error{Code: sdk.Unauthenticated, Err: err, Hint: hintChain}
}

type faultKey struct{}

// noteFault remembers for GetToken that a request of its context did not reach its server.
func noteFault(ctx context.Context, err error) {
	if seen, ok := ctx.Value(faultKey{}).(*atomic.Pointer[error]); ok {
		seen.Store(&err)
	}
}
