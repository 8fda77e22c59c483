package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// keysFile is a shared credentials file.
type keysFile string

func newKeysFile(t *testing.T) keysFile {
	t.Helper()
	file := keysFile(filepath.Join(t.TempDir(), "credentials"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", string(file))
	return file
}

func (f keysFile) write(t *testing.T, profile, key string) {
	t.Helper()
	text := fmt.Sprintf("[%s]\naws_access_key_id = %s\naws_secret_access_key = the-secret\naws_session_token = token-of-%s\n", profile, key, key)
	if err := os.WriteFile(string(f), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keyOf is the access key that a request is signed with.
func keyOf(r *http.Request) string {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(rest, "/")
	return key
}

// CASES A64
func TestExpiredCredentialsAreReadAgainAndTheCallIsMadeOnceMore(t *testing.T) {
	for _, verb := range verbs() {
		for _, code := range []string{"ExpiredToken", "InvalidAccessKeyId"} {
			t.Run(verb+" "+code, func(t *testing.T) {
				file := newKeysFile(t)
				file.write(t, "default", "OLD")
				store := record(t, func(w http.ResponseWriter, r *http.Request) {
					if keyOf(r) == "OLD" {
						file.write(t, "default", "NEW")
						says(400, errorXML(code, "The provided token has expired."))(w, r)
						return
					}
					says(200, map[string]string{
						"list": page(endOfList), "delete": "<DeleteResult><Deleted><Key>k/1</Key></Deleted></DeleteResult>",
					}[verb], "ETag", `"e"`)(w, r)
				})
				if err := call(t.Context(), openAt(t, store.URL, fromChain), verb); err != nil {
					t.Fatal(err)
				}
				all := store.requests()
				if len(all) != 2 || keyOf(all[1].Request) != "NEW" || string(all[0].body) != string(all[1].body) {
					t.Errorf("%d requests, the last with %q", len(all), keyOf(all[len(all)-1].Request))
				}
			})
		}
	}
}

func TestCredentialsThatStayExpiredAreNotTriedAThirdTime(t *testing.T) {
	newKeysFile(t).write(t, "default", "OLD")
	for _, verb := range verbs() {
		store := record(t, says(400, errorXML("ExpiredToken", "The provided token has expired.")))
		wantError(t, call(t.Context(), openAt(t, store.URL, fromChain), verb), sdk.Unauthenticated, "ExpiredToken, request R7", "give new ones")
		if n := len(store.requests()); n != 2 {
			t.Errorf("%s: %d requests", verb, n)
		}
	}
}

func TestConfiguredCredentialsThatExpireAreNotTriedTwice(t *testing.T) {
	store := record(t, says(400, errorXML("ExpiredToken", "The provided token has expired.")))
	target := openAt(t, store.URL, func(c *Config) { c.SessionToken = "the-secret-token" })
	wantError(t, call(t.Context(), target, "put"), sdk.Unauthenticated)
	if n := len(store.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	if have := store.last(t).Header.Get("X-Amz-Security-Token"); have != "the-secret-token" {
		t.Errorf("token %q", have)
	}
}

// CASES A65
func TestARotatedFileIsPickedUpWithinAMinute(t *testing.T) {
	file := newKeysFile(t)
	store := record(t, stored())
	clock := time.Now().Add(-rereadAfter) // so that what is read is due to be read again at once
	target := openConfig(t, Config{Bucket: "bucket", Endpoint: store.URL, PathStyle: true}, func() time.Time { return clock })
	for _, key := range []string{"FIRST", "SECOND", "THIRD"} {
		file.write(t, "default", key)
		if err := call(t.Context(), target, "put"); err != nil {
			t.Fatal(err)
		}
		if have := keyOf(store.last(t).Request); have != key {
			t.Errorf("signed with %q, want %q", have, key)
		}
	}
	clock = time.Now() // from now on they last a minute
	for _, key := range []string{"FOURTH", "FIFTH"} {
		file.write(t, "default", key)
		if err := call(t.Context(), target, "put"); err != nil {
			t.Fatal(err)
		}
	}
	if have := keyOf(store.last(t).Request); have != "FOURTH" {
		t.Errorf("signed with %q: the file is read for every call", have)
	}
}

func TestAProfileAndTheEnvironmentGiveCredentialsAndRegion(t *testing.T) {
	file := newKeysFile(t)
	file.write(t, "offsite", "OFFSITE")
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[profile offsite]\nregion = eu-north-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", config)
	store := record(t, stored())
	if err := call(t.Context(), openAt(t, store.URL, fromChain, func(c *Config) { c.Profile = "offsite" }), "put"); err != nil {
		t.Fatal(err)
	}
	if auth := store.last(t).Header.Get("Authorization"); !strings.Contains(auth, "OFFSITE/") || !strings.Contains(auth, "/eu-north-1/s3/") {
		t.Errorf("signed as %q", auth)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "FROMENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the-secret")
	t.Setenv("AWS_REGION", "sa-east-1")
	if err := call(t.Context(), openAt(t, store.URL, fromChain), "put"); err != nil {
		t.Fatal(err)
	}
	if auth := store.last(t).Header.Get("Authorization"); !strings.Contains(auth, "FROMENV/") || !strings.Contains(auth, "/sa-east-1/s3/") {
		t.Errorf("signed as %q", auth)
	}
}

func TestWithoutCredentialsEveryCallSaysSoAndOpenDoesNot(t *testing.T) {
	store := record(t, stored())
	target := openAt(t, store.URL, fromChain)
	for _, verb := range verbs() {
		wantError(t, call(t.Context(), target, verb), sdk.Unauthenticated, "access_key and secret_key")
	}
	if n := len(store.requests()); n != 0 {
		t.Errorf("%d requests without credentials", n)
	}
}
