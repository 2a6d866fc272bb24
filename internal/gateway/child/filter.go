package child

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const (
	methodListen       = "subscriptions/listen"
	methodAcknowledged = "notifications/subscriptions/acknowledged"
)

// listFields are the members of a filter that are about lists, and the notifications that each asks for.
var listFields = []struct{ field, method string }{
	{"toolsListChanged", "notifications/tools/list_changed"},
	{"promptsListChanged", "notifications/prompts/list_changed"},
	{"resourcesListChanged", "notifications/resources/list_changed"},
}

func isListChanged(m *wire.Message) bool {
	for _, list := range listFields {
		if m.Method == list.method {
			return true
		}
	}
	return false
}

// filter is what a subscriptions/listen request asks for, or what is granted of that.
type filter struct {
	// lists are methods, uris resources.
	lists, uris []string
}

// parseFilter reads params.notifications, of a request as of its acknowledgement. What it does not know is not in the filter, so
// that it is not granted either.
func parseFilter(m *wire.Message) (f filter, ok bool) {
	raw := m.Param("notifications")
	for _, list := range listFields {
		if string(wire.Field(raw, list.field)) == "true" {
			f.lists = append(f.lists, list.method)
		}
	}
	for element := range wire.Elements(wire.Field(raw, "resourceSubscriptions")) {
		if uri, ok := wire.String(element); ok && !slices.Contains(f.uris, uri) && len(f.uris) < maxURIs {
			f.uris = append(f.uris, uri)
		}
	}
	return f, wire.IsObject(raw)
}

func (f *filter) empty() bool { return len(f.lists) == 0 && len(f.uris) == 0 }

// wants reports whether the filter lets a notification through.
func (f *filter) wants(m *wire.Message) bool {
	if m.Method != methodUpdated {
		return slices.Contains(f.lists, m.Method)
	}
	updated, _ := m.StringParam("uri")
	return slices.ContainsFunc(f.uris, func(uri string) bool { return translate.Concerns(updated, uri) })
}

// and is what both filters let through.
func (f *filter) and(granted *filter) *filter {
	both := &filter{}
	for _, list := range f.lists {
		if slices.Contains(granted.lists, list) {
			both.lists = append(both.lists, list)
		}
	}
	for _, uri := range f.uris {
		if slices.Contains(granted.uris, uri) {
			both.uris = append(both.uris, uri)
		}
	}
	return both
}

// add lets more through.
func (f *filter) add(more *filter) {
	for _, list := range more.lists {
		if !slices.Contains(f.lists, list) {
			f.lists = append(f.lists, list)
		}
	}
	for _, uri := range more.uris {
		if !slices.Contains(f.uris, uri) {
			f.uris = append(f.uris, uri)
		}
	}
}

// params is the filter as params.notifications has it.
func (f *filter) params() json.RawMessage {
	raw := []byte{'{'}
	for _, list := range listFields {
		if slices.Contains(f.lists, list.method) {
			raw = append(raw, `"`+list.field+`":true,`...)
		}
	}
	if len(f.uris) > 0 {
		raw = append(raw, `"resourceSubscriptions":[`...)
		for _, uri := range f.uris {
			raw = append(append(raw, quote(uri)...), ',')
		}
		raw = append(bytes.TrimSuffix(raw, []byte(",")), ']')
	}
	return append(bytes.TrimSuffix(raw, []byte(",")), '}')
}
