package main

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
)

// meaning is what an answer of Azure comes to for the host and for the operator.
type meaning struct {
	code      sdk.Code
	attribute string
	hint      string
}

const (
	hintCredentials = "is it the account's key or signature, copied whole and not expired? Keys that were rotated are refused at once"
	hintRights      = `give the identity the role "Storage Blob Data Contributor" on the container; a sas_token needs the rights r, c, w, d and l (racwdl)`
	hintContainer   = "create the container, or correct its name and the account; this plugin never creates one"
	hintEndpoint    = "that is no answer of a blob service: correct account and endpoint, or look at the proxy in between"
	hintTier        = "this kind of account has no such tier for block blobs: leave access_tier out, or choose another"
	hintImmutable   = "the container has an immutability policy or a legal hold; retention cannot delete while it lasts"
)

// meanings is the table of Azure's error codes.
func meanings() map[bloberror.Code]meaning {
	return map[bloberror.Code]meaning{
		bloberror.BlobNotFound:      {code: sdk.NotFound},
		bloberror.BlobAlreadyExists: {code: sdk.Exists},

		bloberror.AuthenticationFailed:        {code: sdk.Unauthenticated, hint: hintCredentials},
		bloberror.InvalidAuthenticationInfo:   {code: sdk.Unauthenticated, hint: hintCredentials},
		bloberror.NoAuthenticationInformation: {code: sdk.Unauthenticated, hint: hintCredentials},

		bloberror.AuthorizationFailure:              {code: sdk.PermissionDenied, hint: hintRights + "; a firewall of the account answers so too"},
		bloberror.AuthorizationPermissionMismatch:   {code: sdk.PermissionDenied, hint: hintRights},
		bloberror.AuthorizationProtocolMismatch:     {code: sdk.PermissionDenied, hint: "the sas_token is for https only: give an https endpoint"},
		bloberror.AuthorizationResourceTypeMismatch: {code: sdk.PermissionDenied, hint: "the sas_token must be for containers and objects (srt=co)"},
		bloberror.AuthorizationServiceMismatch:      {code: sdk.PermissionDenied, hint: "the sas_token must be for the blob service (ss=b)"},
		bloberror.AuthorizationSourceIPMismatch:     {code: sdk.PermissionDenied, hint: "the sas_token is for other addresses than this machine's"},
		bloberror.InsufficientAccountPermissions:    {code: sdk.PermissionDenied, hint: hintRights},
		bloberror.UnauthorizedBlobOverwrite:         {code: sdk.PermissionDenied, hint: hintRights},
		bloberror.AccountIsDisabled:                 {code: sdk.PermissionDenied, hint: "the account is disabled: look at the subscription"},
		bloberror.ContainerDisabled:                 {code: sdk.PermissionDenied, hint: "an administrator has disabled the container"},
		bloberror.BlobImmutableDueToPolicy:          {code: sdk.PermissionDenied, hint: hintImmutable},
		bloberror.LeaseIDMissing:                    {code: sdk.PermissionDenied, hint: "somebody holds a lease on the blob: break it"},
		"KeyBasedAuthenticationNotPermitted":        {code: sdk.PermissionDenied, hint: "the account forbids account keys: use a role and the default chain instead"},
		"PublicAccessNotPermitted":                  {code: sdk.PermissionDenied, hint: hintRights},

		bloberror.ContainerNotFound:                  {code: sdk.InvalidConfig, attribute: "container", hint: hintContainer},
		bloberror.ResourceNotFound:                   {code: sdk.InvalidConfig, attribute: "container", hint: hintContainer},
		bloberror.InvalidResourceName:                {code: sdk.InvalidConfig, attribute: "container", hint: hintContainer},
		bloberror.InvalidURI:                         {code: sdk.InvalidConfig, attribute: "endpoint", hint: hintEndpoint},
		bloberror.InvalidBlobTier:                    {code: sdk.InvalidConfig, attribute: "access_tier", hint: hintTier},
		bloberror.BlobTierInadequateForContentLength: {code: sdk.InvalidConfig, attribute: "access_tier", hint: hintTier},
		"AccessTierNotSupportedForBlobType":          {code: sdk.InvalidConfig, attribute: "access_tier", hint: hintTier},
		"FeatureNotYetSupportedForHierarchicalNamespaceAccounts": {
			code: sdk.InvalidConfig, attribute: "account", hint: "use an account without a hierarchical namespace",
		},

		bloberror.ServerBusy:            {code: sdk.Throttled},
		bloberror.InternalError:         {code: sdk.Unavailable},
		bloberror.OperationTimedOut:     {code: sdk.Unavailable},
		bloberror.AccountBeingCreated:   {code: sdk.Unavailable, hint: "the account is being created: wait"},
		bloberror.ContainerBeingDeleted: {code: sdk.Unavailable, hint: "the container is being deleted; its name is free again after 30 seconds or more"},
		bloberror.SystemInUse:           {code: sdk.Unavailable},
		bloberror.BlobArchived:          {code: sdk.Unavailable, hint: "the blob lies in the archive tier: rehydrate it, and look for the lifecycle rule that moved it"},
		bloberror.BlobBeingRehydrated:   {code: sdk.Unavailable, hint: "the blob is being rehydrated: this takes hours"},

		bloberror.MD5Mismatch:  {code: sdk.Corrupt, hint: "the content was changed on its way to the store, or on the disk while it was read"},
		bloberror.InvalidMD5:   {code: sdk.Corrupt},
		bloberror.InvalidRange: {code: sdk.Corrupt},

		bloberror.RequestBodyTooLarge: {code: sdk.Unsupported},
		bloberror.InvalidBlobType:     {code: sdk.Unsupported, hint: "an append or page blob has this name; only block blobs are objects"},
		bloberror.SnapshotsPresent:    {code: sdk.Unsupported, hint: "somebody made snapshots of the blob: this plugin deletes only what it has written"},
	}
}

// byStatus is for an answer without a code that the table knows.
func byStatus(status int) meaning {
	switch {
	case status == http.StatusUnauthorized:
		return meaning{code: sdk.Unauthenticated, hint: hintCredentials}
	case status == http.StatusForbidden:
		return meaning{code: sdk.PermissionDenied, hint: hintRights}
	case status == http.StatusNotFound, status >= 300 && status < 400:
		return meaning{code: sdk.InvalidConfig, attribute: "endpoint", hint: hintEndpoint} // a missing blob comes with its code
	case status == http.StatusProxyAuthRequired:
		return meaning{code: sdk.Unavailable, hint: "the proxy asks for a login: give it in HTTPS_PROXY in the env of the plugin block"}
	case status == http.StatusTooManyRequests:
		return meaning{code: sdk.Throttled}
	case status == http.StatusRequestEntityTooLarge, status == http.StatusNotImplemented:
		return meaning{code: sdk.Unsupported}
	case status == http.StatusRequestedRangeNotSatisfiable:
		return meaning{code: sdk.Corrupt}
	case status == http.StatusInsufficientStorage:
		return meaning{code: sdk.NoSpace, hint: "raise the capacity of the account"}
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusPreconditionFailed, status >= 500:
		return meaning{code: sdk.Unavailable}
	case status < 300:
		return meaning{code: sdk.Unavailable, hint: hintEndpoint} // success with something else inside
	}
	return meaning{code: sdk.Internal}
}

// table reads answers of the store. It knows the secrets, so that none leaves in a text that the store echoed.
type table struct {
	loc location
}

// explain is blobtarget's Hooks.Error: nil for whatever is no answer of the store.
func (t table) explain(err error) *sdk.Error {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return nil
	}
	m, known := meanings()[bloberror.Code(answer.ErrorCode)]
	if !known {
		m = byStatus(answer.StatusCode)
	}
	told := &sdk.Error{Code: m.code, Attribute: m.attribute, Hint: m.hint, Err: errors.New(t.scrub(text(answer)))}
	if told.Code == sdk.Unauthenticated || told.Code == sdk.PermissionDenied {
		told.Hint += t.expiry()
	}
	told.Provider = provider(answer)
	if answer.RawResponse != nil {
		told.RetryAfter = blobtarget.RetryAfter(answer.RawResponse.Header)
	}
	return told
}

// text is the answer in a line: the SDK's own text is a page, with the string that the store wanted signed.
func text(answer *azcore.ResponseError) string {
	line := "answer " + strconv.Itoa(answer.StatusCode)
	if answer.RawResponse == nil || answer.RawResponse.Body == nil {
		return line
	}
	body, err := runtime.Payload(answer.RawResponse) // in memory: azcore has read it
	if err != nil {
		return line
	}
	found := regexp.MustCompile(`(?s)<Message>(.*?)</Message>`).FindSubmatch(body)
	if found == nil {
		return line
	}
	message, _, _ := strings.Cut(string(found[1]), "\n") // request id and time follow
	return line + ": " + strings.TrimSpace(message)
}

func provider(answer *azcore.ResponseError) string {
	var parts []string
	if answer.ErrorCode != "" {
		parts = append(parts, answer.ErrorCode)
	}
	if answer.RawResponse != nil {
		if id := answer.RawResponse.Header.Get("X-Ms-Request-Id"); id != "" {
			parts = append(parts, "request "+id)
		}
	}
	return strings.Join(parts, ", ")
}

// expiry is what the signature says of its own end, which is no secret.
func (t table) expiry() string {
	if end := t.loc.sasField("se"); end != "" {
		return fmt.Sprintf("; the sas_token ends at %s", end)
	}
	return ""
}

// scrub replaces secrets that a store, or a proxy, may have echoed.
func (t table) scrub(s string) string {
	var pairs []string
	for _, secret := range []string{t.loc.sas.Reveal(), t.loc.sasField("sig"), t.loc.rawSignature(), t.loc.key.Reveal()} {
		if secret != "" {
			pairs = append(pairs, secret, sdk.Secret("").String())
		}
	}
	return strings.NewReplacer(pairs...).Replace(s)
}
