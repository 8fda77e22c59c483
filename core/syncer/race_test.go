//go:build race

package syncer

// defaultSeeds under the race detector, which makes a story ten times as long.
const defaultSeeds = 250

// mostCommits of a history that retention walks through, likewise.
const mostCommits = 1_001
