package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/cairnsync/cairn/sdk"
)

// Config is the config block of an azure target. Exactly one of account_key, sas_token and connection_string says who we are; without
// any it is the default chain of azidentity, which reads the environment that the plugin block gives.
type Config struct {
	Container        string     `cairn:"container,required" doc:"the container that holds the objects; it is never created"`
	Account          string     `cairn:"account" doc:"name of the storage account; may be left out when the endpoint or the connection string says it"`
	Endpoint         string     `cairn:"endpoint" doc:"URL of the blob service, when it is not https://ACCOUNT.blob.core.windows.net; a first path element is the account, as emulators have it"`
	AccountKey       sdk.Secret `cairn:"account_key" doc:"one of the account's two keys, in base64"`
	SASToken         sdk.Secret `cairn:"sas_token" doc:"a shared access signature that may read, create, write, list and delete in the container"`
	ConnectionString sdk.Secret `cairn:"connection_string" doc:"the connection string of the account, instead of account, endpoint, account_key and sas_token"`
	AccessTier       string     `cairn:"access_tier" enum:"Hot,Cool,Cold" doc:"tier of the packs; metadata is then kept Hot. Without it the account's default tier is used for both"`
}

func validate(cfg Config) error {
	_, err := locate(cfg)
	return err
}

// location is what a configuration comes to: where the container is, and the key or the signature that opens it (neither = tokens).
type location struct {
	container *url.URL // without the signature
	account   string
	key       sdk.Secret
	sas       sdk.Secret // without a leading "?"
}

// locate finds every fault of a configuration, without asking the network.
func locate(cfg Config) (location, error) {
	if cfg.ConnectionString != "" {
		return locateByString(cfg)
	}
	service, err := serviceURL(cfg)
	err = errors.Join(containerFault(cfg.Container), err, keyFault(cfg), sasFault(cfg))
	if err != nil {
		return location{}, err
	}
	return location{
		container: service.JoinPath(cfg.Container),
		account:   cfg.Account,
		key:       cfg.AccountKey,
		sas:       sdk.Secret(strings.TrimPrefix(cfg.SASToken.Reveal(), "?")),
	}, nil
}

// locateByString reads the connection string as the attributes it stands for. Their faults are the string's.
func locateByString(cfg Config) (location, error) {
	parsed, err := parseConnectionString(cfg.ConnectionString.Reveal())
	if err := errors.Join(contradictions(cfg), err); err != nil {
		return location{}, err
	}
	parsed.Container = cfg.Container
	loc, err := locate(parsed)
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			var e *sdk.Error
			if errors.As(one, &e) && e.Attribute != "container" {
				e.Attribute = "connection_string"
			}
		}
	}
	return loc, err
}

func fault(attribute, what, hint string) error {
	return &sdk.Error{Code: sdk.InvalidConfig, Op: "validate", Attribute: attribute, Err: errors.New(what), Hint: hint}
}

// contradictions are the attributes that a connection string stands for.
func contradictions(cfg Config) error {
	var faults []error
	for _, given := range [][2]string{
		{"account", cfg.Account},
		{"endpoint", cfg.Endpoint},
		{"account_key", cfg.AccountKey.Reveal()},
		{"sas_token", cfg.SASToken.Reveal()},
	} {
		if given[1] != "" {
			faults = append(faults, fault(given[0], "the connection_string says it already", "give one of them"))
		}
	}
	return errors.Join(faults...)
}

// serviceURL is the address of the account's blob service.
func serviceURL(cfg Config) (*url.URL, error) {
	if cfg.Endpoint == "" {
		if !regexp.MustCompile(`^[a-z0-9]{3,24}$`).MatchString(cfg.Account) {
			return nil, fault("account", fmt.Sprintf("%q is not the name of a storage account", cfg.Account), "give 3 to 24 small letters and digits, or an endpoint")
		}
		return &url.URL{Scheme: "https", Host: cfg.Account + ".blob.core.windows.net"}, nil
	}
	u, err := url.Parse(cfg.Endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fault("endpoint", "it is not a URL of http or https with a host", `such as "https://myaccount.blob.core.windows.net"`)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fault("endpoint", "it holds more than scheme, host and path", "a signature belongs into sas_token")
	case u.Scheme == "http" && cfg.AccountKey == "" && cfg.SASToken == "":
		return nil, fault("endpoint", "a token is never sent over plain http", "give https, or the account_key or sas_token of an emulator")
	}
	if needsAccountInPath(u) {
		if cfg.Account == "" {
			return nil, fault("account", "an endpoint without the account's name needs it", "")
		}
		u = u.JoinPath(cfg.Account)
	}
	return u, nil
}

// needsAccountInPath is Azure's rule: where the host is not a name that can begin with the account's, the account is the first element of
// the path.
func needsAccountInPath(u *url.URL) bool {
	host := u.Hostname()
	return strings.Trim(u.Path, "/") == "" && (net.ParseIP(host) != nil || host == "localhost")
}

func keyFault(cfg Config) error {
	if cfg.AccountKey == "" {
		return nil
	}
	if _, err := base64.StdEncoding.DecodeString(cfg.AccountKey.Reveal()); err != nil {
		return fault("account_key", "it is not base64", "copy it whole, with the == at its end")
	}
	if cfg.Account == "" {
		return fault("account", "a key signs in the name of an account", "give the account's name")
	}
	return nil
}

func sasFault(cfg Config) error {
	switch {
	case cfg.SASToken == "":
		return nil
	case cfg.AccountKey != "":
		return fault("sas_token", "there is an account_key too", "give one of them")
	}
	query, err := url.ParseQuery(strings.TrimPrefix(cfg.SASToken.Reveal(), "?"))
	if err != nil || query.Get("sig") == "" {
		return fault("sas_token", "it is not a shared access signature", `give the part after the "?", which holds sig=`)
	}
	return nil
}

func containerFault(name string) error {
	if len(name) >= 3 && len(name) <= 63 && regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name) {
		return nil
	}
	return fault("container", fmt.Sprintf("%q is not the name of a container", name), "give 3 to 63 small letters, digits and single hyphens")
}

// parseConnectionString reads the parts of a connection string that concern blobs. Its text is a secret, so no error quotes it.
func parseConnectionString(text string) (Config, error) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return Config{}, fault("connection_string", "a part of it has no =", "copy it whole: Name=Value;Name=Value")
		}
		parts[name] = value
	}
	cfg := Config{
		Account:    parts["AccountName"],
		Endpoint:   strings.TrimSuffix(parts["BlobEndpoint"], "/"),
		AccountKey: sdk.Secret(parts["AccountKey"]),
		SASToken:   sdk.Secret(parts["SharedAccessSignature"]),
	}
	switch {
	case cfg.Account == "" && cfg.Endpoint == "":
		return Config{}, fault("connection_string", "it has neither AccountName nor BlobEndpoint", "")
	case (cfg.AccountKey == "") == (cfg.SASToken == ""):
		return Config{}, fault("connection_string", "it needs one of AccountKey and SharedAccessSignature", "")
	}
	if suffix := parts["EndpointSuffix"]; suffix != "" && cfg.Endpoint == "" {
		scheme := parts["DefaultEndpointsProtocol"]
		if scheme == "" {
			scheme = "https"
		}
		cfg.Endpoint = scheme + "://" + cfg.Account + ".blob." + suffix
	}
	return cfg, nil
}
