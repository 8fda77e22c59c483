package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// server is the API while it is served.
type server struct {
	http   *http.Server
	failed chan error // has room for what ended it, when nobody stopped it
	loop   sync.WaitGroup
	cancel context.CancelFunc

	mu      sync.Mutex     // guards closing, and every Add to calls
	closing bool           // no call is taken any more
	calls   sync.WaitGroup // being answered
}

// idleFor is how long a connection that nobody uses stays open.
const idleFor = 2 * time.Minute

// serve answers calls until stop. Calls outlive nothing: their contexts end in stop.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log hclog.Logger) *server {
	s := &server{failed: make(chan error, 1)}
	var calls context.Context
	s.http = &http.Server{Handler: s.count(handler), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleFor, ErrorLog: log.StandardLogger(nil)}
	s.http.BaseContext = func(net.Listener) context.Context { return calls }
	calls, s.cancel = context.WithCancel(ctx)
	s.loop.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve the API: %w", err)
		}
	})
	return s
}

// count lets stop wait for calls that it has cut off.
func (s *server) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.take() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer s.calls.Done()
		next.ServeHTTP(w, r)
	})
}

func (s *server) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.calls.Add(1)
	}
	return !s.closing
}

// apiGrace is how long calls that are being answered may take at the end, where there is so much time: the pipelines have stopped, so none of them has to wait.
const apiGrace = 2 * time.Second

// stop lets calls end, cuts off those that take longer than grace, and waits until nothing of the server is left.
func (s *server) stop(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.cancel()
		_ = s.http.Close() // what is left are idle or broken connections
	}
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.calls.Wait()
	s.cancel()
	s.loop.Wait()
}
