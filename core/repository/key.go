package repository

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// MaxPrefix is the longest prefix in bytes. With the longest key below it (a pack: 112 bytes) it stays under sdk.MaxKey (512).
const MaxPrefix = 200

// digits of a number in a key: those of the largest uint64, so that keys sort as their numbers do.
const digits = 20

// CheckPrefix accepts one or more segments of [a-z0-9._-] joined by "/", none of them "." or "..", at most MaxPrefix bytes.
func CheckPrefix(prefix string) error {
	if prefix == "" || len(prefix) > MaxPrefix {
		return fmt.Errorf("prefix of %d bytes: want 1 to %d", len(prefix), MaxPrefix)
	}
	for segment := range strings.SplitSeq(prefix, "/") {
		if err := checkSegment(segment); err != nil {
			return fmt.Errorf("prefix %q: %w", prefix, err)
		}
	}
	return nil
}

func checkSegment(s string) error {
	switch s {
	case "":
		return fmt.Errorf("empty segment")
	case ".", "..":
		return fmt.Errorf("segment %q", s)
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return fmt.Errorf("character %q: want a-z, 0-9, '.', '_', '-'", c)
		}
	}
	return nil
}

// The folders of a repository, as listing prefixes.
const (
	epochDir  = "epoch/"
	commitDir = "commit/"
	gcDir     = "gc/"
	packDir   = "pack/"
	pinDir    = "pin/"
	probeDir  = "probe/"
)

// FormatKey names FORMAT.json.
func FormatKey(prefix string) string { return prefix + "/FORMAT.json" }

// ReadmeKey names README.txt.
func ReadmeKey(prefix string) string { return prefix + "/README.txt" }

// EpochKey names the epoch object e.
func EpochKey(prefix string, e uint64) string { return EpochPrefix(prefix) + pad(e) + ".json" }

// CommitKey names the commit n.
func CommitKey(prefix string, n uint64) string { return CommitPrefix(prefix) + pad(n) + ".json.zst" }

// GCKey names the gc object k.
func GCKey(prefix string, k uint64) string { return GCPrefix(prefix) + pad(k) + ".json" }

// PackKey names a pack.
func PackKey(prefix string, id PackID) string { return PackPrefix(prefix) + id.String() }

// PinKey names a pin; the name is one segment as in CheckPrefix.
func PinKey(prefix, name string) string { return prefix + "/" + pinDir + name + ".json" }

// ProbeKey names an object with which a host tries what the store lets it do; owner and name are one segment each, as in CheckPrefix.
func ProbeKey(prefix, owner, name string) string { return ProbePrefix(prefix) + owner + "/" + name }

// RootPrefix lists everything of a repository.
func RootPrefix(prefix string) string { return prefix + "/" }

// EpochPrefix lists the epochs, ascending.
func EpochPrefix(prefix string) string { return prefix + "/" + epochDir }

// CommitPrefix lists the commits, ascending.
func CommitPrefix(prefix string) string { return prefix + "/" + commitDir }

// GCPrefix lists the gc objects, ascending.
func GCPrefix(prefix string) string { return prefix + "/" + gcDir }

// PackPrefix lists the packs by epoch, number and digest, ascending.
func PackPrefix(prefix string) string { return prefix + "/" + packDir }

// PinPrefix lists the pins.
func PinPrefix(prefix string) string { return prefix + "/" + pinDir }

// ProbePrefix lists the objects of probes. They are no part of a repository: they may lie where none is, they hold nothing, and whoever finds one
// passes it over. They lie below the prefix all the same, for an operator may have given a host no rights beside it.
func ProbePrefix(prefix string) string { return prefix + "/" + probeDir }

func pad(n uint64) string { return fmt.Sprintf("%0*d", digits, n) }

// ParseEpochKey gives the number of an epoch object's key; any other key is refused.
func ParseEpochKey(prefix, key string) (uint64, error) {
	return parseNumberKey(EpochPrefix(prefix), ".json", key)
}

// ParseCommitKey gives the number of a commit's key; any other key is refused.
func ParseCommitKey(prefix, key string) (uint64, error) {
	return parseNumberKey(CommitPrefix(prefix), ".json.zst", key)
}

// ParseGCKey gives the number of a gc object's key; any other key is refused.
func ParseGCKey(prefix, key string) (uint64, error) {
	return parseNumberKey(GCPrefix(prefix), ".json", key)
}

// ParsePinKey gives the name in a pin's key; any other key is refused.
func ParsePinKey(prefix, key string) (string, error) {
	rest, ok := strings.CutPrefix(key, PinPrefix(prefix))
	if !ok {
		return "", foreign(key)
	}
	name, ok := strings.CutSuffix(rest, ".json")
	if !ok {
		return "", foreign(key)
	}
	if err := CheckPinName(name); err != nil {
		return "", fmt.Errorf("key %q: %w", key, err)
	}
	return name, nil
}

// ParsePackKey gives the id in a pack's key; any other key is refused.
func ParsePackKey(prefix, key string) (PackID, error) {
	rest, ok := strings.CutPrefix(key, PackPrefix(prefix))
	if !ok {
		return PackID{}, foreign(key)
	}
	id, err := ParsePackID(rest)
	if err != nil {
		return PackID{}, fmt.Errorf("key %q: %w", key, err)
	}
	return id, nil
}

func parseNumberKey(folder, suffix, key string) (uint64, error) {
	rest, ok := strings.CutPrefix(key, folder)
	if !ok {
		return 0, foreign(key)
	}
	text, ok := strings.CutSuffix(rest, suffix)
	if !ok {
		return 0, foreign(key)
	}
	n, err := parseNumber(text)
	if err != nil {
		return 0, fmt.Errorf("key %q: %w", key, err)
	}
	return n, nil
}

func foreign(key string) error { return fmt.Errorf("key %q does not belong to the repository", key) }

// parseNumber accepts exactly what pad writes for 1 and above.
func parseNumber(text string) (uint64, error) {
	if len(text) != digits {
		return 0, fmt.Errorf("number %q: want %d digits", text, digits)
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, fmt.Errorf("number %q: want %d digits", text, digits)
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("number %q: out of range", text)
	}
	return n, nil
}

// PackID names a pack: the epoch that wrote it and the commit number it was meant for belong to the name, so that a pack of
// one attempt is never taken for that of another, and a sweep can tell by the name alone what may still be in the making.
type PackID struct {
	Epoch  uint64
	Number uint64 // of the commit that the push aimed at
	SHA256 Digest // of the pack's bytes
}

// String is the key below pack/: "<epoch>/<number>/<sha256>", numbers zero-padded.
func (id PackID) String() string {
	return pad(id.Epoch) + "/" + pad(id.Number) + "/" + id.SHA256.String()
}

// ParsePackID accepts what String writes and nothing else.
func ParsePackID(s string) (PackID, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return PackID{}, fmt.Errorf("pack id %q: want epoch/number/sha256", s)
	}
	epoch, err := parseNumber(parts[0])
	if err != nil {
		return PackID{}, err
	}
	number, err := parseNumber(parts[1])
	if err != nil {
		return PackID{}, err
	}
	sum, err := ParseDigest(parts[2])
	if err != nil {
		return PackID{}, err
	}
	return PackID{Epoch: epoch, Number: number, SHA256: sum}, nil
}

// Compare orders packs as their keys sort.
func (id PackID) Compare(other PackID) int {
	return cmp.Or(cmp.Compare(id.Epoch, other.Epoch), cmp.Compare(id.Number, other.Number), bytes.Compare(id.SHA256[:], other.SHA256[:]))
}

// MarshalText encodes as String.
func (id PackID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText accepts what String writes.
func (id *PackID) UnmarshalText(text []byte) error {
	parsed, err := ParsePackID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
