// Package version tells which build of the operator this is.
package version

import "runtime/debug"

// version is set by the linker: -X github.com/mcp-operator/mcp-operator/internal/version.version=v1.2.3.
var version string

// String returns the version of the build: what the linker was told, else the module version or revision that Go recorded,
// else "dev".
func String() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return setting.Value[:12]
		}
	}
	return "dev"
}
