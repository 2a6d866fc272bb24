package front

import (
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// poll rings when a backend is due to be looked at although it told of nothing; nil for one that tells of all its changes, and all of whose
// lists could be read.
func (b *Backend) poll() <-chan time.Time {
	if d := b.known(); d == nil || tellsOfChanges(capabilitiesOf(d)) && len(b.unread()) == 0 {
		return nil
	}
	return time.After(pollInterval)
}

// unread are the methods of the lists that could not be read when the backend was looked at last.
func (b *Backend) unread() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.catalog == nil {
		return nil
	}
	return b.catalog.Unread
}

// tellsOfChanges says whether all lists that a backend offers are ones whose changes it promises to tell of. A stream alone promises
// nothing: it may be there for log messages.
func tellsOfChanges(capabilities []byte) bool {
	for _, list := range []string{"tools", "prompts", "resources"} {
		capability := wire.Field(capabilities, list)
		if wire.IsObject(capability) && string(wire.Field(capability, "listChanged")) != "true" {
			return false
		}
	}
	return true
}

// isRouted says of a lone backend's own list of tools what the catalogs route of it; nil says that whatever its policy leaves can be called.
func (f *Front) isRouted(b *Backend) func(name, original string) bool {
	if !catalog.IsByAnnotations(&b.Config) {
		return nil
	}
	view := f.view.Load()
	return func(name, original string) bool {
		route, ok := view.Tool(name)
		return ok && route.Original == original
	}
}

// wishes are what of a subscription's filter is agreed to. Changes of lists all are: the next table may have lists that this one has not,
// and a client subscribes but once.
func wishes(filter translate.Filter, offer translate.Offer) translate.Filter {
	filter.URIs = filter.Within(offer.Capabilities).URIs
	return filter
}
