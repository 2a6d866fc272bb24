package translate

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Part is one backend of several behind an endpoint.
type Part struct {
	// Name is the backend's in the table.
	Name string
	// Offer is the zero value for a backend that never answered.
	Offer Offer
}

const (
	// maxPartInstructions bounds what one backend adds to the instructions, maxInstructions all of them, in bytes.
	maxPartInstructions = 4 << 10
	maxInstructions     = 32 << 10
)

// Merge is the offer of an endpoint with several backends, or none: what at least one of them serves and the gateway carries, and the
// instructions of all, each under its backend's name. Tools, prompts and resources are always offered, and their lists may be empty: a
// backend that never answered may turn out to have them, or the next table may, and a client asks once, and would never ask again.
// The name is for the caller to set, in Info.
func Merge(parts []Part, c Carries) Offer {
	var subscribe, completions, logging bool
	var extensions []byte
	for _, p := range parts {
		capabilities := p.Offer.Capabilities
		subscribe = subscribe || isTrue(wire.Field(wire.Field(capabilities, "resources"), "subscribe"))
		completions = completions || wire.IsObject(wire.Field(capabilities, "completions"))
		logging = logging || wire.IsObject(wire.Field(capabilities, "logging"))
		if extensions == nil {
			extensions = carriedExtensions(wire.Field(capabilities, "extensions"))
		}
	}
	out := []byte{'{'}
	for _, list := range []string{"tools", "prompts", "resources"} {
		capability := []byte{'{'}
		if c.ListChanged {
			capability = appendMember(capability, "listChanged", json.RawMessage(`true`))
		}
		if list == "resources" && subscribe && c.Subscribe {
			capability = appendMember(capability, "subscribe", json.RawMessage(`true`))
		}
		out = appendMember(out, list, append(capability, '}'))
	}
	if completions {
		out = appendMember(out, "completions", json.RawMessage(`{}`))
	}
	if logging && c.Logging {
		out = appendMember(out, "logging", json.RawMessage(`{}`))
	}
	if extensions != nil {
		out = appendMember(out, "extensions", extensions)
	}
	return Offer{Capabilities: append(out, '}'), Instructions: instructions(parts)}
}

// instructions joins those of all parts. What one of them says cannot crowd out the others.
func instructions(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		said := cut(strings.TrimSpace(p.Offer.Instructions), maxPartInstructions)
		if said == "" {
			continue
		}
		if b.Len()+len(p.Name)+len(said) > maxInstructions {
			break
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("# " + p.Name + "\n\n" + said)
	}
	return b.String()
}

// cut shortens s to at most limit bytes, at the border of a character, and shows that it did.
func cut(s string, limit int) string {
	const ellipsis = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(ellipsis)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
