package rudestore

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// ServeHTTP answers one request: as a good store, or as the fault of the day says.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, trouble := s.speaker.read(r)
	if trouble != none {
		s.stray()
		s.refuse(w, r, c, trouble)
		return
	}
	if fault, ok := s.met(c); ok {
		s.play(fault, w, r, c)
		return
	}
	s.serve(w, r, c)
}

// met counts a request and answers the fault that meets it.
func (s *Store) met(c call) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.fault.Do == nothing || s.fault.On != c.op {
		return Fault{}, false
	}
	s.faulted++
	nth := s.faulted - s.fault.After
	return s.fault, nth > 0 && (s.fault.Times == 0 || nth <= s.fault.Times)
}

func (s *Store) stray() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strays++
}

// refuse answers trouble after reading what the client sends, as a front end does; otherwise it might see a broken pipe and no reply.
func (s *Store) refuse(w http.ResponseWriter, r *http.Request, c call, what trouble) {
	_, _ = io.Copy(io.Discard, r.Body) // whatever it was
	s.speaker.failed(w, c, what, 0)
}

// serve is the good store.
func (s *Store) serve(w http.ResponseWriter, r *http.Request, c call) {
	reply, what := s.do(r, c)
	switch what {
	case none:
		reply(w)
	case incomplete:
		panic(http.ErrAbortHandler)
	default:
		s.speaker.failed(w, c, what, 0)
	}
}

// do carries a call out, and answers how to tell.
func (s *Store) do(r *http.Request, c call) (reply func(http.ResponseWriter), what trouble) {
	body, what := readBody(r)
	if what != none {
		return nil, what
	}
	switch c.op {
	case Put:
		return s.doPut(r, c, body)
	case Delete:
		return s.doDelete(c, body)
	case List:
		p := s.list(c)
		return func(w http.ResponseWriter) { s.speaker.listed(w, c, p) }, none
	case Get, Head:
		obj, ok := s.object(c.key)
		if !ok {
			return nil, noSuchKey
		}
		if c.op == Head {
			return func(w http.ResponseWriter) { s.speaker.about(w, c, obj) }, none
		}
		part, what := c.cut(obj.content)
		return func(w http.ResponseWriter) { s.send(w, c, obj, len(part), bytes.NewReader(part)) }, what
	}
	return nil, notImplemented
}

func (s *Store) doPut(r *http.Request, c call, body []byte) (func(http.ResponseWriter), trouble) {
	content, what := s.speaker.content(r, body)
	if what != none {
		return nil, what
	}
	obj, what := s.put(c.key, content, c.ifAbsent)
	return func(w http.ResponseWriter) { s.speaker.stored(w, c, obj) }, what
}

func (s *Store) doDelete(c call, body []byte) (func(http.ResponseWriter), trouble) {
	keys, what := s.speaker.keys(c, body)
	if what != none {
		return nil, what
	}
	faults := make([]trouble, len(keys))
	for i, key := range keys {
		faults[i] = s.remove(key)
	}
	return func(w http.ResponseWriter) { s.speaker.deleted(w, c, keys, faults) }, none
}

// send answers a get: the headers for size bytes, and then whatever content has.
func (s *Store) send(w http.ResponseWriter, c call, obj object, size int, content io.Reader) {
	s.speaker.described(w.Header(), obj)
	w.Header().Set("Content-Length", strconv.Itoa(size))
	if c.ranged {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", c.offset, c.offset+int64(size)-1, len(obj.content)))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		w.WriteHeader(http.StatusOK)
	}
	_, _ = io.Copy(w, content) // a client that is gone needs no reply
}
