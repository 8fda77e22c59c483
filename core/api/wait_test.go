package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// pipe is a listener with one connection, whose deadlines are of the bubble that it was made in.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error   { close(p.closed); return nil }
func (p *pipe) Addr() net.Addr { return &net.IPAddr{} }

// A client that asked for five minutes was cut off after one: the deadline of the body outlived it, and ended the request's context.
func TestAWaitMayTakeLongerThanABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		committed := func(ctx context.Context) error {
			select {
			case <-time.After(4 * time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		near, far := net.Pipe()
		listener := &pipe{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		listener.conns <- far
		server := &http.Server{Handler: Handler(fakeHost{p: &fakePipeline{result: circuit.IngestResult{Step: 9}, wait: committed}})}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
		resp, err := (&http.Client{Transport: transport}).Post(
			"http://localhost/v0/pipelines/p/ingress/in?wait=commit&timeout=5m", "application/x-ndjson", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || decode[client.Ingested](t, string(text)).Waited != "commit" {
			t.Errorf("%v: status %d: %s", err, resp.StatusCode, text)
		}
		transport.CloseIdleConnections()
		server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
