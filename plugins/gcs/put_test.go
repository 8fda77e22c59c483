package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// serve is a store of one test.
func serve(t *testing.T, cfg Config, handler http.HandlerFunc) sdk.Target {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cfg.Bucket, cfg.Endpoint = "cairn-test", server.URL
	return openTarget(t, cfg)
}

// upload is what arrives of a Put.
type upload struct {
	CRC32C       string
	StorageClass string
	content      []byte
}

func readUpload(r *http.Request) (u upload, err error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return u, err
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	about, err := parts.NextPart()
	if err != nil {
		return u, err
	}
	if err := json.NewDecoder(about).Decode(&u); err != nil {
		return u, err
	}
	media, err := parts.NextPart()
	if err != nil {
		return u, err
	}
	u.content, err = io.ReadAll(media)
	return u, err
}

func storedAs(w http.ResponseWriter, name string, size int) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"storage#object","name":%q,"size":"%d","generation":"17"}`, name, size)
}

func TestABodyThatIsDamagedIsNeverStored(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	other := bytes.Clone(content)
	other[len(other)-1] ^= 1
	size := int64(len(content))
	for name, source := range map[string][]byte{"another content": other, "shorter than declared": content[:1000], "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan error, 1)
			target := serve(t, Config{}, func(_ http.ResponseWriter, r *http.Request) {
				_, err := readUpload(r)
				arrived <- err
			})
			_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.NewBody(bytes.NewReader(source), size, sdk.SumsOf(content))})
			wantCode(t, err, sdk.Corrupt, "put k")
			select {
			case err := <-arrived:
				if err == nil {
					t.Error("the upload arrived whole")
				}
			default: // the request was cancelled before it was sent
			}
		})
	}
}

// CASES A61, A62
func TestAPutIsOneRequestWithItsChecksumItsConditionAndItsClass(t *testing.T) {
	content := []byte("content")
	checksum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sdk.SumsOf(content).CRC32C))
	for _, c := range []struct {
		name, class string
		of          sdk.Class
		ifAbsent    bool
		want        string // class
	}{
		{"a pack in the chosen class", "COLDLINE", sdk.ClassBulk, true, "COLDLINE"},
		{"metadata beside it", "COLDLINE", sdk.ClassMeta, true, "STANDARD"},
		{"a pack when nothing is chosen", "", sdk.ClassBulk, false, ""},
		{"metadata when nothing is chosen", "", sdk.ClassMeta, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int64
			target := serve(t, Config{StorageClass: c.class}, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				u, err := readUpload(r)
				q := r.URL.Query()
				if err != nil || r.Method != http.MethodPost || r.URL.Path != "/upload/storage/v1/b/cairn-test/o" || q.Get("uploadType") != "multipart" {
					t.Errorf("%s %s, %v", r.Method, r.URL, err)
				}
				if q.Get("name") != "pack/1" || string(u.content) != "content" || u.CRC32C != checksum {
					t.Errorf("uploaded: %+v", u)
				}
				if u.StorageClass != c.want || (q.Get("ifGenerationMatch") == "0") != c.ifAbsent {
					t.Errorf("class %q, query %v", u.StorageClass, q)
				}
				if r.Header.Get("Authorization") != "" {
					t.Error("credentials go over plain http")
				}
				storedAs(w, "pack/1", len(content))
			})
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/there/is/no/such/file")
			res, err := target.Put(t.Context(), sdk.PutRequest{Key: "pack/1", Body: sdk.BytesBody(content), IfAbsent: c.ifAbsent, Class: c.of})
			if err != nil || res.Version != "17" || requests.Load() != 1 {
				t.Errorf("%+v, %v after %d requests", res, err, requests.Load())
			}
		})
	}
}

// CASES A12
func TestASuccessThatDoesNotNameTheObjectIsNone(t *testing.T) {
	for _, text := range []string{`{}`, `{"name":"other","size":"7"}`, `{"name":"k","size":"6"}`, `{"error":{"code":500}}`, `<html>`, ``} {
		target := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, text)
		})
		_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody([]byte("content"))})
		wantCode(t, err, sdk.Unavailable, "put k")
	}
}

// CASES A67
func TestOneNameWrittenTooOftenIsThrottledAndNotExists(t *testing.T) {
	target := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"code":429,"message":"too often","errors":[{"reason":"rateLimitExceeded"}]}}`)
	})
	_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody([]byte("content")), IfAbsent: true})
	if e := wantCode(t, err, sdk.Throttled); e.RetryAfter.Seconds() != 2 || e.Provider != "rateLimitExceeded" {
		t.Errorf("%+v", e)
	}
}

// TestParallelPutsHoldNoBodies looks at the heap while 32 Puts of 16 MiB are in the middle of theirs.
// CASES A62, A63
func TestParallelPutsHoldNoBodies(t *testing.T) {
	const puts, size = 32, 16 << 20
	var halfway sync.WaitGroup
	halfway.Add(puts)
	release := make(chan struct{})
	target := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, size/2)
		halfway.Done()
		<-release
		_, _ = io.Copy(io.Discard, r.Body)
		storedAs(w, "k", size)
	})
	sum := sha256.New()
	_, _ = io.Copy(sum, io.NewSectionReader(zeros{}, 0, size)) // neither fails
	body := sdk.NewBody(zeros{}, size, sdk.Sums{SHA256: [32]byte(sum.Sum(nil))})
	before := heap()
	var all sync.WaitGroup
	for range puts {
		all.Go(func() {
			if _, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: body}); err != nil {
				t.Error(err)
			}
		})
	}
	halfway.Wait()
	held := heap() - before
	close(release)
	all.Wait()
	t.Logf("%d Puts of %d MiB hold %d KiB", puts, size>>20, held>>10)
	if held > size {
		t.Errorf("%d bytes are held", held)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// zeros is a source without memory.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}
