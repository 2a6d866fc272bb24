package translate

import (
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Notifications that a gateway treats one by one.
const (
	ToolsListChanged     = "notifications/tools/list_changed"
	PromptsListChanged   = "notifications/prompts/list_changed"
	ResourcesListChanged = "notifications/resources/list_changed"
	ResourceUpdated      = "notifications/resources/updated"
	Acknowledged         = "notifications/subscriptions/acknowledged"
	Progress             = "notifications/progress"
	LogMessage           = "notifications/message"
)

// levels are those of RFC 5424 that log messages have, least severe first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// KnownLevel reports whether logging/setLevel may ask for the level.
func KnownLevel(level string) bool { return slices.Contains(levels, level) }

// LevelAtLeast reports whether a log message of the level is let through where messages of least and above are asked for. None
// are asked for by an empty or unknown least; a message of an unknown level counts as the least severe.
func LevelAtLeast(level, least string) bool {
	from := slices.Index(levels, least)
	return from >= 0 && max(slices.Index(levels, level), 0) >= from
}

// ForCaller reports whether a notification that a backend sent along with a call is for the caller, in the version the caller
// speaks. LogLevel is what the caller asked for; "" asks for none. A modern caller gets what is about its call, and everything
// else through subscriptions/listen; a legacy one may get anything on any stream but what its version does not have.
func ForCaller(m *wire.Message, client backend.Era, logLevel string) bool {
	switch m.Method {
	case Progress:
		return true
	case LogMessage:
		level, _ := wire.String(m.Param("level"))
		return LevelAtLeast(level, logLevel)
	case Acknowledged:
		return false
	}
	return client == backend.Legacy
}
