package main

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

func TestAConfigurationIsCheckedWithoutANetwork(t *testing.T) {
	fine := Config{Bucket: "backups", Region: "eu-central-1"}
	elsewhere := Config{Bucket: "backups", Endpoint: "https://minio.example.org:9000"}
	with := func(cfg Config, change func(*Config)) Config { change(&cfg); return cfg }
	for _, c := range []struct {
		name      string
		cfg       Config
		attribute string // "" = it is fine
		says      string
	}{
		{"a bucket and a region", fine, "", ""},
		{"a store of another", elsewhere, "", ""},
		{"dots and digits in a bucket", with(fine, func(c *Config) { c.Bucket = "my.backups-2" }), "", ""},
		{"capital letters in a bucket", with(fine, func(c *Config) { c.Bucket = "Backups" }), "bucket", "small letters"},
		{"capital letters elsewhere", with(elsewhere, func(c *Config) { c.Bucket = "My_Backups" }), "", ""},
		{"a slash in a bucket elsewhere", with(elsewhere, func(c *Config) { c.Bucket = "a/b" }), "bucket", "a/b"},
		{"a short bucket", with(fine, func(c *Config) { c.Bucket = "ab" }), "bucket", "3 to 63"},
		{"no bucket", with(fine, func(c *Config) { c.Bucket = "" }), "bucket", "3 to 63"},
		{"a long bucket", with(fine, func(c *Config) { c.Bucket = strings.Repeat("b", 64) }), "bucket", "3 to 63"},
		{"a bucket that ends in a hyphen", with(fine, func(c *Config) { c.Bucket = "backups-" }), "bucket", "both ends"},
		{"a bucket like an address", with(fine, func(c *Config) { c.Bucket = "192.168.0.1" }), "bucket", "IP address"},
		{"a bucket with two dots", with(fine, func(c *Config) { c.Bucket = "a..b" }), "bucket", "two dots"},
		{"a directory bucket", with(fine, func(c *Config) { c.Bucket = "b--use1-az4--x-s3" }), "bucket", "in order"},
		{"a region with a space", with(fine, func(c *Config) { c.Region = "eu central" }), "region", "eu-central-1"},
		{"an endpoint without a scheme", with(elsewhere, func(c *Config) { c.Endpoint = "minio:9000" }), "endpoint", "https://"},
		{"an endpoint that is no URL", with(elsewhere, func(c *Config) { c.Endpoint = "http://me:the-secret@%%" }), "endpoint", "no URL"},
		{"an endpoint with a password", with(elsewhere, func(c *Config) { c.Endpoint = "https://me:the-secret@minio" }), "endpoint", "access_key"},
		{"an endpoint with the bucket", with(elsewhere, func(c *Config) { c.Endpoint = "https://minio/backups" }), "endpoint", "goes into bucket"},
		{"a secret without its key", with(fine, func(c *Config) { c.SecretKey = "the-secret" }), "access_key", "need"},
		{"a token without its key", with(fine, func(c *Config) { c.SessionToken = "the-secret" }), "access_key", "need"},
		{"a key without its secret", with(fine, func(c *Config) { c.AccessKey = "AKIA" }), "secret_key", "needs it"},
		{"a key and a profile", with(fine, func(c *Config) { c.AccessKey, c.SecretKey, c.Profile = "AKIA", "the-secret", "p" }), "profile", "not both"},
		{"a KMS key without KMS", with(fine, func(c *Config) { c.SSEKMSKeyID = "k" }), "sse_kms_key_id", `"aws:kms"`},
		{"a KMS key with AES256", with(fine, func(c *Config) { c.SSE, c.SSEKMSKeyID = "AES256", "k" }), "sse_kms_key_id", `"aws:kms"`},
		{"a KMS key", with(fine, func(c *Config) { c.SSE, c.SSEKMSKeyID = "aws:kms", "k" }), "", ""},
		{"a class that reads at once", with(fine, func(c *Config) { c.StorageClass = "GLACIER_IR" }), "", ""},
		{"a class that does not", with(fine, func(c *Config) { c.StorageClass = "DEEP_ARCHIVE" }), "storage_class", "before they are restored"},
		{"the same elsewhere", with(elsewhere, func(c *Config) { c.StorageClass = "GLACIER" }), "storage_class", "before they are restored"},
		{"a class that nobody knows", with(fine, func(c *Config) { c.StorageClass = "CHEAP" }), "storage_class", "STANDARD_IA"},
		{"a class of another store", with(elsewhere, func(c *Config) { c.StorageClass = "CHEAP" }), "", ""},
		{"a class in small letters", with(elsewhere, func(c *Config) { c.StorageClass = "cheap" }), "storage_class", "capital letters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validate(c.cfg)
			if c.attribute == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := wantError(t, err, sdk.InvalidConfig, c.says); e.Attribute != c.attribute {
				t.Errorf("blames %q, want %q", e.Attribute, c.attribute)
			}
		})
	}
}

func TestEveryFaultIsToldAtOnce(t *testing.T) {
	err := validate(Config{Bucket: "B", Region: "?", AccessKey: "AKIA", Profile: "p", SSEKMSKeyID: "k", StorageClass: "CHEAP"})
	for _, attribute := range []string{"bucket", "region", "secret_key", "profile", "sse_kms_key_id", "storage_class"} {
		if !strings.Contains(err.Error(), attribute+": invalid configuration") {
			t.Errorf("%q is not blamed in %v", attribute, err)
		}
	}
}

func TestASchemaCanBeMadeOfTheConfiguration(t *testing.T) {
	schema, err := sdk.SchemaOf[Config]()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret_key", "session_token"} {
		if a, ok := schema.Attribute(name); !ok || a.Type != sdk.TypeSecret {
			t.Errorf("%s is %+v", name, a)
		}
	}
}

func TestAConfigurationNeverPrintsItsSecrets(t *testing.T) {
	cfg := Config{Bucket: "b", AccessKey: "AKIA", SecretKey: "the-secret", SessionToken: "the-secret"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, cfg); strings.Contains(text, "the-secret") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func TestOpenTouchesNoNetworkAndSaysWhatItCannotKnow(t *testing.T) {
	store := record(t, stored())
	openAt(t, store.URL)
	openAt(t, store.URL, fromChain)
	if n := len(store.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	down := httptest.NewServer(nil)
	down.Close()
	openAt(t, down.URL)

	_, err := open(t.Context(), Config{Bucket: "backups"}, time.Now)
	if e := wantError(t, err, sdk.InvalidConfig, "where the bucket is"); e.Attribute != "region" {
		t.Errorf("blames %q", e.Attribute)
	}
	_, err = open(t.Context(), Config{Bucket: "backups", Region: "eu-central-1", Profile: "nobody"}, time.Now)
	wantError(t, err, sdk.InvalidConfig, "nobody", "profile")
	t.Setenv("AWS_CA_BUNDLE", "/nonexistent/ca.pem")
	_, err = open(t.Context(), Config{Bucket: "backups", Region: "eu-central-1"}, time.Now)
	wantError(t, err, sdk.InvalidConfig, "/nonexistent/ca.pem", "AWS_")
	if errors.Is(err, sdk.Unavailable) {
		t.Error("a broken setting is no outage")
	}
}
