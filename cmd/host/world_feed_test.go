//go:build torture || cloud

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

// record is record i of an input, always the same.
func record(input string, i, payload int) string {
	text, bucket, amount := drawn(input, i, payload)
	return fmt.Sprintf(`{"id":%d,"bucket":%d,"amount":%d,"text":%q}`+"\n", i, bucket, amount, text)
}

func drawn(input string, i, payload int) (text []byte, bucket, amount int) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	draw := rand.New(rand.NewPCG(uint64(i), uint64(len(input))))
	text = make([]byte, payload)
	for j := range text {
		text[j] = letters[draw.IntN(len(letters))]
	}
	return text, draw.IntN(100), draw.IntN(1000)
}

// feedSpan is how many ids each feed has for itself.
const feedSpan = 1_000_000

// id is the i-th record's, of those of a feed.
func (s settings) id(i int) int { return s.feed*feedSpan + i }

// feed is the file that the input "lines" follows. It grows as the test goes on, and not by whole lines.
type feed struct {
	t       *testing.T
	file    *os.File
	content []byte
	written int
}

func newFeed(t *testing.T, path string, s settings) *feed {
	t.Helper()
	f, err := os.Create(path)
	check(t, err)
	t.Cleanup(func() { f.Close() })
	var content bytes.Buffer
	for i := range s.file {
		content.WriteString(record("lines", s.id(i+1), s.payload))
	}
	return &feed{t: t, file: f, content: content.Bytes()}
}

// upTo makes the file hold that part of its content.
func (f *feed) upTo(part float64) {
	f.t.Helper()
	end := min(len(f.content), int(part*float64(len(f.content))))
	if end > f.written {
		_, err := f.file.Write(f.content[f.written:end])
		check(f.t, err)
		f.written = end
	}
}

// sender is the client of the input "calls". It numbers its batches, and on each new connection it asks the host where to resume: after a
// restore that can be far behind what was answered before. All its calls until the next question go over that one connection, which cannot
// outlive its host; otherwise it could go on with a number of its own at a host that stands elsewhere.
type sender struct {
	url     string
	source  string // its name
	batches []string

	mu      sync.Mutex
	allowed int    // batches that may be sent by now
	acked   uint64 // greatest seq that was answered with success since the data folder was empty
	data    int    // how often it was
	resumed int    // how often a host was asked where to resume, and answered
	lost    []string
	paced   bool
}

// perBatch is small, so that a life of a second takes several batches.
const perBatch = 50

func newSender(url string, cfg settings) *sender {
	s := &sender{url: url, source: fmt.Sprintf("sender-%d", cfg.feed), paced: true}
	for first := 1; first <= cfg.http; first += perBatch {
		var batch strings.Builder
		for i := first; i < first+perBatch && i <= cfg.http; i++ {
			batch.WriteString(record("calls", cfg.id(i), cfg.payload))
		}
		s.batches = append(s.batches, batch.String())
	}
	return s
}

// upTo lets the sender send that part of all batches.
func (s *sender) upTo(part float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = max(s.allowed, min(len(s.batches), int(part*float64(len(s.batches)))))
}

// hurry lets it send all there is, as fast as the host takes it.
func (s *sender) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed, s.paced = len(s.batches), false
}

// forget says that the data folder is empty now: what was answered before may be lost with the folder before.
func (s *sender) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = 0
	s.data++
}

// run sends until ctx ends.
func (s *sender) run(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s.session(ctx, tick.C)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// session is one connection: a question, and batches until a call fails.
func (s *sender) session(ctx context.Context, tick <-chan time.Time) {
	transport := &http.Transport{MaxConnsPerHost: 1, DialContext: dialOnce()}
	defer transport.CloseIdleConnections()
	api := client.New(s.url, &http.Client{Transport: transport, Timeout: 30 * time.Second})
	for next := uint64(0); ; {
		at, err := s.call(ctx, api, next)
		if err != nil {
			return
		}
		next = at + 1
		if s.bursting(next) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// dialOnce makes one connection and no other.
func dialOnce() func(context.Context, string, string) (net.Conn, error) {
	var dialled atomic.Bool
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errors.New("the connection is gone")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// call sends batch next, or asks where the host stands when there is none to send. It answers the seq that the host holds.
func (s *sender) call(ctx context.Context, api *client.Client, next uint64) (uint64, error) {
	s.mu.Lock()
	data, allowed := s.data, s.allowed
	s.mu.Unlock()
	if next == 0 || next > uint64(allowed) {
		at, err := api.Position(ctx, pipe, "calls", s.source)
		if err == nil {
			s.resume(data, at)
		}
		return at, err
	}
	_, err := api.Ingest(ctx, pipe, "calls", s.source, next, "", strings.NewReader(s.batches[next-1]))
	if err == nil {
		s.answered(data, next)
	}
	return next, err
}

func (s *sender) bursting(next uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.paced && next <= uint64(s.allowed)
}

// resume notes where the host stands. Within one data folder it must hold everything that was answered with success.
func (s *sender) resume(data int, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed++
	if data != s.data || at >= s.acked {
		return
	}
	s.lost = append(s.lost, fmt.Sprintf("seq %d was answered with success, and the same data folder holds %d", s.acked, at))
	s.acked = at
}

func (s *sender) answered(data int, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data == s.data {
		s.acked = max(s.acked, seq)
	}
}

// faults are broken promises of the host.
func (s *sender) faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}
