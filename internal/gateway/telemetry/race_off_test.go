//go:build !race

package telemetry

// raceEnabled is true where pools drop at random, so that allocations cannot be counted.
const raceEnabled = false
