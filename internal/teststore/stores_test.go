//go:build cloud

package teststore_test

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/internal/teststore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEachStoreAnswersUntilItsTestEnds starts each, sees it answer, and sees nothing listen there afterwards.
func TestEachStoreAnswersUntilItsTestEnds(t *testing.T) {
	for name, start := range map[string]func(testing.TB) teststore.Server{
		"S3": teststore.S3, "GCS": teststore.GCS, "Azure": teststore.Azure, "Liar": teststore.Liar,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
			var server teststore.Server
			t.Run("while its test runs", func(t *testing.T) {
				server = start(t)
				res, err := client.Get(server.Endpoint)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
			})
			if res, err := client.Get(server.Endpoint); err == nil {
				res.Body.Close()
				t.Errorf("%s still answers (%s) after its test", server.Endpoint, res.Status)
			}
		})
	}
}

// TestTwoStoresAtOnceShareNothing starts two of a kind: each has its bucket, so both were created in an empty store.
func TestTwoStoresAtOnceShareNothing(t *testing.T) {
	one, two := teststore.GCS(t), teststore.GCS(t)
	if one.Endpoint == two.Endpoint {
		t.Fatalf("both at %s", one.Endpoint)
	}
}

// TestANetworkFailsAndHealsAsItIsTold goes over one to a store.
func TestANetworkFailsAndHealsAsItIsTold(t *testing.T) {
	network := teststore.NewNetwork(t, teststore.GCS(t).Endpoint)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	reached := func() bool {
		res, err := client.Get(network.Endpoint)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	}
	if !reached() {
		t.Error("the server is not reached")
	}
	network.Down(t)
	if reached() {
		t.Error("it is reached over a network that is down")
	}
	network.Heal(t)
	network.Plague(t, teststore.Toxic{Type: "reset_peer", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}})
	if reached() {
		t.Error("it is reached though each connection is reset")
	}
	network.Heal(t)
	if !reached() {
		t.Error("the server is not reached over the network that was healed")
	}
}
