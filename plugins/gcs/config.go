package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cairnsync/cairn/sdk"
)

// Config is the config block of a gcs target.
//
// The endpoint decides whether we say who we are: over https always, over plain http never. Plain http is what emulators speak, and a token
// sent over it could be read by anyone. STORAGE_EMULATOR_HOST, which Google's clients obey, has no say here.
type Config struct {
	Bucket          string `cairn:"bucket,required" doc:"the bucket that holds the objects; it is never created"`
	Endpoint        string `cairn:"endpoint" default:"https://storage.googleapis.com" doc:"URL of the service; with http, for an emulator, no credentials are used"`
	CredentialsFile string `cairn:"credentials_file" doc:"absolute path of a key or configuration file in JSON, read again when it changes. Without it the default chain is asked: GOOGLE_APPLICATION_CREDENTIALS in the env of the plugin block, then the metadata service"`
	StorageClass    string `cairn:"storage_class" enum:"STANDARD,NEARLINE,COLDLINE,ARCHIVE" doc:"class of the packs; metadata is then kept STANDARD. Without it the bucket's default class is used for both"`
}

// defaultEndpoint is Config.Endpoint's, for those who make a Config themselves.
const defaultEndpoint = "https://storage.googleapis.com"

func validate(cfg Config) error {
	endpoint, err := cfg.endpoint()
	err = errors.Join(bucketFault(cfg.Bucket), err)
	switch {
	case cfg.CredentialsFile == "" || endpoint == nil:
	case endpoint.Scheme == "http":
		err = errors.Join(err, fault("credentials_file", "the endpoint is plain http, over which no credentials are sent", "leave it out, or give an https endpoint"))
	case !filepath.IsAbs(cfg.CredentialsFile):
		err = errors.Join(err, fault("credentials_file", fmt.Sprintf("%q is relative", cfg.CredentialsFile), `give an absolute path; abspath("key.json") is one beside the configuration file`))
	}
	return err
}

func fault(attribute, what, hint string) error {
	return &sdk.Error{Code: sdk.InvalidConfig, Op: "validate", Attribute: attribute, Err: errors.New(what), Hint: hint}
}

// endpoint is where the service listens: a scheme and a host, because the paths of Google's client begin at the root.
func (cfg Config) endpoint() (*url.URL, error) {
	text := cfg.Endpoint
	if text == "" {
		text = defaultEndpoint
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fault("endpoint", "it is not a URL of http or https with a host", "such as "+defaultEndpoint)
	case strings.Trim(u.Path, "/") != "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fault("endpoint", "it holds more than scheme and host", "such as "+defaultEndpoint)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

func bucketFault(name string) error {
	if strings.Contains(name, "://") {
		return fault("bucket", "it is a URL", "give the name alone, without gs://")
	}
	if len(name) >= 3 && len(name) <= 222 && regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])$`).MatchString(name) {
		return nil
	}
	return fault("bucket", fmt.Sprintf("%q is not the name of a bucket", name), "give 3 to 63 small letters, digits, dashes, underscores and dots")
}
