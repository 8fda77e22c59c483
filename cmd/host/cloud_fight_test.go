//go:build cloud

package main

import (
	"testing"

	"github.com/cairnsync/cairn/internal/teststore"
)

// CASES A43: the fight of the torture, over a bucket.
func TestTwoHostsFightOverOneBucket(t *testing.T) {
	server := teststore.S3(t)
	newFight(t, buildPlugins(t, "s3"), server.Dir, settings{plugin: "s3", config: s3Config(server), cloud: true, retention: fightRetention()}).run()
}
