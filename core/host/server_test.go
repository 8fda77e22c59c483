package host

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func serveFor(t *testing.T, handler http.HandlerFunc) (*server, net.Listener) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return serve(context.Background(), listener, handler, hclog.NewNullLogger()), listener
}

func TestAListenerThatFailsIsTold(t *testing.T) {
	s, listener := serveFor(t, func(http.ResponseWriter, *http.Request) {})
	must(t, listener.Close())
	err := <-s.failed
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	contains(t, err.Error(), "serve the API")
	s.stop(t.Context())
}

func TestACallThatTakesTooLongIsCutOffAndWaitedFor(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	s, listener := serveFor(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		ended <- r.Context().Err()
	})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if resp, err := http.Get("http://" + listener.Addr().String()); err == nil { // it may get its empty answer still
			resp.Body.Close()
		}
	}()
	<-begun
	s.stop(t.Context())
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	default:
		t.Error("stop returned before the call")
	}
	<-answered
	if s.take() {
		t.Error("a call is taken after stop")
	}
}
