package main

import (
	"errors"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestTheConfigurationIsCheckedWithoutTheNetwork(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		at   string // attribute of the fault, "" = none
	}{
		{"a bucket alone", Config{Bucket: "my-backups"}, ""},
		{"a bucket named like a host", Config{Bucket: "backups.example.com"}, ""},
		{"an emulator", Config{Bucket: "my-backups", Endpoint: "http://127.0.0.1:4443"}, ""},
		{"an endpoint of our own, with a slash", Config{Bucket: "my-backups", Endpoint: "https://storage-psc.p.googleapis.com/"}, ""},
		{"a key file", Config{Bucket: "my-backups", CredentialsFile: "/etc/cairn/key.json"}, ""},
		{"no name", Config{}, "bucket"},
		{"a URL for a name", Config{Bucket: "gs://my-backups"}, "bucket"},
		{"a prefix in the name", Config{Bucket: "my-backups/cairn"}, "bucket"},
		{"capitals", Config{Bucket: "MyBackups"}, "bucket"},
		{"a host without a scheme", Config{Bucket: "my-backups", Endpoint: "127.0.0.1:4443"}, "endpoint"},
		{"another scheme", Config{Bucket: "my-backups", Endpoint: "grpc://storage"}, "endpoint"},
		{"an endpoint with a path, which Google's client drops", Config{Bucket: "my-backups", Endpoint: "https://proxy/gcs"}, "endpoint"},
		{"an endpoint with a password", Config{Bucket: "my-backups", Endpoint: "https://u:p@storage"}, "endpoint"},
		{"a relative key file", Config{Bucket: "my-backups", CredentialsFile: "key.json"}, "credentials_file"},
		{"a key file for plain http", Config{Bucket: "my-backups", Endpoint: "http://127.0.0.1:1", CredentialsFile: "/key.json"}, "credentials_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validate(c.cfg)
			if c.at == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := wantCode(t, err, sdk.InvalidConfig); e.Attribute != c.at || e.Hint == "" {
				t.Errorf("the fault is at %q with the hint %q, want %q: %v", e.Attribute, e.Hint, c.at, err)
			}
		})
	}
}

func TestEveryFaultIsToldAtOnce(t *testing.T) {
	err := validate(Config{Bucket: "!", Endpoint: "!"})
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 2 {
		t.Errorf("%v", err)
	}
}

func TestTheSchemaSaysTheDefaultEndpoint(t *testing.T) {
	var cfg Config
	if err := sdk.Decode([]byte(`{"bucket":"my-backups"}`), &cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.Endpoint != defaultEndpoint {
		t.Errorf("the endpoint is %q", cfg.Endpoint)
	}
	err := sdk.Decode([]byte(`{"bucket":"my-backups","storage_class":"GLACIER"}`), &cfg)
	if !errors.Is(err, sdk.InvalidConfig) {
		t.Errorf("a class of another vendor: %v", err)
	}
}
