package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/cairnsync/cairn/sdk"
)

const (
	// idlePerHost keeps a connection for each of the requests that a host makes at once; net/http's default is 2.
	idlePerHost = 64
	bufferSize  = 64 << 10
	// maxListing bounds the answer of a listing: 5,000 blobs with 512 bytes of key and about 700 of properties.
	maxListing = 16 << 20
)

// newTransport is net/http's: proxies by the standard variables, HTTP/2, SSL_CERT_FILE.
func newTransport() *http.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone() // nobody here replaces it
	base.MaxIdleConns = 0
	base.MaxIdleConnsPerHost = idlePerHost
	base.WriteBufferSize, base.ReadBufferSize = bufferSize, bufferSize
	base.DisableCompression = true // a blob is read as it was written, and its length is known
	return base
}

// chain makes the credential of whoever runs the plugin.
type chain func(policy.ClientOptions) (azcore.TokenCredential, error)

func defaultChain(opts policy.ClientOptions) (azcore.TokenCredential, error) {
	return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: opts})
}

// newClient is the client of the container: one attempt a request, since the host retries.
func newClient(loc location, base http.RoundTripper, tokens chain) (*container.Client, error) {
	opts := policy.ClientOptions{Transport: &transport{base: base}, Retry: policy.RetryOptions{MaxRetries: -1}}
	switch {
	case loc.key != "":
		key, err := container.NewSharedKeyCredential(loc.account, loc.key.Reveal())
		if err != nil {
			return nil, fault("account_key", "it cannot be used: "+err.Error(), "")
		}
		return container.NewClientWithSharedKeyCredential(loc.container.String(), key, &container.ClientOptions{ClientOptions: opts})
	case loc.sas != "":
		return container.NewClientWithNoCredential(loc.container.String()+"?"+loc.sas.Reveal(), &container.ClientOptions{ClientOptions: opts})
	}
	credential, err := tokens(opts)
	if err != nil {
		return nil, &sdk.Error{Code: sdk.Unauthenticated, Op: "open", Err: err, Hint: hintChain}
	}
	opts.PerCallPolicies = []policy.Policy{refresher{}}
	return container.NewClient(loc.container.String(), identity{inner: credential}, &container.ClientOptions{ClientOptions: opts})
}

// sasField is a parameter of the signature, decoded; "" when there is none.
func (l location) sasField(name string) string {
	query, err := url.ParseQuery(l.sas.Reveal())
	if err != nil {
		return ""
	}
	return query.Get(name)
}

// rawSignature is the signature as it stands in a URL.
func (l location) rawSignature() string {
	for pair := range strings.SplitSeq(l.sas.Reveal(), "&") {
		if value, ok := strings.CutPrefix(pair, "sig="); ok {
			return value
		}
	}
	return ""
}

// transport sends requests, follows no redirects and keeps URLs, in which signatures stand, out of errors.
type transport struct {
	base http.RoundTripper
}

var _ policy.Transporter = (*transport)(nil)

// Do sends req once.
func (t *transport) Do(req *http.Request) (*http.Response, error) {
	res, err := t.base.RoundTrip(req)
	if err != nil {
		err = &url.Error{Op: req.Method, URL: (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}).String(), Err: err}
		noteFault(req.Context(), err)
		return nil, err
	}
	dropUselessChallenge(res)
	if req.Method == http.MethodGet && req.URL.Query().Get("comp") == "list" && res.StatusCode == http.StatusOK {
		return wholeListing(res)
	}
	return res, nil
}

// dropUselessChallenge leaves a 401 to the error table when its challenge is not one of Azure's: the token policy would answer with an
// error of its own, without the answer.
func dropUselessChallenge(res *http.Response) {
	challenge := res.Header.Get("WWW-Authenticate")
	if res.StatusCode == http.StatusUnauthorized && !strings.Contains(challenge, "resource_id=") && !strings.Contains(challenge, "claims=") {
		res.Header.Del("WWW-Authenticate")
	}
}

// wholeListing reads a page of a listing to its last element. A page that ends early, or is something else, would be read as "no more
// objects".
func wholeListing(res *http.Response) (*http.Response, error) {
	defer res.Body.Close()
	page, err := io.ReadAll(io.LimitReader(res.Body, maxListing))
	if err != nil {
		return nil, fmt.Errorf("read the listing: %w", err)
	}
	trimmed := bytes.TrimSpace(page)
	if !bytes.Contains(trimmed, []byte("<Blobs")) || !bytes.HasSuffix(trimmed, []byte("</EnumerationResults>")) {
		return nil, &sdk.Error{Code: sdk.Unavailable, Err: errors.New("the listing ends in its middle, or is none"), Hint: hintEndpoint}
	}
	res.Body = io.NopCloser(bytes.NewReader(page))
	return res, nil
}

// refresher repeats a request once when its token is refused: the token policy has thrown it away by then. It is the only retry in this
// plugin; the body is read once more for it.
type refresher struct{}

// Do sends req, and once more after a 401.
func (refresher) Do(req *policy.Request) (*http.Response, error) {
	res, err := req.Next()
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	res.Body.Close()
	if err := req.RewindBody(); err != nil {
		return nil, err
	}
	return req.Next()
}
