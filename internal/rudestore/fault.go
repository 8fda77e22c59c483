package rudestore

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// Fault is what goes wrong. The zero value is nothing.
type Fault struct {
	On    Op  // requests of this operation
	After int // so many of them are spared first
	Times int // so many are met then; 0 = all
	Do    Action

	what       trouble // for actions that answer with an error
	retryAfter string  // value of that header; "" = none
	elsewhere  bool    // with an address to go to
}

// Action is a way of being rude.
type Action uint8

// The actions.
const (
	nothing    Action = iota
	answer            // an error in the vendor's words, instead of doing it
	answerOK          // the same error, under status 200
	page412           // the page of a proxy that lets nobody in
	page404           // the page of a proxy, which knows no store here
	page200           // the page of a proxy, under status 200
	dropReply         // do it, and close the connection instead of telling
	delay             // do it, and tell after 200 ms
	readHalf          // read half of the request's body and close the connection
	readLittle        // read the beginning of it and close the connection
	silence           // read the request and never answer
	cutBody           // of a get: close the connection after half of the body
	otherBytes        // of a get: the right number of bytes, one of them another
	trickle           // of a get: a byte every 10 ms
	noToken           // of a list: a page that says more follows, and not where
	refuseKeys        // of a delete: nothing is removed, and each key has its error
)

// play is a fault in action.
func (s *Store) play(f Fault, w http.ResponseWriter, r *http.Request, c call) {
	switch f.Do {
	case answer:
		if f.retryAfter != "" {
			w.Header().Set("Retry-After", f.retryAfter)
		}
		if f.elsewhere {
			w.Header().Set("Location", "/elsewhere/"+c.key)
		}
		s.refuse(w, r, c, f.what)
	case answerOK:
		_, _ = io.Copy(io.Discard, r.Body) // it is ignored
		s.speaker.failed(w, c, f.what, http.StatusOK)
	case page412:
		proxyPage(w, r, http.StatusPreconditionFailed)
	case page404:
		proxyPage(w, r, http.StatusNotFound)
	case page200:
		proxyPage(w, r, http.StatusOK)
	case dropReply:
		_, _ = s.do(r, c) // that is the reply
		s.breakOff(w)
	case delay:
		s.wait(r, 200*time.Millisecond)
		s.serve(w, r, c)
	case readHalf:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2) // of an unknown length nothing
		panic(http.ErrAbortHandler)
	case readLittle:
		_, _ = io.CopyN(io.Discard, r.Body, 1000) // for what it is worth
		panic(http.ErrAbortHandler)
	case silence:
		_, _ = io.Copy(io.Discard, r.Body) // the server notices only then that a client has gone
		s.stall(r)
		panic(http.ErrAbortHandler)
	case cutBody, otherBytes, trickle:
		s.playGet(f, w, r, c)
	case noToken:
		p := s.list(c)
		p.next = ""
		s.speaker.listed(w, c, p)
	case refuseKeys:
		s.playDelete(f, w, r, c)
	case nothing:
	}
}

// proxyPage is what stands before a store and not in any vendor's documentation. Its HTML is no XML.
func proxyPage(w http.ResponseWriter, r *http.Request, status int) {
	_, _ = io.Copy(io.Discard, r.Body) // it is ignored
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<!DOCTYPE html><html><head><meta charset=utf-8><title>nginx</title><body><h1>Not for you & me</h1><hr>nginx\n") // a client that is gone gets none of it
}

// playGet sends an object badly.
func (s *Store) playGet(f Fault, w http.ResponseWriter, r *http.Request, c call) {
	obj, ok := s.object(c.key)
	content, what := c.cut(obj.content)
	if !ok || what != none {
		s.serve(w, r, c)
		return
	}
	switch f.Do {
	case cutBody:
		s.send(w, c, obj, len(content), bytes.NewReader(content[:len(content)/2]))
		flush(w)
		panic(http.ErrAbortHandler)
	case trickle:
		s.send(w, c, obj, len(content), &slow{store: s, r: r, w: w, content: content})
		panic(http.ErrAbortHandler)
	default:
		other := bytes.Clone(content)
		other[len(other)/2] ^= 1
		s.send(w, c, obj, len(other), bytes.NewReader(other))
	}
}

func (s *Store) playDelete(f Fault, w http.ResponseWriter, r *http.Request, c call) {
	body, _ := readBody(r) // without one there are no keys
	keys, what := s.speaker.keys(c, body)
	if what != none {
		s.speaker.failed(w, c, what, 0)
		return
	}
	faults := make([]trouble, len(keys))
	for i := range faults {
		faults[i] = f.what
	}
	s.speaker.deleted(w, c, keys, faults)
}

// breakOff closes the connection within the first line of a reply. After nothing at all of one net/http would repeat a GET by itself when
// the connection was used before: it cannot tell that from a connection that was idle for too long.
func (s *Store) breakOff(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 ") // a client that is gone gets none of it
	_ = conn.Close()                         // that is the point
}

// flush sends what is buffered, so that the client has it before the connection ends.
func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() } // a client that is gone needs none

// wait returns after d, or when the client or the test is gone.
func (s *Store) wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

// stall tells the test that a request is here, and returns when the client or the test is gone.
func (s *Store) stall(r *http.Request) {
	s.tell()
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
}

func (s *Store) tell() {
	select {
	case s.arrived <- struct{}{}:
	default: // enough are told
	}
}

// slow yields a byte every 10 ms, as long as there is a client.
type slow struct {
	store   *Store
	r       *http.Request
	w       http.ResponseWriter
	content []byte
	sent    int
}

func (t *slow) Read(p []byte) (int, error) {
	flush(t.w)
	if t.sent > 0 {
		t.store.tell()
	}
	if t.sent == len(t.content) || !t.store.wait(t.r, 10*time.Millisecond) {
		return 0, io.EOF
	}
	p[0] = t.content[t.sent]
	t.sent++
	return 1, nil
}
