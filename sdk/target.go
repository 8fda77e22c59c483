// Package sdk is the contract between Cairn and a plugin: a store of small immutable objects.
//
// A plugin author writes a configuration struct, a type with the four methods of Target, and a main that hands a Plugin to rpc.Serve.
// Everything else is the SDK's and the host's: the wire, retries, deadlines, chunks, progress, the life of the process. Each sentence
// of the comments here is a case of the exam in package sdktest.
//
// The package starts no goroutine and holds no state. It imports the standard library and hclog, nothing else.
package sdk

import (
	"context"
	"io"
	"iter"
	"time"
)

// Target is one configured store. All methods are called concurrently and return soon after ctx ends.
// The store may be open in several processes at once, such as two hosts': a Target holds no lock on it between calls.
// A method does not retry: the host does, with the same arguments. The vendor client's own retries are off.
// Failures are told by code: see Code for which means what; an error without one is Internal, the plugin's defect.
// The SDK has checked the arguments before a method sees them: keys by CheckKey, prefixes by CheckPrefix, ranges by CheckGet, sizes
// and counts by the limits below.
type Target interface {
	// Put stores one object, whole or not at all. A reader sees the old state or the complete object, never a part.
	// With IfAbsent, exactly one of any number of concurrent Puts of a key succeeds; the others fail with Exists, and so does any later
	// one. Without it, Put of an existing key replaces it. When Put returns nil the object survives a crash of the store.
	// After a cancelled or failed Put the object may exist or not; the host reads it back. A body that turns out damaged while it
	// is read (BodyReader answers Corrupt) is never stored.
	Put(ctx context.Context, req PutRequest) (PutResult, error)

	// Get opens an object or a range of it; NotFound when the key is proven absent (a 403 is PermissionDenied).
	// A range that reaches past the end yields what there is; one that begins after the last byte is Corrupt.
	// The caller closes GetResult.Body. The SDK compares what Body yields with Size: fewer or more bytes are Corrupt.
	Get(ctx context.Context, req GetRequest) (GetResult, error)

	// List yields the objects whose key starts with Prefix and is greater than StartAfter, strictly ascending by
	// key bytes, including every object whose Put returned before List was called. Any trouble is yielded as an
	// error and ends the listing: a listing without an error is complete. No object is no error. An object of someone else whose
	// key CheckKey refuses may be left out.
	List(ctx context.Context, req ListRequest) iter.Seq2[Object, error]

	// Delete removes up to MaxDelete keys, exactly those: nothing below or beside them. A missing key is success. Failures are
	// joined, each an *Error with Key; the other keys are gone all the same.
	Delete(ctx context.Context, keys []string) error
}

// The limits of the contract.
const (
	MaxKey    = 512      // bytes; [A-Za-z0-9._/-], no empty, "." or ".." segment, no leading or trailing "/"
	MaxObject = 64 << 20 // bytes; the host never sends a larger object, so no plugin needs multipart
	MaxDelete = 1000     // keys in one Delete
	MaxInline = 1 << 20  // bytes of a body that travel inside the RPC

	// MaxSegment bounds one part of a key between slashes, in bytes: a file system holds 255 in a name, and a store that keeps
	// objects as files needs room for a suffix of its own.
	MaxSegment = 200
)

// Class tells a store with several storage classes what an object is for.
type Class uint8

// The classes of object.
const (
	ClassMeta Class = iota // small, read at every start: always the hot class
	ClassBulk              // packs: the class the operator chose
)

// PutRequest is one object to store.
type PutRequest struct {
	Key      string
	Body     Body
	IfAbsent bool
	Class    Class
}

// PutResult is what the store says of an object it stored.
type PutResult struct {
	Version string   // the store's own name for what it stored (ETag, generation), for logs; may be empty
	SHA256  [32]byte // only when the store itself attests it, else zero
}

// GetRequest names an object or a range of one.
type GetRequest struct {
	Key    string
	Offset int64
	Length int64 // -1 = to the end; never 0; with Offset 0 and Length -1 no range is asked of the store
}

// GetResult is an open object.
type GetResult struct {
	Body io.ReadCloser
	Size int64 // bytes that Body will yield, as the store declares it
}

// ListRequest asks for the keys below a prefix.
type ListRequest struct {
	Prefix     string
	StartAfter string
	Limit      int // a hint for the page size; 0 = none
}

// Object is one row of a listing.
type Object struct {
	Key      string
	Size     int64
	Modified time.Time // by the store's clock
}
