//go:build !linux

package child

const reaperEnv = "MCP_CHILD_REAPER"

// reaperMain is for Linux, where process 1 of a container inherits orphans.
func reaperMain() {}
