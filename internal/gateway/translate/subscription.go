package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Filter says which notifications a subscriptions/listen stream is to carry (2026-07-28). Whoever subscribes in a legacy session
// gets the list changes anyway, and updates of the resources it named.
type Filter struct {
	Tools, Prompts, Resources bool
	// URIs are the resources whose updates are wanted.
	URIs []string
}

// maxURIs bounds the resources of one subscription, maxURIBytes each of them.
const (
	maxURIs     = 1000
	maxURIBytes = 8 << 10
)

// ParseFilter reads the params of subscriptions/listen, or of its acknowledgement. The error is for the client, with
// [wire.CodeInvalidParams]; an unknown kind of notification is no error, it is just not acknowledged.
func ParseFilter(m *wire.Message) (Filter, error) {
	notifications := m.Param("notifications")
	if !wire.IsObject(notifications) {
		return Filter{}, errors.New("params.notifications is missing or no object")
	}
	f := Filter{
		Tools:     isTrue(wire.Field(notifications, "toolsListChanged")),
		Prompts:   isTrue(wire.Field(notifications, "promptsListChanged")),
		Resources: isTrue(wire.Field(notifications, "resourcesListChanged")),
	}
	for element := range wire.Elements(wire.Field(notifications, "resourceSubscriptions")) {
		uri, ok := wire.String(element)
		if !ok || uri == "" || len(uri) > maxURIBytes {
			return Filter{}, fmt.Errorf("params.notifications.resourceSubscriptions has an element that is no URI of 1 to %d bytes", maxURIBytes)
		}
		if len(f.URIs) == maxURIs {
			return Filter{}, fmt.Errorf("params.notifications.resourceSubscriptions has more than %d elements", maxURIs)
		}
		f.URIs = append(f.URIs, uri)
	}
	return f, nil
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }

// Within returns what of the filter a server that offers the capabilities agrees to.
func (f Filter) Within(capabilities json.RawMessage) Filter {
	offers := func(capability, member string) bool {
		return isTrue(wire.Field(wire.Field(capabilities, capability), member))
	}
	f.Tools = f.Tools && offers("tools", "listChanged")
	f.Prompts = f.Prompts && offers("prompts", "listChanged")
	f.Resources = f.Resources && offers("resources", "listChanged")
	if !offers("resources", "subscribe") {
		f.URIs = nil
	}
	return f
}

// Empty reports whether no notification passes. A subscription to nothing is acknowledged and ended at once.
func (f Filter) Empty() bool { return !f.Tools && !f.Prompts && !f.Resources && len(f.URIs) == 0 }

// Passes reports whether a notification is one that was subscribed to.
func (f Filter) Passes(m *wire.Message) bool {
	switch m.Method {
	case ToolsListChanged:
		return f.Tools
	case PromptsListChanged:
		return f.Prompts
	case ResourcesListChanged:
		return f.Resources
	case ResourceUpdated:
		updated, _ := m.StringParam("uri")
		return slices.ContainsFunc(f.URIs, func(uri string) bool { return Concerns(updated, uri) })
	}
	return false
}

// Concerns reports whether the update of a resource is one for who subscribed to another: to the same, or to one that holds it
// (the specification's schema lets a server tell of a sub-resource, see ResourceUpdatedNotification).
func Concerns(updated, subscribed string) bool {
	rest, ok := strings.CutPrefix(updated, subscribed)
	return ok && (rest == "" || strings.HasSuffix(subscribed, "/") || strings.ContainsRune("/?#", rune(rest[0])))
}

// Listen is the subscriptions/listen request of a legacy client, or of the gateway itself, at a modern backend.
func (f Filter) Listen(id json.RawMessage, c backend.Client, version string) *wire.Message {
	return ToModern(wire.NewRequest(id, "subscriptions/listen", f.params()), c, version, "")
}

// Acknowledge is the notification with which the stream of a subscription begins; f is what was agreed on.
func (f Filter) Acknowledge(id json.RawMessage) *wire.Message {
	return ToSubscription(wire.NewNotification(Acknowledged, f.params()), id)
}

// EndSubscription is the result that ends the stream of a subscription in good order.
func EndSubscription(id json.RawMessage) *wire.Message {
	return wire.NewResult(id, json.RawMessage(`{"resultType":"complete"}`)).With(wire.SetResultMeta(wire.MetaSubscriptionID, id))
}

// ToSubscription returns a notification of a legacy backend, or of the gateway itself, as one of the subscription with the id.
func ToSubscription(m *wire.Message, id json.RawMessage) *wire.Message {
	return m.With(wire.SetMeta(wire.MetaSubscriptionID, id))
}

// FromSubscription returns a notification of a modern backend's subscription as one for a legacy client's GET stream.
func FromSubscription(m *wire.Message) *wire.Message {
	return m.With(wire.RemoveMeta(wire.MetaSubscriptionID))
}

func (f Filter) params() json.RawMessage {
	wanted := []byte{'{'}
	for _, kind := range []struct {
		key  string
		want bool
	}{{"toolsListChanged", f.Tools}, {"promptsListChanged", f.Prompts}, {"resourcesListChanged", f.Resources}} {
		if kind.want {
			wanted = appendMember(wanted, kind.key, json.RawMessage(`true`))
		}
	}
	if len(f.URIs) > 0 {
		uris := []byte{'['}
		for i, uri := range f.URIs {
			if i > 0 {
				uris = append(uris, ',')
			}
			uris = append(uris, wire.Quote(uri)...)
		}
		wanted = appendMember(wanted, "resourceSubscriptions", append(uris, ']'))
	}
	return append(appendMember([]byte{'{'}, "notifications", append(wanted, '}')), '}')
}
