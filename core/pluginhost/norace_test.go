//go:build !race

package pluginhost

// crashCycles is how many crashes the soak makes: a target that restarts every minute does so in a day.
const crashCycles = 1000
