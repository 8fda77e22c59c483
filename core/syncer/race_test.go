//go:build race

package syncer

// defaultSeeds under the race detector, which makes a story ten times as long.
const defaultSeeds = 1_000
