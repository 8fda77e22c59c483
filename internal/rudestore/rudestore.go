// Package rudestore is an object store in memory that speaks as S3, Google Cloud Storage or Azure Blob Storage does, keeps its promises
// until it is told not to, and is then as rude as real stores are on a bad day: it drops a reply after storing, answers 200 with an
// error in it, cuts bodies short, says nothing at all.
//
// Only tests import it; it needs no download, so it runs wherever `make test` does. What goes wrong is data: Scenarios lists it once for
// all dialects, and Run puts a plugin's target through the list, the exam of package sdktest first. The HTTP server that Start starts,
// and with it every goroutine, has ended when the test's cleanup has run.
package rudestore

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Dialect is the language of a vendor.
type Dialect uint8

// The dialects, each as far as the vendor's own Go client speaks it to put, read, list and delete objects.
const (
	S3    Dialect = iota // path-style requests, SigV4 taken as read
	GCS                  // the JSON API, and the XML API for reads
	Azure                // block blobs in one Put
)

// String is the vendor's name for it.
func (d Dialect) String() string { return [...]string{"S3", "GCS", "Azure"}[d] }

func (d Dialect) speaker() speaker { return [...]speaker{s3{}, gcs{}, azure{}}[d] }

// Server is a store that runs, with an empty bucket in it: the same fields as teststore.Server, so that one converts into the other.
type Server struct {
	Endpoint             string // "http://127.0.0.1:PORT", without a path
	Bucket               string // the bucket, or the container of Azure
	Region               string // S3
	AccessKey, SecretKey string // S3; empty in scenarios where the target finds credentials itself
	Account, AccountKey  string // Azure; the key is in base64, as Azure gives it
}

const (
	bucket  = "cairn-test"
	account = "cairnaccount"
)

// Store is one bucket. The zero value is not usable; see New.
type Store struct {
	dialect Dialect
	speaker speaker
	arrived chan struct{} // has one token for each request that a fault keeps waiting
	closing chan struct{} // closed when no request may wait any longer

	mu       sync.Mutex
	objects  map[string]object
	versions int64
	fault    Fault
	faulted  int // requests that the fault has met, those spared by Fault.After included
	requests int // that were understood
	strays   int // that were not, or were for another bucket
	page     int
}

// object is never modified once stored.
type object struct {
	content  []byte
	version  int64
	modified time.Time
}

// New is an empty store without faults.
func New(d Dialect) *Store {
	return &Store{
		dialect: d, speaker: d.speaker(), objects: map[string]object{}, page: maxPage,
		arrived: make(chan struct{}, 64), closing: make(chan struct{}),
	}
}

var _ http.Handler = (*Store)(nil)

// Start serves the store on loopback until the test ends.
func (s *Store) Start(t testing.TB) Server {
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.closing)
		server.CloseClientConnections()
		server.Close()
	})
	return s.server(server.URL)
}

func (s *Store) server(endpoint string) Server {
	server := Server{Endpoint: endpoint, Bucket: bucket}
	switch s.dialect {
	case S3:
		server.Region, server.AccessKey, server.SecretKey = "us-east-1", "AKIARUDE", "rude-secret"
	case Azure:
		server.Account, server.AccountKey = account, "cnVkZSBhY2NvdW50IGtleSwgMzIgYnl0ZXMgbG9uZy4="
	case GCS:
	}
	return server
}

// Misbehave sets what goes wrong from now on; the zero Fault is nothing. It begins to count requests anew.
func (s *Store) Misbehave(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.faulted, s.requests, s.strays = f, 0, 0, 0
}

// Requests is how many requests have come since Misbehave.
func (s *Store) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Strays is how many requests have come since Misbehave that ask for something else than an object or a listing of this bucket.
func (s *Store) Strays() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strays
}

// Plant stores content behind the user's back.
func (s *Store) Plant(key string, content []byte) { s.put(key, content, false) }

// Content is what a key holds, behind the user's back. It must not be modified.
func (s *Store) Content(key string) ([]byte, bool) {
	obj, ok := s.object(key)
	return obj.content, ok
}

// Keys are all keys, ascending.
func (s *Store) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

func (s *Store) object(key string) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, ok := s.objects[key]
	return obj, ok
}

// put stores an object, unless it must be absent and is not.
func (s *Store) put(key string, content []byte, ifAbsent bool) (object, trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.objects[key]; taken && ifAbsent {
		return object{}, keyExists
	}
	s.versions++
	// The store's clock starts in 2000 and advances by a second with each Put: nothing here may depend on the time of day.
	obj := object{content: content, version: s.versions, modified: time.Date(2000, 1, 1, 0, 0, int(s.versions), 0, time.UTC)}
	s.objects[key] = obj
	return obj, none
}

// remove answers noSuchKey for a key that is not there.
func (s *Store) remove(key string) trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[key]; !ok {
		return noSuchKey
	}
	delete(s.objects, key)
	return none
}

// page of a listing.
type page struct {
	keys    []string
	objects []object
	more    bool   // further keys follow
	next    string // token of the next page; "" = there is none, or a fault keeps it
}

// list answers the keys after a bound: exclusively after c.after and after the token, or from c.from on.
func (s *Store) list(c call) page {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.page
	if c.max > 0 {
		size = min(size, c.max)
	}
	var p page
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(key, c.prefix) || key <= c.after || key <= c.token || key < c.from {
			continue
		}
		if len(p.keys) == size {
			p.more, p.next = true, p.keys[size-1]
			break
		}
		p.keys, p.objects = append(p.keys, key), append(p.objects, s.objects[key])
	}
	return p
}
