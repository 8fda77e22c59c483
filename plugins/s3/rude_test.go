package main

import (
	"testing"

	"github.com/cairnsync/cairn/internal/rudestore"
	"github.com/cairnsync/cairn/sdk"
)

func TestTheS3TargetTakesARudeStoreForWhatItIs(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the-secret")
	rudestore.Run(t, rudestore.S3, func(t *testing.T, server rudestore.Server) sdk.Target {
		return openAt(t, server.Endpoint, func(c *Config) {
			c.Bucket, c.Region, c.AccessKey, c.SecretKey = server.Bucket, server.Region, server.AccessKey, sdk.Secret(server.SecretKey)
		})
	})
}
