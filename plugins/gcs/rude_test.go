package main

import (
	"testing"
	"time"

	"github.com/cairnsync/cairn/internal/rudestore"
	"github.com/cairnsync/cairn/sdk"
)

// TestTheTargetAmongRudeGCSStores runs the exam on a good store and every scenario of package rudestore.
// CASES A12, A13, A14, A71, A72
func TestTheTargetAmongRudeGCSStores(t *testing.T) {
	rudestore.Run(t, rudestore.GCS, func(t *testing.T, server rudestore.Server) sdk.Target {
		target, err := open(t.Context(), Config{Bucket: server.Bucket, Endpoint: server.Endpoint}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := target.Close(); err != nil {
				t.Error(err)
			}
		})
		return target
	})
}
