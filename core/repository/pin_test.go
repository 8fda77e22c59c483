package repository

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func testPin() Pin {
	return Pin{
		Name: "before-migration", Commit: 12, Checkpoint: testID(9), Created: testTime(), By: "db-1.example", Note: "schema 7 -> 8", WrittenBy: "cairn 0.1.0",
	}
}

func TestPinsAreReadBackAsTheyWereWritten(t *testing.T) {
	byCommit, byCheckpoint := testPin(), testPin()
	byCommit.Checkpoint, byCommit.Note = uuid.Nil, ""
	byCheckpoint.Commit = 0
	for _, pin := range []Pin{testPin(), byCommit, byCheckpoint} {
		b, err := EncodePin(pin)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodePin(pin.Name, b); err != nil || back != pin {
			t.Errorf("%+v, %v", back, err)
		}
	}
}

func TestPinsThatNoCairnWritesAreRefused(t *testing.T) {
	good, err := EncodePin(testPin())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, old, new string }{
		{"empty", string(good), ""},
		{"cut", "}\n", ""},
		{"under another's key", "before-migration", "after-migration"},
		{"a field of its own", `"commit":12`, `"commit":12,"expires":"never"`},
		{"a negative commit", `"commit":12`, `"commit":-12`},
		{"null", `"commit":12`, `"commit":null`},
		{"nobody made it", "db-1.example", ""},
		{"a note of many lines", "schema 7", `schema\n7`},
		{"a note above its bound", "schema 7", strings.Repeat("x", MaxPinNote)},
	} {
		if _, err := DecodePin("before-migration", []byte(strings.Replace(string(good), row.old, row.new, 1))); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if _, err := DecodePin("before-migration", []byte(strings.Replace(string(good), `"format":1`, `"format":2`, 1))); err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("of a newer format: %v", err)
	}
	nothing := testPin()
	nothing.Commit, nothing.Checkpoint = 0, uuid.Nil
	if _, err := EncodePin(nothing); err == nil || !strings.Contains(err.Error(), "neither a commit nor a checkpoint") {
		t.Errorf("a pin of nothing: %v", err)
	}
}

func TestPinNamesAreOneSegmentOfAKey(t *testing.T) {
	for _, name := range []string{"a", "before-migration", "v1.2_x"} {
		got, err := ParsePinKey("p/q", PinKey("p/q", name))
		if err != nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, key := range []string{
		"p/q/pin/.json", "p/q/pin/..json", "p/q/pin/A.json", "p/q/pin/a/b.json", "p/q/pin/a", "p/q/gc/a.json", "p/pin/a.json",
		PinKey("p/q", strings.Repeat("x", MaxPinName+1)),
	} {
		if name, err := ParsePinKey("p/q", key); err == nil {
			t.Errorf("%q is taken for pin %q", key, name)
		}
	}
}
