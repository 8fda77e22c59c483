//go:build cloud

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/internal/teststore"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func openServer(t *testing.T, server teststore.Server) sdk.Target {
	return openAt(t, server.Endpoint, func(c *Config) {
		c.Bucket, c.Region, c.AccessKey, c.SecretKey = server.Bucket, server.Region, server.AccessKey, sdk.Secret(server.SecretKey)
	})
}

// CASES A34, A73
func TestTheS3TargetPassesTheExamOnARealStore(t *testing.T) {
	server := teststore.S3(t)
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		return &sdktest.Env{
			Target: sdk.Guard(openServer(t, server)),
			Reopen: func(context.Context) (sdk.Target, error) { return sdk.Guard(openServer(t, server)), nil },
			Prefix: "exam",
		}
	})
}

func TestOnAStoreThatLiesTheExamsConditionalLevelFails(t *testing.T) {
	target := openServer(t, teststore.Liar(t))
	failed := map[string]error{}
	for _, c := range sdktest.Cases() {
		if c.Level != sdktest.Conditional {
			continue
		}
		if result := sdktest.RunCase(t.Context(), c, &sdktest.Env{Target: sdk.Guard(target)}); result.Err != nil {
			failed[c.Name] = result.Err
		}
	}
	for _, name := range []string{
		"Put with IfAbsent of an existing key fails with Exists and changes nothing",
		"of any number of concurrent Puts with IfAbsent exactly one succeeds, and its object is what is stored",
	} {
		if failed[name] == nil {
			t.Errorf("the liar passes %q; failed are %v", name, failed)
		}
	}
}

func TestARealStoresErrorsAreRead(t *testing.T) {
	server := teststore.S3(t)
	for name, c := range map[string]struct {
		change func(*Config)
		want   sdk.Code
		says   string
	}{
		"an absent key":  {func(*Config) {}, sdk.NotFound, "NoSuchKey"},
		"a wrong secret": {func(c *Config) { c.SecretKey = "the-secret" }, sdk.Unauthenticated, "secret key"},
		"a wrong key":    {func(c *Config) { c.AccessKey = "AKIANOBODY" }, sdk.Unauthenticated, "does not know the access key"},
		"no such bucket": {func(c *Config) { c.Bucket = "nobodys-bucket" }, sdk.InvalidConfig, "nobodys-bucket"},
		"a wrong region": {func(c *Config) { c.Region = "ap-south-1" }, sdk.InvalidConfig, "region"},
	} {
		t.Run(name, func(t *testing.T) {
			target := openAt(t, server.Endpoint, func(c *Config) {
				c.Bucket, c.Region, c.AccessKey, c.SecretKey = server.Bucket, server.Region, server.AccessKey, sdk.Secret(server.SecretKey)
			}, c.change)
			wantError(t, call(t.Context(), target, "get"), c.want, strings.Fields(c.says)[0])
		})
	}
}
