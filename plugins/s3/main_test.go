package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/sdk"
)

// TestMain keeps the machine's own credentials and settings out, and lets the test binary play a plugin with another environment:
// see proxy_test.go.
func TestMain(m *testing.M) {
	if endpoint := os.Getenv("S3_TEST_ENDPOINT"); endpoint != "" {
		playGet(endpoint)
		return
	}
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	os.Setenv("AWS_CONFIG_FILE", "/nonexistent/config")
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
	goleak.VerifyTestMain(m)
}

// request is what a store has seen.
type request struct {
	*http.Request
	body []byte
}

// recorder is a store that answers what a test says, and remembers what it was asked.
type recorder struct {
	*httptest.Server
	answer http.HandlerFunc

	mu   sync.Mutex
	seen []request
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	r.seen = append(r.seen, request{req, body})
	r.mu.Unlock()
	if err == nil {
		r.answer(w, req)
	}
}

func (r *recorder) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

func (r *recorder) last(t *testing.T) request {
	t.Helper()
	all := r.requests()
	if len(all) == 0 {
		t.Fatal("the store was not asked")
	}
	return all[len(all)-1]
}

func record(t *testing.T, answer http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// says is an answer in full.
func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// stored is the answer to a Put.
func stored() http.HandlerFunc { return says(200, "", "ETag", `"e"`) }

func errorXML(code, message string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>" + code + "</Code><Message>" + message + "</Message><RequestId>R7</RequestId></Error>"
}

// openAt goes the way of a plugin: the configuration, then Open.
func openAt(t *testing.T, endpoint string, change ...func(*Config)) sdk.Target {
	t.Helper()
	cfg := Config{Bucket: "bucket", Endpoint: endpoint, PathStyle: true, AccessKey: "AKIATEST", SecretKey: "the-secret"}
	for _, c := range change {
		c(&cfg)
	}
	return openConfig(t, cfg, time.Now)
}

func openConfig(t *testing.T, cfg Config, now func() time.Time) sdk.Target {
	t.Helper()
	p := plugin(now)
	if err := p.Validate(cfg); err != nil {
		t.Fatal(err)
	}
	target, err := p.Open(t.Context(), sdk.Env{Target: "test", Log: hclog.NewNullLogger()}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.(io.Closer).Close() })
	return target
}

// fromChain leaves the credentials to the vendor's chain.
func fromChain(cfg *Config) { cfg.AccessKey, cfg.SecretKey = "", "" }

func putRequest(key, content string) sdk.PutRequest {
	return sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte(content))}
}

// call makes one call of each verb by name.
func call(ctx context.Context, target sdk.Target, verb string) error {
	switch verb {
	case "put":
		_, err := target.Put(ctx, putRequest("k/1", "content"))
		return err
	case "get":
		res, err := target.Get(ctx, sdk.GetRequest{Key: "k/1", Length: -1})
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		return err
	case "list":
		for _, err := range target.List(ctx, sdk.ListRequest{Prefix: "k/"}) {
			if err != nil {
				return err
			}
		}
		return nil
	case "delete":
		return target.Delete(ctx, []string{"k/1"})
	}
	return errors.New("no such verb")
}

func verbs() []string { return []string{"put", "get", "list", "delete"} }

// wantError checks the code, and that the error says each of the words somewhere a person sees.
func wantError(t *testing.T, err error, code sdk.Code, words ...string) *sdk.Error {
	t.Helper()
	var e *sdk.Error
	if !errors.As(err, &e) || sdk.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	all := strings.Join([]string{e.Error(), e.Hint, e.Attribute, e.Provider}, " | ")
	for _, word := range words {
		if !strings.Contains(all, word) {
			t.Errorf("%q does not say %q", all, word)
		}
	}
	if strings.Contains(all, "the-secret") {
		t.Errorf("%q tells the secret", all)
	}
	return e
}
