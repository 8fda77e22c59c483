//go:build race

package pluginhost

// crashCycles is fewer under the race detector, whose starts take several times as long.
const crashCycles = 200
