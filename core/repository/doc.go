// Package repository says what lies on a target: the keys, the objects of format 1, and the plans that turn a checkpoint into packs and
// a commit, and a commit back into reads. The syncer and the host's offline commands call it.
//
// Everything here is pure: bytes and values in, bytes and values out. There is no clock, no I/O, no goroutine and no state, so each rule
// of the format can be tested by itself, and whoever holds a repository needs nothing but this package to read it.
//
//	<prefix>/FORMAT.json                          created once; what the repository is (Format)
//	<prefix>/README.txt                           for the person who finds the bucket; nothing depends on it
//	<prefix>/epoch/<20 digits>.json               created once per reign of a writer (Epoch)
//	<prefix>/commit/<20 digits>.json.zst          created once: the commit point (Commit)
//	<prefix>/gc/<20 digits>.json                  created once: which commits are gone (GC); the highest number wins
//	<prefix>/pack/<epoch>/<number>/<sha256>       stored chunks one after the other (PackID)
//	<prefix>/pin/<name>.json                      may be replaced or deleted
//	<prefix>/probe/<owner>/<name>                 no part of the repository: a host tries its rights there, and deletes it
//
// Objects are created if absent and never changed. Numbers begin at 1, are contiguous and never used again; order is by number,
// never by time. No key is another key's folder.
//
// Decoding is strict: an object of another format, an unknown field, a field given twice, bytes after the end, a value out of its range or
// an object stored under another object's key is refused. What a newer Cairn wrote is an *UnsupportedError naming the version that wrote
// it; everything else is ErrCorrupt.
package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// FormatVersion is the format that this package reads and writes.
const FormatVersion = 1

// The constants of format 1. They are written into FORMAT.json where a reader could not do without them, and never change within a format.
const (
	ChunkSize = 1 << 20  // bytes of a file that make one chunk; the last chunk of a file is shorter
	HashName  = "sha256" // the digest of chunks, packs and commits
	MaxPack   = 16 << 20 // bytes of the largest pack: a single Put on every store, and latency no longer counts (FACTS: 6.5 MB)

	// MaxCommit bounds the stored bytes of a commit. A store takes an object of this size in one Put (sdk.MaxObject).
	MaxCommit = 64 << 20
	// MaxCommitText bounds a commit's text before compression, so that a reader can bound its memory. Half of the text of
	// an ordinary commit is hexadecimal digests and does not shrink below half: MaxCommit is met first.
	MaxCommitText = 256 << 20
	// MaxSmall bounds FORMAT.json, an epoch, a gc object and a pin.
	MaxSmall = 1 << 20

	// ZstdWindow is the largest window of a zstd frame in a repository: a decoder may refuse to allocate more.
	ZstdWindow = 8 << 20
	// ChunkZstdLevel is the compression level of chunks as the zstd command counts: the fastest. A reader does not depend on it.
	ChunkZstdLevel = 1
)

// ErrCorrupt is in the chain of every error about bytes that no Cairn writes in this place.
var ErrCorrupt = errors.New("corrupt repository object")

// corrupt says what is wrong with an object.
func corrupt(object, format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", object, ErrCorrupt, fmt.Sprintf(format, args...))
}

// UnsupportedError refuses an object that this version cannot read safely. Nothing has been touched when it is returned.
type UnsupportedError struct {
	Object    string // which object: its key below the prefix
	What      string // what is not known, as "format 2" or `kind "snapshot"`
	WrittenBy string // the version that wrote the object, "" when the object does not say
}

func (e *UnsupportedError) Error() string {
	by := e.WrittenBy
	if by == "" {
		by = "an unknown version"
	}
	return fmt.Sprintf("%s: %s was written by %s and is not known to this version (format %d): use that version or a newer one",
		e.Object, e.What, by, FormatVersion)
}

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// Sum is the digest of b.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

// IsZero says that no digest was set.
func (d Digest) IsZero() bool { return d == Digest{} }

// String is 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText encodes as String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText accepts what String writes and nothing else.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// ParseDigest accepts 64 lower-case hexadecimal digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != hex.EncodedLen(len(d)) {
		return d, fmt.Errorf("digest of %d characters, want %d", len(s), hex.EncodedLen(len(d)))
	}
	for i := range len(s) {
		if !isLowerHex(s[i]) {
			return d, fmt.Errorf("digest %q: not lower-case hexadecimal", s)
		}
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err
}

func isLowerHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }
