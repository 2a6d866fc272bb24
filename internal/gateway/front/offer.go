package front

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
)

// offer is what the endpoint offers to the client: a lone backend's own offer, or what all of them have together.
func (x *exchange) offer(ctx context.Context) (translate.Offer, error) {
	endpoint := x.state.Table.Endpoint
	var offer translate.Offer
	if b := x.lone(x.state); b == nil {
		offer = x.merged()
		endpoint.Name = cmp.Or(endpoint.Name, "mcp-gateway")
	} else {
		x.backend = b
		d, err := x.described(ctx, b)
		if err != nil {
			return offer, err
		}
		b.mu.Lock()
		anew := b.describe(d)
		b.mu.Unlock()
		if anew {
			x.hub.stir()
		}
		era := d.Nearest(x.reply.era)
		if offer = offerOf(d, era); era != x.reply.era {
			offer = offer.Across(carries)
		}
	}
	if endpoint.Name != "" {
		info, err := json.Marshal(map[string]string{"name": endpoint.Name, "version": x.options.Version})
		if err != nil {
			return offer, err
		}
		offer.Info = info
	}
	offer.Instructions = cmp.Or(endpoint.Instructions, offer.Instructions)
	return offer, nil
}

// merged is what an endpoint with several backends offers.
func (x *exchange) merged() translate.Offer {
	parts := make([]translate.Part, 0, len(x.state.Backends))
	for _, b := range x.state.Backends {
		part := translate.Part{Name: b.Config.Name}
		if d := b.known(); d != nil {
			part.Offer = offerOf(d, d.Nearest(backend.Modern))
		}
		parts = append(parts, part)
	}
	return translate.Merge(parts, carries)
}

// carries is what this package carries across protocol versions.
var carries = translate.Carries{ListChanged: true, Subscribe: true, Logging: true}

// offerOf reads what a backend said of itself in one of the eras that it speaks.
func offerOf(d *backend.Description, era backend.Era) translate.Offer {
	if era == backend.Modern {
		return translate.ReadDiscover(d.Discover)
	}
	return translate.ReadInitialize(d.Initialize)
}
