package main

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// serve is a store of one test; the target that is returned with it has an account key.
func serve(t *testing.T, cfg Config, handler http.HandlerFunc) sdk.Target {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cfg.Container, cfg.Endpoint, cfg.Account, cfg.AccountKey = "box", server.URL, "acc", testKey
	return openTarget(t, cfg)
}

// flaky is a source that changes after so many bytes have been read of it.
type flaky struct {
	content []byte
	good    int64
	read    atomic.Int64
}

func (f *flaky) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(f.content).ReadAt(p, off)
	if f.read.Add(int64(n)) > f.good && n > 0 {
		p[n-1] ^= 1
	}
	return n, err
}

func TestABodyThatIsDamagedInEitherPassIsNeverStored(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	size := int64(len(content))
	for _, c := range []struct {
		name string
		body sdk.Body
	}{
		{"damaged from the start", sdk.NewBody(&flaky{content: content}, size, sdk.SumsOf(content))},
		{"damaged after the first pass", sdk.NewBody(&flaky{content: content, good: size}, size, sdk.SumsOf(content))},
		{"shorter than declared", sdk.NewBody(bytes.NewReader(content[:1000]), size, sdk.SumsOf(content))},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				if whole, err := io.ReadAll(r.Body); err == nil {
					t.Errorf("%d bytes arrived whole", len(whole))
				}
			})
			_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: c.body})
			wantCode(t, err, sdk.Corrupt, "put k")
		})
	}
}

// CASES A19, A59, A61
func TestAPutIsOneRequestWithItsLengthItsDigestAndItsCondition(t *testing.T) {
	content := []byte("content")
	sum := md5.Sum(content)
	var requests atomic.Int64
	target := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPut || r.URL.Path != "/acc/box/pack/1" || r.URL.RawQuery != "" || !bytes.Equal(body, content) {
			t.Errorf("%s %s with %q", r.Method, r.URL, body)
		}
		for name, want := range map[string]string{
			"Content-Md5": base64.StdEncoding.EncodeToString(sum[:]), "Content-Length": "7", "If-None-Match": "*", "X-Ms-Blob-Type": "BlockBlob",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		w.Header().Set("ETag", `"0x1"`)
		w.WriteHeader(http.StatusCreated)
	})
	res, err := target.Put(t.Context(), sdk.PutRequest{Key: "pack/1", Body: sdk.BytesBody(content), IfAbsent: true})
	if err != nil || res.Version != `"0x1"` || requests.Load() != 1 {
		t.Errorf("%+v, %v after %d requests", res, err, requests.Load())
	}
}

func TestTheTierIsForPacksAndMetadataStaysHot(t *testing.T) {
	for _, c := range []struct {
		name, tier string
		class      sdk.Class
		want       string
	}{
		{"a pack in the chosen tier", "Cool", sdk.ClassBulk, "Cool"},
		{"metadata beside it", "Cool", sdk.ClassMeta, "Hot"},
		{"a pack when nothing is chosen", "", sdk.ClassBulk, ""},
		{"metadata when nothing is chosen", "", sdk.ClassMeta, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := serve(t, Config{AccessTier: c.tier}, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("X-Ms-Access-Tier"); got != c.want {
					t.Errorf("tier %q, want %q", got, c.want)
				}
				w.WriteHeader(http.StatusCreated)
			})
			if _, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil), Class: c.class}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAConditionThatDidNotHoldIsExistsAndALeaseIsNot(t *testing.T) {
	for _, c := range []struct {
		name     string
		status   int
		code     string
		ifAbsent bool
		want     sdk.Code
	}{
		{"Azure's word", 409, "BlobAlreadyExists", true, sdk.Exists},
		{"HTTP's word", 412, "ConditionNotMet", true, sdk.Exists},
		{"another conflict", 409, "SystemInUse", true, sdk.Unavailable},
		{"a lease", 412, "LeaseIdMissing", true, sdk.PermissionDenied},
		{"without a condition", 412, "ConditionNotMet", false, sdk.Unavailable},
		{"an unknown word", 412, "SomethingNew", true, sdk.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Ms-Error-Code", c.code)
				w.WriteHeader(c.status)
			})
			_, err := target.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil), IfAbsent: c.ifAbsent})
			if e := wantCode(t, err, c.want); e.Provider == "" {
				t.Error("Azure's own code is lost")
			}
		})
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
		w.WriteHeader(http.StatusCreated)
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
