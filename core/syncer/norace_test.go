//go:build !race

package syncer

// defaultSeeds is the number of stories that the model test plays.
const defaultSeeds = 10_000

// mostCommits of a history that retention walks through.
const mostCommits = 2_500
