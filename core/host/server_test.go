package host

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

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
	s.stop(t.Context(), apiGrace)
}

// lone is a listener with one connection, whose deadlines are of the bubble that it was made in.
type lone struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *lone) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *lone) Close() error   { close(l.closed); return nil }
func (l *lone) Addr() net.Addr { return &net.IPAddr{} }

func TestAConnectionThatNobodyUsesIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		listener := &lone{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		listener.conns <- far
		s := serve(context.Background(), listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), hclog.NewNullLogger())
		began := time.Now()
		_, err := io.WriteString(near, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		must(t, err)
		_, err = io.Copy(io.Discard, near) // the answer, and then the end of the connection
		must(t, err)
		equal(t, "open for", time.Since(began), idleFor)
		s.stop(t.Context(), apiGrace)
	})
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
	s.stop(t.Context(), apiGrace)
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
