//go:build !race

package mcp_test

// worstBytes is how large the answers are whose cost is measured.
const worstBytes = 4 << 20
