package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
)

const (
	scope = "https://www.googleapis.com/auth/devstorage.read_write"

	// fetchTimeout bounds one fetch of a token, the search for a metadata service included.
	fetchTimeout = 30 * time.Second

	// freshFor is how long a token must live to be used without asking again. The metadata service hands out a new one in the last four
	// minutes of the old.
	freshFor = 225 * time.Second
)

// token is what a request says of who sends it.
type token struct {
	value   string
	project string // who pays the requests, "" = the bucket's
	expiry  time.Time
}

// tokens gives the token of the credentials file, or of the default chain when there is none. Nothing happens before the first get.
// Any number of callers share one fetch, which runs on a goroutine of its own: the vendor's library waits without a context. Close
// waits for it.
type tokens struct {
	file   string       // credentials_file
	client *http.Client // for the authority that gives tokens
	now    func() time.Time

	life    context.Context // of the target: a fetch outlives the call that began it
	end     context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	last  *fetch
	creds *auth.Credentials // nil = to be read
	stamp string            // of the file that creds came from
}

// fetch is one fetch of a token; its fields are set when done is closed.
type fetch struct {
	done  chan struct{}
	creds *auth.Credentials // nil = to be read
	token token
	err   error
}

func newTokens(ctx context.Context, file string, client *http.Client, now func() time.Time) *tokens {
	life, end := context.WithCancel(ctx)
	return &tokens{file: file, client: client, now: now, life: life, end: end}
}

// Close ends a running fetch.
func (t *tokens) Close() {
	t.end()
	t.running.Wait()
}

// get waits for a token until ctx ends.
func (t *tokens) get(ctx context.Context) (token, error) {
	f := t.current()
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return token{}, ctx.Err()
	}
}

// current is the last fetch when its token can still be used, or is on its way, else a new one.
func (t *tokens) current() *fetch {
	stamp := stampOf(t.path())
	t.mu.Lock()
	defer t.mu.Unlock()
	if stamp != t.stamp { // the file was rotated
		t.creds, t.stamp = nil, stamp
	} else if t.last != nil && t.usable(t.last) {
		return t.last
	}
	f := &fetch{done: make(chan struct{}), creds: t.creds}
	t.last = f
	t.running.Go(func() {
		defer close(f.done)
		f.token, f.err = t.run(f)
		t.keep(f)
	})
	return f
}

func (t *tokens) usable(f *fetch) bool {
	select {
	case <-f.done:
		return f.err == nil && f.token.expiry.Sub(t.now()) > freshFor
	default:
		return true
	}
}

// refused throws away a token that the store did not accept, and the credentials it came from.
func (t *tokens) refused(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return
	}
	select {
	case <-t.last.done:
		if t.last.token.value == value {
			t.last, t.creds = nil, nil
		}
	default: // a new one is on its way
	}
}

func (t *tokens) run(f *fetch) (token, error) {
	ctx, cancel := context.WithTimeout(t.life, fetchTimeout)
	defer cancel()
	if f.creds == nil {
		var err error
		if f.creds, err = t.read(); err != nil {
			return token{}, err
		}
	}
	got, err := f.creds.Token(ctx)
	if err != nil {
		return token{}, tokenFault(err)
	}
	project, err := f.creds.QuotaProjectID(ctx)
	if err != nil {
		return token{}, tokenFault(err)
	}
	return token{value: got.Value, project: project, expiry: got.Expiry}, nil
}

// keep remembers the credentials of a fetch that went well, unless the file has been rotated meanwhile. After one that did not the file is
// read again: perhaps it is another by then.
func (t *tokens) keep(f *fetch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.last != f:
	case f.err != nil:
		t.creds = nil
	default:
		t.creds = f.creds
	}
}

// path is the file that credentials come from, "" = no file.
func (t *tokens) path() string {
	if t.file != "" {
		return t.file
	}
	return os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
}

func (t *tokens) read() (*auth.Credentials, error) {
	opts := &credentials.DetectOptions{Scopes: []string{scope}, Client: t.client, DisableAsyncRefresh: true}
	path := t.path()
	if path == "" {
		creds, err := credentials.DetectDefault(opts)
		if err != nil {
			return nil, tokenFault(err)
		}
		return creds, nil
	}
	creds, err := readFile(path, opts)
	if err != nil {
		fault := &sdk.Error{Code: sdk.Unauthenticated, Err: err, Hint: "give a key or configuration file as Google Cloud makes it, which the user that runs cairn can read"}
		if t.file != "" {
			fault.Attribute = "credentials_file"
		}
		return nil, fault
	}
	return creds, nil
}

func readFile(path string, opts *credentials.DetectOptions) (*auth.Credentials, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Type credentials.CredType `json:"type"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, fmt.Errorf("%s is not JSON", path) // the cause may quote a part of a key
	}
	creds, err := credentials.NewCredentialsFromJSON(kind.Type, text, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return creds, nil
}

// stampOf changes when a file is replaced or rewritten.
func stampOf(path string) string {
	if path == "" {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprint(path, info.ModTime().UnixNano(), info.Size())
}

// tokenFault tells credentials that are missing or refused from an authority that cannot be reached.
func tokenFault(err error) error {
	told := &sdk.Error{Code: sdk.Unauthenticated, Err: err, Hint: hintChain}
	var answer *auth.Error
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &answer) && answer.Response != nil:
		told.Hint = hintCredentials
		if status := answer.Response.StatusCode; status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
			told.Code, told.Hint = sdk.Unavailable, hintAuthority
			told.RetryAfter = blobtarget.RetryAfter(answer.Response.Header)
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout):
		told.Code, told.Hint = sdk.Unavailable, hintAuthority // *url.Error and *net.OpError have Timeout
	}
	return told
}

const (
	hintAuthority = "the authority that gives tokens does not answer"
	hintChain     = `a plugin sees no environment but its own: give credentials_file, or set GOOGLE_APPLICATION_CREDENTIALS in the env of the plugin block, or ` +
		`run on a machine of Google Cloud that has a service account`
)
