// Package sdk is the contract between Cairn and a plugin: a store of small immutable objects.
package sdk

import (
	"context"
	"io"
	"iter"
	"time"
)

// Target is one configured store. All methods are called concurrently and return soon after ctx ends.
// A method does not retry: the host does, with the same arguments. The vendor client's own retries are off.
type Target interface {
	// Put stores one object, whole or not at all. A reader sees the old state or the complete object, never a part.
	// With IfAbsent, exactly one of any number of concurrent Puts of a key succeeds; the others fail with Exists.
	// Without it, Put of an existing key replaces it. When Put returns nil the object survives a crash of the store.
	// After a cancelled or failed Put the object may exist or not; the host reads it back.
	Put(ctx context.Context, req PutRequest) (PutResult, error)

	// Get opens an object or a range of it; NotFound when the key is proven absent (a 403 is PermissionDenied).
	// The caller closes GetResult.Body. The SDK compares what Body yields with Size: fewer bytes are Corrupt.
	Get(ctx context.Context, req GetRequest) (GetResult, error)

	// List yields the objects whose key starts with Prefix and is greater than StartAfter, strictly ascending by
	// key bytes, including every object whose Put returned before List was called. Any trouble is yielded as an
	// error and ends the listing: a listing without an error is complete.
	List(ctx context.Context, req ListRequest) iter.Seq2[Object, error]

	// Delete removes up to MaxDelete keys. A missing key is success. Failures are joined, each an *Error with Key.
	Delete(ctx context.Context, keys []string) error
}

// The limits of the contract.
const (
	MaxKey    = 512      // bytes; [a-z0-9._/-], no empty, "." or ".." segment, no leading or trailing "/"
	MaxObject = 64 << 20 // bytes; the host never sends a larger object, so no plugin needs multipart
	MaxDelete = 1000     // keys in one Delete
	MaxInline = 1 << 20  // bytes of a body that travel inside the RPC
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
