package sqlcircuit

import (
	"context"
	"sync"
)

// life lets any goroutine work on the open circuit and lets Close wait for all of them.
type life struct {
	mu     sync.Mutex
	open   bool
	end    chan struct{} // closed when Close begins; nil before Open
	inside sync.WaitGroup
}

func (l *life) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.end = true, make(chan struct{})
}

// enter says that work begins; each success is followed by one leave.
func (l *life) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return ErrNotRunning
	}
	l.inside.Add(1)
	return nil
}

func (l *life) leave() { l.inside.Done() }

func (l *life) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// closing is closed when Close begins. Only who has entered may ask.
func (l *life) closing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// bound ends ctx, with ErrNotRunning as its cause, when Close begins.
func (l *life) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	closing := l.closing()
	done := make(chan struct{})
	go func() {
		select {
		case <-closing:
			cancel(ErrNotRunning)
		case <-done:
		}
	}()
	var once sync.Once
	return ctx, func() {
		once.Do(func() { close(done) })
		cancel(nil)
	}
}

// stop refuses new work and waits for what is inside.
func (l *life) stop() {
	l.mu.Lock()
	if l.open {
		l.open = false
		close(l.end)
	}
	l.mu.Unlock()
	l.inside.Wait()
}
