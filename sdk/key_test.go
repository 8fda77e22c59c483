package sdk_test

import (
	"errors"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestKeysThatTheContractAllows(t *testing.T) {
	long := strings.Repeat("a", sdk.MaxSegment)
	for _, key := range []string{"a", "a/b", "FORMAT.json", "...", "a..b", ".a", "-", "_", long, long + "/" + long, strings.Repeat("a/", 255) + "ab"} {
		if err := sdk.CheckKey(key); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// CASES A51
func TestKeysThatTheContractForbids(t *testing.T) {
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a/..", "a b", "a\nb", "a\x00", "ä", "a\\b", "a%2F", "a+b", "a:b", "\xff", "😀",
		strings.Repeat("a", sdk.MaxSegment+1), strings.Repeat("a/", 256) + "a",
	} {
		if err := sdk.CheckKey(key); !errors.Is(err, sdk.Unsupported) {
			t.Errorf("CheckKey(%q) = %v", key, err)
		}
	}
}

func TestAPrefixMayEndAnywhereInAKey(t *testing.T) {
	for _, prefix := range []string{"", "a", "a/", "a/b", "."} {
		if err := sdk.CheckPrefix(prefix); err != nil {
			t.Errorf("%v", err)
		}
	}
	for _, prefix := range []string{"a b", "\x00", strings.Repeat("a", sdk.MaxKey+1)} {
		if err := sdk.CheckPrefix(prefix); !errors.Is(err, sdk.Unsupported) {
			t.Errorf("CheckPrefix(%q) = %v", prefix, err)
		}
	}
}

func FuzzCheckKeyAgreesWithItsDescription(f *testing.F) {
	allowed := regexp.MustCompile(`\A[A-Za-z0-9._/-]+\z`)
	for _, key := range []string{"a/b", "../a", "a//b", "ä", strings.Repeat("a", 201)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		// The naive twin: a clean relative path of the alphabet.
		want := allowed.MatchString(key) && len(key) <= sdk.MaxKey && path.Clean("/"+key) == "/"+key
		for _, segment := range strings.Split(key, "/") {
			want = want && len(segment) <= sdk.MaxSegment
		}
		if got := sdk.CheckKey(key) == nil; got != want {
			t.Errorf("CheckKey(%q) is %v", key, sdk.CheckKey(key))
		}
	})
}
