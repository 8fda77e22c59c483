package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnsync/cairn/internal/rudestore"
	"github.com/cairnsync/cairn/sdk"
)

// google is a store behind TLS that wants a token, and the authority that gives them.
type google struct {
	*httptest.Server
	store *rudestore.Store

	issued   atomic.Int64 // tokens, numbered from 1
	refuse   atomic.Int64 // tokens up to this one are refused
	requests atomic.Int64 // of the store
	life     atomic.Int64 // of a token, in seconds
	trouble  atomic.Value // func(w, r) of the authority
	seen     sync.Map     // who asked the authority
}

func startGoogle(t *testing.T) *google {
	t.Helper()
	g := &google{store: rudestore.New(rudestore.GCS)}
	g.life.Store(3600)
	g.Server = httptest.NewTLSServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	return g
}

func (g *google) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		g.authority(w, r)
		return
	}
	g.requests.Add(1)
	var n int64
	if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer token-%d", &n); err != nil || n <= g.refuse.Load() {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":401,"message":"Invalid Credentials","errors":[{"reason":"authError"}]}}`)
		return
	}
	g.store.ServeHTTP(w, r)
}

func (g *google) authority(w http.ResponseWriter, r *http.Request) {
	assertion := r.FormValue("assertion") // the server notices only after the body that a client has gone
	if f, ok := g.trouble.Load().(func(http.ResponseWriter, *http.Request)); ok && f != nil {
		f(w, r)
		return
	}
	g.seen.Store(accountOf(assertion), true)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": fmt.Sprint("token-", g.issued.Add(1)), "token_type": "Bearer", "expires_in": g.life.Load(),
	})
}

// accountOf reads who made an assertion.
func accountOf(jwt string) string {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	_ = json.Unmarshal(text, &claims) // then there is no issuer
	return claims.Issuer
}

// keyFile writes the key of a service account.
func (g *google) keyFile(t *testing.T, path, account string) {
	t.Helper()
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": account, "private_key_id": "1", "private_key": privateKey(), "token_uri": g.URL + "/token",
	})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var privateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

func (g *google) open(t *testing.T, file string, now func() time.Time) *target {
	t.Helper()
	base := newTransport()
	base.TLSClientConfig.RootCAs = x509.NewCertPool()
	base.TLSClientConfig.RootCAs.AddCert(g.Certificate())
	target, err := assemble(t.Context(), Config{Bucket: "cairn-test", Endpoint: g.URL, CredentialsFile: file}, base, now)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, target)
	return target
}

// openWithKey is the usual case: a key file, and the clock of the machine.
func (g *google) openWithKey(t *testing.T) (target *target, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key.json")
	g.keyFile(t, file, "first@example.com")
	return g.open(t, file, time.Now), file
}

func put(t *testing.T, target sdk.Target, key string) error {
	t.Helper()
	_, err := target.Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody(make([]byte, 100_000))})
	return err
}

func keysOf(ctx context.Context, target sdk.Target) (keys []string, err error) {
	for obj, err := range target.List(ctx, sdk.ListRequest{}) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, obj.Key)
	}
	return keys, nil
}
