package rpc

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// beat sends a sign of life on a call's stream at a steady pace, beside what the handler itself sends. Its goroutine ends in stop.
type beat struct {
	mu   sync.Mutex // a stream takes one send at a time
	quit chan struct{}
	done chan struct{}
}

// startBeat calls send every so often, under the lock that also guards sends through the beat. A failed send ends the beating: gRPC
// has then ended the call's context as well.
func startBeat(every time.Duration, send func() error) *beat {
	b := &beat{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-b.quit:
				return
			case <-tick.C:
				if b.send(send) != nil {
					return
				}
			}
		}
	}()
	return b
}

func (b *beat) send(send func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return send()
}

func (b *beat) stop() {
	close(b.quit)
	<-b.done
}

// meter counts the bytes that a call has moved.
type meter struct{ bytes atomic.Int64 }

// source counts what is read of a body, again when it is read again: it shows that something moves, not how far it has come.
func (m *meter) source(src io.ReaderAt) io.ReaderAt { return meteredAt{src, m} }

func (m *meter) reader(src io.Reader) io.Reader { return metered{src, m} }

type meteredAt struct {
	io.ReaderAt
	meter *meter
}

func (r meteredAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.meter.bytes.Add(int64(n))
	return n, err
}

type metered struct {
	io.Reader
	meter *meter
}

func (r metered) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.meter.bytes.Add(int64(n))
	return n, err
}
