package repository

import (
	"errors"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzSmallObjects: what is read as FORMAT.json, an epoch, a gc object or a pin can be written, and is then read back as the same.
func FuzzSmallObjects(f *testing.F) {
	pin := Pin{Name: "n", Commit: 12, Checkpoint: testID(9), Created: testTime(), By: "db-1", Note: "why", WrittenBy: "cairn 0.1.0"}
	for _, encode := range []func() ([]byte, error){
		func() ([]byte, error) { return EncodeFormat(testFormat()) }, func() ([]byte, error) { return EncodeEpoch(testEpoch()) },
		func() ([]byte, error) { return EncodeGC(testGC()) }, func() ([]byte, error) { return EncodePin(pin) },
	} {
		b, err := encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		roundTrip(t, b, DecodeFormat, EncodeFormat)
		roundTrip(t, b, func(b []byte) (Epoch, error) { return DecodeEpoch(7, b) }, EncodeEpoch)
		roundTrip(t, b, func(b []byte) (GC, error) { return DecodeGC(3, b) }, EncodeGC)
		roundTrip(t, b, func(b []byte) (Pin, error) { return DecodePin("n", b) }, EncodePin)
	})
}

func roundTrip[T any](t *testing.T, b []byte, decode func([]byte) (T, error), encode func(T) ([]byte, error)) {
	t.Helper()
	v, err := decode(b)
	if err != nil {
		if _, unsupported := errors.AsType[*UnsupportedError](err); !unsupported && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%q: %v is neither corrupt nor unsupported", b, err)
		}
		return
	}
	again, err := encode(v)
	if err != nil {
		t.Fatalf("%q is read but cannot be written: %v", b, err)
	}
	// By the bytes of a second writing: an empty list that was read is not the nil that the next reading gives.
	back, err := decode(again)
	if err != nil {
		t.Fatalf("%q cannot be read back: %v", again, err)
	}
	if third, err := encode(back); err != nil || !reflect.DeepEqual(again, third) {
		t.Fatalf("%q is read back and written as %q, %v", again, third, err)
	}
}

// CASES A49
func FuzzNoPathThatIsAcceptedLeavesItsRoot(f *testing.F) {
	for _, p := range []string{"a", "a/b", "../x", "/etc/x", "a/../../b", "a\x00b", "a//b", ".", "..", "...", "a/.", "\xff", ""} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if CheckPath(p) == nil && (!filepath.IsLocal(p) || filepath.Clean(p) != p) {
			t.Errorf("path %q is accepted", p)
		}
	})
}
