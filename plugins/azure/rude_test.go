package main

import (
	"testing"

	"github.com/cairnsync/cairn/internal/rudestore"
	"github.com/cairnsync/cairn/sdk"
)

// TestTheTargetAmongRudeAzureStores runs the exam on a good store and every scenario of package rudestore.
// CASES A12, A13, A14, A71, A72
func TestTheTargetAmongRudeAzureStores(t *testing.T) {
	rudestore.Run(t, rudestore.Azure, func(t *testing.T, server rudestore.Server) sdk.Target {
		target, err := open(t.Context(), Config{
			Container: server.Bucket, Account: server.Account, Endpoint: server.Endpoint + "/" + server.Account,
			AccountKey: sdk.Secret(server.AccountKey),
		})
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
