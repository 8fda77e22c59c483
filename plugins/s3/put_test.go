package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// countingAt counts what is read of a body.
type countingAt struct {
	io.ReaderAt
	bytes atomic.Int64
}

func (c *countingAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.bytes.Add(int64(n))
	return n, err
}

// trust has the process trust the server's certificate as an operator would.
func trust(t *testing.T, server *httptest.Server) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", file)
}

// CASES A60, A61
func TestABodyIsReadOnceAndSignedWithItsDigestOnHTTPAndOnHTTPS(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		for _, size := range []int{1, 4096, 5 << 20} {
			t.Run(fmt.Sprintf("%s %d bytes", scheme, size), func(t *testing.T) {
				store := &recorder{answer: stored()}
				store.Server = httptest.NewUnstartedServer(store)
				if scheme == "https" {
					store.StartTLS()
					trust(t, store.Server)
				} else {
					store.Start()
				}
				defer store.Close()
				content := bytes.Repeat([]byte("x"), size)
				counted := &countingAt{ReaderAt: bytes.NewReader(content)}
				res, err := openAt(t, store.URL).Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.NewBody(counted, int64(size), sdk.SumsOf(content))})
				if err != nil || res.Version != `"e"` {
					t.Fatalf("%+v, %v", res, err)
				}
				if read := counted.bytes.Load(); read != int64(size) {
					t.Errorf("%d bytes were read of a body of %d", read, size)
				}
				if n := len(store.requests()); n != 1 {
					t.Errorf("%d requests for one object", n)
				}
				wantPlainPut(t, store.last(t), content)
			})
		}
	}
}

// wantPlainPut is a request as every S3 store has always understood it.
func wantPlainPut(t *testing.T, req request, content []byte) {
	t.Helper()
	sum := sha256.Sum256(content)
	for name, want := range map[string]string{
		"X-Amz-Content-Sha256":         hex.EncodeToString(sum[:]),
		"X-Amz-Checksum-Sha256":        base64.StdEncoding.EncodeToString(sum[:]),
		"Content-Length":               fmt.Sprint(len(content)),
		"Content-Encoding":             "",
		"X-Amz-Trailer":                "",
		"X-Amz-Decoded-Content-Length": "",
		"X-Amz-Sdk-Checksum-Algorithm": "",
		"If-None-Match":                "",
	} {
		if have := req.Header.Get(name); have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
	if len(req.TransferEncoding) > 0 || len(req.Trailer) > 0 {
		t.Errorf("sent in pieces: %v %v", req.TransferEncoding, req.Trailer)
	}
	if !bytes.Equal(req.body, content) {
		t.Errorf("%d bytes arrived that are not the content", len(req.body))
	}
	if auth := req.Header.Get("Authorization"); !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKIATEST/") || !strings.Contains(auth, "x-amz-content-sha256") {
		t.Errorf("signed as %q", auth)
	}
}

func TestACertificateThatIsNotTrustedIsToldWithARemedy(t *testing.T) {
	server := httptest.NewUnstartedServer(says(200, ""))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, err := openAt(t, server.URL).Put(t.Context(), putRequest("k", "x"))
	wantError(t, err, sdk.Unavailable, "certificate", "SSL_CERT_FILE")
}

func TestAnEmptyBodyIsStoredAndItsDigestIsStillHeldTo(t *testing.T) {
	store := record(t, stored())
	target := openAt(t, store.URL)
	if _, err := target.Put(t.Context(), putRequest("k", "")); err != nil {
		t.Fatal(err)
	}
	wantPlainPut(t, store.last(t), nil)
	_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.NewBody(strings.NewReader(""), 0, sdk.SumsOf([]byte("x")))})
	wantError(t, err, sdk.Corrupt)
	if n := len(store.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestADamagedBodyNeverCompletesEvenWhereTheStoreDoesNotLook(t *testing.T) {
	content := bytes.Repeat([]byte("x"), 200_000)
	sums := sdk.SumsOf(content)
	damaged := bytes.Clone(content)
	damaged[100_000] = 'y'
	for name, body := range map[string]sdk.Body{
		"another content": sdk.NewBody(bytes.NewReader(damaged), int64(len(damaged)), sums),
		"an early end":    sdk.NewBody(bytes.NewReader(content[:150_000]), int64(len(content)), sums),
	} {
		t.Run(name, func(t *testing.T) {
			var whole atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, err := io.Copy(io.Discard, r.Body)
				whole.Store(err == nil && n == int64(len(content)))
			}))
			defer server.Close()
			_, err := openAt(t, server.URL).Put(t.Context(), sdk.PutRequest{Key: "k", Body: body})
			wantError(t, err, sdk.Corrupt)
			server.Close() // waits for the handler
			if whole.Load() {
				t.Error("the store got a complete object")
			}
		})
	}
}

// CASES A44
func TestACreateAsksForAnAbsentKeyAndItsRefusalIsExists(t *testing.T) {
	store := record(t, says(412, errorXML("PreconditionFailed", "At least one of the pre-conditions you specified did not hold")))
	req := putRequest("k", "x")
	req.IfAbsent = true
	_, err := openAt(t, store.URL).Put(t.Context(), req)
	wantError(t, err, sdk.Exists, "PreconditionFailed, request R7")
	if have := store.last(t).Header.Get("If-None-Match"); have != "*" {
		t.Errorf("If-None-Match: %q", have)
	}
}

// curt refuses each request by its header alone, and resets the connection with the body unread, as versitygw does.
func curt(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { listener.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 412 Precondition Failed\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
			}
			conn.(*net.TCPConn).CloseWrite()
			if n, _ := conn.Read(make([]byte, 1)); n > 0 { // else the client has read the answer, and hung up
				t.Error("the client sends its body before it has heard the answer, so that it may never hear it")
			}
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	})
	return "http://" + listener.Addr().String()
}

func TestARefusalThatComesBeforeTheBodyIsHeard(t *testing.T) {
	target := openAt(t, curt(t, errorXML("PreconditionFailed", "it exists")))
	for _, size := range []int{0, 1000, 4 << 10, 1<<20 + 1, 5 << 20} {
		_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody(make([]byte, size)), IfAbsent: true})
		wantError(t, err, sdk.Exists, "it exists")
	}
}

func TestARaceOfCreatesIsExistsOnlyWhenThereIsAnObject(t *testing.T) {
	for name, c := range map[string]struct {
		look http.HandlerFunc
		want sdk.Code
	}{
		"there is one":                {says(206, "x", "Content-Range", "bytes 0-0/9", "ETag", `"e"`), sdk.Exists},
		"there is one of no bytes":    {says(416, errorXML("InvalidRange", "The requested range is not satisfiable")), sdk.Exists},
		"there is none: a delete won": {says(404, errorXML("NoSuchKey", "The specified key does not exist.")), sdk.Unavailable},
		"a page of a proxy":           {says(200, "<html><body>Please log in</body></html>"), sdk.Unavailable},
		"nobody can say":              {says(403, errorXML("AccessDenied", "Access Denied")), sdk.PermissionDenied},
	} {
		for _, refusal := range []http.HandlerFunc{
			says(409, errorXML("ConditionalRequestConflict", "a conflicting operation")),
			says(412, ""), says(412, "<html><p>Not & Yours"), // as proxies refuse
		} {
			t.Run(name, func(t *testing.T) {
				store := record(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPut {
						refusal(w, r)
						return
					}
					c.look(w, r)
				})
				req := putRequest("k", "x")
				req.IfAbsent = true
				_, err := openAt(t, store.URL).Put(t.Context(), req)
				wantError(t, err, c.want)
				if n := len(store.requests()); n != 2 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
}

// CASES A12
func TestA200ThatNoStoreGivesIsNoSuccessOfAPut(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page":     says(200, "<html><body>Please log in</body></html>", "ETag", `"e"`),
		"some words": says(200, "OK", "ETag", `"e"`),
		"nothing":    says(200, ""),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openAt(t, record(t, answer).URL).Put(t.Context(), putRequest("k", "x"))
			wantError(t, err, sdk.Unavailable, "the answer to a Put", "check the endpoint")
		})
	}
}

func TestEncryptionIsAskedForOfEachObjectAndTheClassOfPacksOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		class  sdk.Class
		want   [3]string // encryption, key, class
	}{
		{"nothing is asked for", func(*Config) {}, sdk.ClassBulk, [3]string{}},
		{"AES256", func(c *Config) { c.SSE = "AES256" }, sdk.ClassMeta, [3]string{"AES256"}},
		{"KMS with the account's key", func(c *Config) { c.SSE = "aws:kms" }, sdk.ClassMeta, [3]string{"aws:kms"}},
		{"KMS with a key", func(c *Config) { c.SSE, c.SSEKMSKeyID = "aws:kms", "alias/cairn" }, sdk.ClassBulk, [3]string{"aws:kms", "alias/cairn"}},
		{"a class for packs", func(c *Config) { c.StorageClass = "STANDARD_IA" }, sdk.ClassBulk, [3]string{"", "", "STANDARD_IA"}},
		{"and not for what every start reads", func(c *Config) { c.StorageClass = "STANDARD_IA" }, sdk.ClassMeta, [3]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := record(t, stored())
			req := putRequest("k", "x")
			req.Class = c.class
			if _, err := openAt(t, store.URL, c.change).Put(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			h := store.last(t).Header
			have := [3]string{h.Get("X-Amz-Server-Side-Encryption"), h.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"), h.Get("X-Amz-Storage-Class")}
			if have != c.want {
				t.Errorf("asked for %q, want %q", have, c.want)
			}
		})
	}
}

func TestADigestIsAttestedOnlyWhenTheStoreSaysIt(t *testing.T) {
	sum := sha256.Sum256([]byte("x"))
	right := base64.StdEncoding.EncodeToString(sum[:])
	for header, want := range map[string][32]byte{"": {}, right: sum} {
		res, err := openAt(t, record(t, says(200, "", "ETag", `"e"`, "X-Amz-Checksum-Sha256", header)).URL).Put(t.Context(), putRequest("k", "x"))
		if err != nil || res.SHA256 != want {
			t.Errorf("attested %x, %v; want %x", res.SHA256, err, want)
		}
	}
	for _, header := range []string{"AAAA", base64.StdEncoding.EncodeToString(make([]byte, 32)), "no base64"} {
		_, err := openAt(t, record(t, says(200, "", "ETag", `"e"`, "X-Amz-Checksum-Sha256", header)).URL).Put(t.Context(), putRequest("k", "x"))
		wantError(t, err, sdk.Corrupt, "attests")
	}
}

// The heap is bounded by all that is ever allocated, which is what a test can measure without luck.
// CASES A63
func TestSixtyFourPutsOfSixteenMiBAtOnceNeedLittleMemory(t *testing.T) {
	const puts, size = 64, 16 << 20
	var arrived sync.WaitGroup
	arrived.Add(puts)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait() // all are under way at the same time
		io.Copy(io.Discard, r.Body)
		stored()(w, r)
	}))
	defer server.Close()
	target := openAt(t, server.URL)
	content := bytes.Repeat([]byte("x"), size)
	body := sdk.BytesBody(content)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	errs := make([]error, puts)
	var workers sync.WaitGroup
	for i := range puts {
		workers.Go(func() {
			_, errs[i] = target.Put(t.Context(), sdk.PutRequest{Key: fmt.Sprintf("pack/%d", i), Body: body, Class: sdk.ClassBulk})
		})
	}
	workers.Wait()
	runtime.ReadMemStats(&after)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	const most = 32 << 20 // client and server; the bodies are 1 GiB
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%.1f MiB allocated for %d Puts of %d MiB, the server's part included", float64(allocated)/(1<<20), puts, size>>20)
	if allocated > most {
		t.Errorf("%d bytes were allocated, want at most %d", allocated, most)
	}
}
