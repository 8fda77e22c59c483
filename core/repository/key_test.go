package repository

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// CASES A51, A52
func TestKeysAreThoseOfTheFormat(t *testing.T) {
	id := PackID{Epoch: 7, Number: 42, SHA256: Sum(nil)}
	for got, want := range map[string]string{
		FormatKey("p/q"):           "p/q/FORMAT.json",
		ReadmeKey("p/q"):           "p/q/README.txt",
		EpochKey("p/q", 7):         "p/q/epoch/00000000000000000007.json",
		CommitKey("p/q", 42):       "p/q/commit/00000000000000000042.json.zst",
		GCKey("p/q", 3):            "p/q/gc/00000000000000000003.json",
		PinKey("p/q", "audit"):     "p/q/pin/audit.json",
		ProbeKey("p/q", "me", "1"): "p/q/probe/me/1",
		PackKey("p/q", id): "p/q/pack/00000000000000000007/00000000000000000042/" +
			"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	} {
		if got != want {
			t.Errorf("key %s, want %s", got, want)
		}
	}
}

// CASES A32
func TestKeysSortAsTheirNumbersAndParseBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Uint64Range(1, 20), rapid.Uint64Range(1, math.MaxUint64))
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		if (a < b) != (CommitKey("p", a) < CommitKey("p", b)) {
			t.Fatalf("%d and %d do not sort as their keys", a, b)
		}
		for _, parse := range []struct {
			key   string
			parse func(prefix, key string) (uint64, error)
		}{{CommitKey("p", a), ParseCommitKey}, {EpochKey("p", a), ParseEpochKey}, {GCKey("p", a), ParseGCKey}} {
			if n, err := parse.parse("p", parse.key); err != nil || n != a {
				t.Fatalf("parse %s: %d, %v", parse.key, n, err)
			}
		}
		ids := []PackID{{a, b, Sum([]byte{1})}, {b, a, Sum([]byte{2})}, {a, b, Sum([]byte{3})}}
		slices.SortFunc(ids, PackID.Compare)
		if !slices.IsSortedFunc(ids, func(x, y PackID) int { return strings.Compare(x.String(), y.String()) }) {
			t.Fatalf("packs do not sort as their keys: %v", ids)
		}
		if back, err := ParsePackKey("p", PackKey("p", ids[0])); err != nil || back != ids[0] {
			t.Fatalf("parse %s: %v, %v", ids[0], back, err)
		}
	})
}

func foreignKeys() []string {
	good := CommitKey("p", 42)
	pack := PackKey("p", PackID{1, 2, Sum(nil)})
	return []string{
		"", "p", "p/", "q/commit/00000000000000000042.json.zst", good + "~", good + ".tmp", strings.TrimSuffix(good, ".zst"),
		"p/commit/0000000000000000042.json.zst", "p/commit/000000000000000000042.json.zst", "p/commit/+0000000000000000042.json.zst",
		"p/commit/00000000000000000000.json.zst", "p/commit/99999999999999999999.json.zst", "p/commit/0000000000000000004x.json.zst",
		"p/commit/sub/00000000000000000042.json.zst", "p/commit/.json.zst", "p/commit/", strings.ToUpper(pack), pack + "/x", pack + "0",
		"p/pack/00000000000000000001/" + Sum(nil).String(), "p/pack/00000000000000000000/00000000000000000001/" + Sum(nil).String(), "p/.DS_Store",
	}
}

func TestForeignObjectsAreRefusedByEveryKeyParser(t *testing.T) {
	for _, key := range foreignKeys() {
		if n, err := ParseCommitKey("p", key); err == nil {
			t.Errorf("commit key %q is taken for %d", key, n)
		}
		if n, err := ParseEpochKey("p", key); err == nil {
			t.Errorf("epoch key %q is taken for %d", key, n)
		}
		if n, err := ParseGCKey("p", key); err == nil {
			t.Errorf("gc key %q is taken for %d", key, n)
		}
		if id, err := ParsePackKey("p", key); err == nil {
			t.Errorf("pack key %q is taken for %s", key, id)
		}
	}
}

func TestAPrefixIsSegmentsOfPlainCharacters(t *testing.T) {
	for _, good := range []string{"strikes", "a/b-c/d_e.f", "0", strings.Repeat("x", MaxPrefix)} {
		if err := CheckPrefix(good); err != nil {
			t.Errorf("prefix %q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "/a", "a/", "a//b", ".", "a/../b", "./a", "A", "a b", "ü", "a\x00", "a\\b", strings.Repeat("x", MaxPrefix+1)} {
		if CheckPrefix(bad) == nil {
			t.Errorf("prefix %q is accepted", bad)
		}
	}
}

// CASES A52
func TestTheLongestKeyFitsTheContract(t *testing.T) {
	const maxKey = 512 // sdk.MaxKey, which this room may not import
	key := PackKey(strings.Repeat("x", MaxPrefix), PackID{math.MaxUint64, math.MaxUint64, Sum(nil)})
	if len(key) > maxKey || len(key) != MaxPrefix+112 {
		t.Fatalf("longest key has %d bytes", len(key))
	}
}

func FuzzKeys(f *testing.F) {
	for _, key := range foreignKeys() {
		f.Add(key)
	}
	f.Add(CommitKey("p", 42))
	f.Add(PackKey("p", PackID{1, 2, Sum(nil)}))
	f.Fuzz(func(t *testing.T, key string) {
		if n, err := ParseCommitKey("p", key); err == nil && CommitKey("p", n) != key {
			t.Errorf("commit key %q parses to %d and is not its key", key, n)
		}
		if n, err := ParseEpochKey("p", key); err == nil && EpochKey("p", n) != key {
			t.Errorf("epoch key %q parses to %d and is not its key", key, n)
		}
		if id, err := ParsePackKey("p", key); err == nil && PackKey("p", id) != key {
			t.Errorf("pack key %q parses to %s and is not its key", key, id)
		}
	})
}
