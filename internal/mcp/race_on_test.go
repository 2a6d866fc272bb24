//go:build race

package mcp_test

// worstBytes is how large the answers are whose cost is measured: the race
// detector makes reading them twenty times slower.
const worstBytes = 1 << 20
