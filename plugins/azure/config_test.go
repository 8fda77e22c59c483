package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

const (
	testKey = "c2VjcmV0LWtleQ=="
	testSAS = "sv=2024-11-04&ss=b&srt=co&sp=racwdl&se=2026-12-31T00:00:00Z&sig=c2VjcmV0%2BLXNpZ25hdHVyZQ%3D%3D"
)

func TestAConfigurationSaysWhereTheContainerIsAndWhoOpensIt(t *testing.T) {
	for _, c := range []struct {
		name         string
		cfg          Config
		url          string
		key, sas     string
		accountKnown bool
	}{
		{"an account and its key", Config{Account: "acc", AccountKey: testKey}, "https://acc.blob.core.windows.net/box", testKey, "", true},
		{"an account alone: tokens", Config{Account: "acc"}, "https://acc.blob.core.windows.net/box", "", "", true},
		{"a signature", Config{Account: "acc", SASToken: testSAS}, "https://acc.blob.core.windows.net/box", "", testSAS, true},
		{"a signature as the portal shows it", Config{Account: "acc", SASToken: "?" + testSAS}, "https://acc.blob.core.windows.net/box", "", testSAS, true},
		{"another cloud", Config{Endpoint: "https://acc.blob.core.chinacloudapi.cn/"}, "https://acc.blob.core.chinacloudapi.cn/box", "", "", false},
		{"an emulator with the account in its path", Config{Endpoint: "http://127.0.0.1:10000/acc", Account: "acc", AccountKey: testKey}, "http://127.0.0.1:10000/acc/box", testKey, "", true},
		{"an emulator's address alone", Config{Endpoint: "http://127.0.0.1:10000", Account: "acc", AccountKey: testKey}, "http://127.0.0.1:10000/acc/box", testKey, "", true},
		{"localhost", Config{Endpoint: "http://localhost:10000/", Account: "acc", SASToken: testSAS}, "http://localhost:10000/acc/box", "", testSAS, true},
		{"IPv6", Config{Endpoint: "http://[::1]:10000", Account: "acc", AccountKey: testKey}, "http://[::1]:10000/acc/box", testKey, "", true},
		{"a name of our own", Config{Endpoint: "https://blobs.example.com", Account: "acc", AccountKey: testKey}, "https://blobs.example.com/box", testKey, "", true},
		{
			"a connection string with a key",
			Config{ConnectionString: "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=" + testKey + ";EndpointSuffix=core.windows.net"},
			"https://acc.blob.core.windows.net/box", testKey, "", true,
		},
		{
			"a connection string with a signature",
			Config{ConnectionString: "BlobEndpoint=https://acc.blob.core.windows.net/;QueueEndpoint=https://q/;SharedAccessSignature=" + testSAS + ";"},
			"https://acc.blob.core.windows.net/box", "", testSAS, false,
		},
		{
			"a connection string of an emulator",
			Config{ConnectionString: "AccountName=acc;AccountKey=" + testKey + ";BlobEndpoint=http://127.0.0.1:10000/acc"},
			"http://127.0.0.1:10000/acc/box", testKey, "", true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Container = "box"
			loc, err := locate(c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if got := loc.container.String(); got != c.url {
				t.Errorf("the container is at %s, want %s", got, c.url)
			}
			if loc.key.Reveal() != c.key || loc.sas.Reveal() != c.sas || (loc.account == "acc") != c.accountKnown {
				t.Errorf("opened by %q, %q of account %q", loc.key.Reveal(), loc.sas.Reveal(), loc.account)
			}
		})
	}
}

func TestEachFaultOfAConfigurationNamesItsAttributeAndNoSecret(t *testing.T) {
	good := Config{Container: "box", Account: "acc", AccountKey: testKey}
	for _, c := range []struct {
		name   string
		change func(*Config)
		at     []string // attributes
	}{
		{"a name that no container has", func(c *Config) { c.Container = "Box_1" }, []string{"container"}},
		{"a short name", func(c *Config) { c.Container = "bo" }, []string{"container"}},
		{"two hyphens", func(c *Config) { c.Container = "box--1" }, []string{"container"}},
		{"no account", func(c *Config) { c.Account = "" }, []string{"account", "account"}},
		{"an account that is none", func(c *Config) { c.Account = "My.Account" }, []string{"account"}},
		{"a key that is not base64", func(c *Config) { c.AccountKey = "secret!" }, []string{"account_key"}},
		{"a key and a signature", func(c *Config) { c.SASToken = testSAS }, []string{"sas_token"}},
		{"a signature without sig", func(c *Config) { c.AccountKey, c.SASToken = "", "sv=secret" }, []string{"sas_token"}},
		{"a signature that is no query", func(c *Config) { c.AccountKey, c.SASToken = "", "sig=secret%zz" }, []string{"sas_token"}},
		{"an endpoint that is no URL", func(c *Config) { c.Endpoint = "acc.blob.core.windows.net" }, []string{"endpoint"}},
		{"an endpoint of another kind", func(c *Config) { c.Endpoint = "ftp://acc" }, []string{"endpoint"}},
		{"an endpoint with a signature", func(c *Config) { c.Endpoint = "https://acc.example.com/?sig=secret" }, []string{"endpoint"}},
		{"an endpoint with a password", func(c *Config) { c.Endpoint = "https://u:secret@acc.example.com" }, []string{"endpoint"}},
		{"tokens over plain http", func(c *Config) { c.Endpoint, c.AccountKey = "http://acc.example.com", "" }, []string{"endpoint"}},
		{"an emulator without an account", func(c *Config) {
			c.Account, c.AccountKey, c.SASToken, c.Endpoint = "", "", testSAS, "http://127.0.0.1:1"
		}, []string{"account"}},
		{"a connection string beside all it says", func(c *Config) {
			c.Endpoint, c.SASToken, c.ConnectionString = "https://acc", testSAS, "AccountName=acc;AccountKey="+testKey
		}, []string{"account", "endpoint", "account_key", "sas_token"}},
		{"a connection string cut off", func(c *Config) { *c = Config{Container: "box", ConnectionString: "AccountName=acc;secret"} }, []string{"connection_string"}},
		{"a connection string without an account", func(c *Config) { *c = Config{Container: "box", ConnectionString: "AccountKey=" + testKey} }, []string{"connection_string"}},
		{"a connection string that opens nothing", func(c *Config) { *c = Config{Container: "box", ConnectionString: "AccountName=acc"} }, []string{"connection_string"}},
		{"a connection string with both", func(c *Config) {
			*c = Config{Container: "box", ConnectionString: "AccountName=acc;AccountKey=" + testKey + ";SharedAccessSignature=" + testSAS}
		}, []string{"connection_string"}},
		{"a connection string with a bad key", func(c *Config) {
			*c = Config{Container: "x", ConnectionString: "AccountName=acc;AccountKey=secret!"}
		}, []string{"container", "connection_string"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			err := plugin().Validate(cfg)
			var at []string
			for _, one := range leaves(err) {
				var e *sdk.Error
				if !errors.As(one, &e) || e.Code != sdk.InvalidConfig {
					t.Fatalf("%v", one)
				}
				at = append(at, e.Attribute)
				for _, secret := range []string{testKey, "sig=", "secret"} {
					if strings.Contains(e.Error()+e.Hint, secret) && !strings.Contains(e.Error(), "holds sig=") && e.Hint != `give the part after the "?", which holds sig=` {
						t.Errorf("%q tells a secret", e.Error()+" "+e.Hint)
					}
				}
			}
			if strings.Join(at, " ") != strings.Join(c.at, " ") {
				t.Errorf("faults at %q, want %q: %v", at, c.at, err)
			}
		})
	}
	if err := plugin().Validate(good); err != nil {
		t.Error(err)
	}
}

func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, leaves(one)...)
	}
	return all
}

func TestTheSchemaIsOneThatTheHostTakes(t *testing.T) {
	schema, err := sdk.SchemaOf[Config]()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"account_key", "sas_token", "connection_string"} {
		if attr, ok := schema.Attribute(name); !ok || attr.Type != sdk.TypeSecret {
			t.Errorf("%s is a %v, want a secret", name, attr.Type)
		}
	}
}
