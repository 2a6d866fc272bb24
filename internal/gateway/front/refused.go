package front

import (
	"strconv"

	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// refused accounts for a request that the gateway refused by itself, if it is one for something of a backend's, and of b if that is known.
// Without a status it is one that was rejected.
func (v *visit) refused(m *wire.Message, b string, o telemetry.Outcome) {
	info := telemetry.CallInfo{Method: m.Method, Backend: b, Version: versionOf(v.eraOf(m))}
	switch {
	case m.Kind != wire.Request:
		return
	case m.Method == "tools/call":
		info.Tool, _ = m.StringParam("name")
	case m.Method != "prompts/get" && m.Method != "resources/read" && m.Method != "resources/subscribe" && m.Method != "completion/complete":
		return
	}
	if o.Status == "" {
		o.Status = telemetry.StatusRejected
	}
	o.RequestBytes, o.Principal = int64(len(m.Raw)), v.principal.Subject
	v.options.Telemetry.Start(info).End(o)
}

// codeIn is the code of an error.
func codeIn(m *wire.Message) int {
	code, err := strconv.Atoi(string(wire.Field(wire.Field(m.Raw, "error"), "code")))
	if err != nil {
		return wire.CodeInternal
	}
	return code
}
