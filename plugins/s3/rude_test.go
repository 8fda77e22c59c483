package main

import (
	"testing"

	"github.com/cairnsync/cairn/internal/rudestore"
	"github.com/cairnsync/cairn/sdk"
)

// CASES A12, A13, A14, A35, A60, A71, A72
func TestTheS3TargetTakesARudeStoreForWhatItIs(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the-secret")
	rudestore.Run(t, rudestore.S3, func(t *testing.T, server rudestore.Server) sdk.Target {
		return openAt(t, server.Endpoint, func(c *Config) {
			c.Bucket, c.Region, c.AccessKey, c.SecretKey = server.Bucket, server.Region, server.AccessKey, sdk.Secret(server.SecretKey)
		})
	})
}
