package api

import (
	"encoding/json"
	"net"
	"net/http"
	"reflect"

	"github.com/cairnsync/cairn/sdk/client"
)

func errorType() reflect.Type { return reflect.TypeFor[Error]() }

// guard keeps web pages away. The API listens on loopback without authentication; a page that a person on this machine visits could
// otherwise speak to it through the browser: by rebinding its own name to 127.0.0.1, which the Host header shows, or by a plain form or an
// image, which the Origin and Sec-Fetch-Site headers show. A page could not read the answer of a GET, but have the machine work for it.
func guard(next http.Handler) http.Handler {
	foreign := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			refuse(w, Errorf(http.StatusForbidden, client.CodeForbiddenHost, "host %q is not this machine: use 127.0.0.1, [::1] or localhost", r.Host))
			return
		}
		if foreign.Check(asPost(r)) != nil {
			refuse(w, Errorf(http.StatusForbidden, client.CodeForbiddenHost,
				"requests of web pages are refused (origin %q): in a browser, type the address instead of following a link", r.Header.Get("Origin")))
			return
		}
		next.ServeHTTP(plainErrors{w}, r)
	})
}

// asPost is a request as it is judged: the library lets every GET pass.
func asPost(r *http.Request) *http.Request {
	judged := *r
	judged.Method = http.MethodPost
	return &judged
}

// plainErrors labels the HTTP library's own errors as what they are after sameShape: ordinary JSON, not problem+json.
type plainErrors struct{ http.ResponseWriter }

// WriteHeader sends the headers.
func (w plainErrors) WriteHeader(status int) {
	if w.Header().Get("Content-Type") == "application/problem+json" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w plainErrors) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if name == "localhost" {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func refuse(w http.ResponseWriter, err *Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(err.status)
	_ = json.NewEncoder(w).Encode(err) // the client has gone; there is nobody to tell
}
