package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// playGet is the other process: it gets one key and prints how that ended. A process reads the proxy variables once.
func playGet(endpoint string) {
	cfg := Config{Bucket: "bucket", Endpoint: endpoint, PathStyle: true, AccessKey: "AKIATEST", SecretKey: "the-secret"}
	target, err := open(context.Background(), cfg, time.Now)
	if err == nil {
		err = call(context.Background(), target, "get")
	}
	fmt.Println(sdk.CodeOf(err), err)
}

func TestTheProxyVariablesAreHonoured(t *testing.T) {
	for _, c := range []struct {
		name     string
		endpoint string
		noProxy  string
		asked    string // of the proxy
		says     string
	}{
		{"HTTP_PROXY", "http://store.example.invalid:9000", "", "GET http://store.example.invalid:9000/bucket/k/1", "the proxy says so"},
		{"HTTPS_PROXY", "https://store.example.invalid", "", "CONNECT store.example.invalid:443", "Forbidden"},
		{"NO_PROXY", "http://127.0.0.2:1", "*", "", "127.0.0.2:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			asked := ""
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = r.Method + " " + strings.TrimPrefix(r.RequestURI, "//")
				mu.Unlock()
				says(403, errorXML("AccessDenied", "the proxy says so"))(w, r)
			}))
			defer proxy.Close()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = []string{"S3_TEST_ENDPOINT=" + c.endpoint, "HTTP_PROXY=" + proxy.URL, "HTTPS_PROXY=" + proxy.URL, "NO_PROXY=" + c.noProxy}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			if method, rest, _ := strings.Cut(c.asked, " "); !strings.HasPrefix(asked, strings.TrimSpace(method+" "+rest)) {
				t.Errorf("the proxy was asked %q, want %q", asked, c.asked)
			}
			if c.asked == "" && asked != "" {
				t.Errorf("the proxy was asked %q", asked)
			}
			if !strings.Contains(string(out), c.says) {
				t.Errorf("%s does not say %q", out, c.says)
			}
		})
	}
}
