//go:build cloud

package main

import (
	"context"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/cairnsync/cairn/internal/teststore"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func configOfServer(server teststore.Server) Config {
	return Config{Container: server.Bucket, Endpoint: server.Endpoint, Account: server.Account, AccountKey: sdk.Secret(server.AccountKey)}
}

func openServer(t *testing.T, server teststore.Server, change ...func(*Config)) sdk.Target {
	cfg := configOfServer(server)
	for _, f := range change {
		f(&cfg)
	}
	return sdk.Guard(openTarget(t, cfg))
}

// CASES A34, A73
func TestTheAzureTargetPassesTheExamOnARealStore(t *testing.T) {
	server := teststore.Azure(t)
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		return &sdktest.Env{
			Target: openServer(t, server),
			Reopen: func(context.Context) (sdk.Target, error) { return openServer(t, server), nil },
		}
	})
}

func TestTheAzureTargetPassesTheExamOverTheWireOnARealStore(t *testing.T) {
	server := teststore.Azure(t)
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		client, spool := sdktest.OverRPC(t, openServer(t, server))
		return &sdktest.Env{
			Target: client, Spool: spool,
			Reopen: func(context.Context) (sdk.Target, error) { return openServer(t, server), nil },
		}
	})
}

// signature is a shared access signature for the server's container.
func signature(t *testing.T, server teststore.Server, rights sas.ContainerPermissions, end time.Time) sdk.Secret {
	t.Helper()
	loc, err := locate(configOfServer(server))
	if err != nil {
		t.Fatal(err)
	}
	key, err := container.NewSharedKeyCredential(server.Account, server.AccountKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(loc.container.String(), key, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := end.Add(-24 * time.Hour)
	text, err := client.GetSASURL(rights, end, &container.GetSASURLOptions{StartTime: &start})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Secret(u.RawQuery)
}

func allRights() sas.ContainerPermissions {
	return sas.ContainerPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true}
}

// verbs makes one call of each kind and gives their errors.
func verbs(t *testing.T, target sdk.Target) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["put"] = target.Put(t.Context(), sdk.PutRequest{Key: "k/1", Body: sdk.BytesBody([]byte("content")), IfAbsent: true})
	res, err := target.Get(t.Context(), sdk.GetRequest{Key: "k/1", Length: -1})
	if errs["get"] = err; err == nil {
		res.Body.Close()
	}
	errs["list"] = nil
	for _, err := range target.List(t.Context(), sdk.ListRequest{Prefix: "k/"}) {
		errs["list"] = err
	}
	errs["delete"] = target.Delete(t.Context(), []string{"k/1", "k/absent"})
	return errs
}

func TestASignatureOpensARealContainerUntilItEnds(t *testing.T) {
	server := teststore.Azure(t)
	with := func(token sdk.Secret) sdk.Target {
		return openServer(t, server, func(c *Config) { c.AccountKey, c.SASToken = "", token })
	}
	for verb, err := range verbs(t, with(signature(t, server, allRights(), time.Now().Add(time.Hour)))) {
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
	ended := signature(t, server, allRights(), time.Now().Add(-time.Hour))
	for verb, err := range verbs(t, with(ended)) {
		e := wantCode(t, err, sdk.PermissionDenied, verb, "the sas_token ends at") // Azure itself says AuthenticationFailed, Azurite does not
		if sig := (location{sas: ended}).sasField("sig"); strings.Contains(e.Error()+e.Hint, sig) {
			t.Errorf("%v tells the signature", e)
		}
	}
	for verb, err := range verbs(t, with(signature(t, server, sas.ContainerPermissions{List: true}, time.Now().Add(time.Hour)))) {
		if verb == "list" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantCode(t, err, sdk.PermissionDenied, verb, "racwdl")
	}
}

func TestAConnectionStringOpensARealContainer(t *testing.T) {
	server := teststore.Azure(t)
	target := openServer(t, server, func(c *Config) {
		text := "AccountName=" + server.Account + ";AccountKey=" + server.AccountKey + ";BlobEndpoint=" + server.Endpoint + "/" + server.Account + ";"
		*c = Config{Container: server.Bucket, ConnectionString: sdk.Secret(text)}
	})
	for verb, err := range verbs(t, target) {
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestARealStoresErrorsAreRead(t *testing.T) {
	server := teststore.Azure(t)
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   sdk.Code
		says   string
	}{
		{"a wrong key", func(c *Config) { c.AccountKey = testKey }, sdk.PermissionDenied, ""},
		{"no such container", func(c *Config) { c.Container = "nobodys-container" }, sdk.InvalidConfig, "container"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for verb, err := range verbs(t, openServer(t, server, c.change)) {
				wantCode(t, err, c.want, verb, c.says)
			}
		})
	}
	_, err := openServer(t, server).Get(t.Context(), sdk.GetRequest{Key: "absent", Length: -1})
	if e := wantCode(t, err, sdk.NotFound, "get absent"); !strings.Contains(e.Provider, "BlobNotFound, request ") {
		t.Errorf("the provider is %q", e.Provider)
	}
}

// CASES A73
func TestRangesAreExactOnARealStore(t *testing.T) {
	target := openServer(t, teststore.Azure(t))
	for key, content := range map[string]string{"ten": "0123456789", "empty": ""} {
		if _, err := target.Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte(content))}); err != nil {
			t.Fatal(err)
		}
	}
	const after = "begins after the end"
	for _, c := range []struct {
		key         string
		off, length int64
		want        string
	}{
		{"ten", 0, -1, "0123456789"},
		{"ten", 0, 10, "0123456789"},
		{"ten", 0, 1, "0"},
		{"ten", 9, 1, "9"},
		{"ten", 9, -1, "9"},
		{"ten", 8, 100, "89"},
		{"ten", 10, 1, after},
		{"ten", 1000, -1, after},
		{"empty", 0, -1, ""},
		{"empty", 0, 1, after},
		{"empty", 1, -1, after},
	} {
		res, err := target.Get(t.Context(), sdk.GetRequest{Key: c.key, Offset: c.off, Length: c.length})
		if c.want == after {
			wantCode(t, err, sdk.Corrupt)
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		have, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(have) != c.want || res.Size != int64(len(c.want)) {
			t.Errorf("%+v: %q of %d bytes, %v", c, have, res.Size, err)
		}
	}
}
