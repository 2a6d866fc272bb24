package route

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// reach gathers where a table has the gateway connect to.
type reach struct {
	servers, closed map[string]bool
	public, private map[int32]bool
}

func set[K comparable](m *map[K]bool, key K) {
	if *m == nil {
		*m = map[K]bool{}
	}
	(*m)[key] = true
}

func (r *reach) addAll(c *compiled, allowPrivate bool) {
	if c.server != "" {
		set(&r.servers, c.server)
		if c.closed {
			set(&r.closed, c.server)
		}
		return
	}
	b := &c.backend
	if b.Toolset != nil && b.Toolset.Postgres != nil {
		r.database(b.Toolset.Postgres, allowPrivate)
		return
	}
	r.url(b.URL, allowPrivate)
}

func (r *reach) database(p *table.PostgresTool, allowPrivate bool) {
	port := int32(p.Port)          //nolint:gosec // the table has checked it
	if p.TLS != table.TLSDisable { // which is dialled at private addresses alone
		set(&r.public, port)
	}
	if allowPrivate {
		set(&r.private, port)
	}
}

func (r *reach) issuers(issuers []table.OIDC, allowPrivate bool) {
	for _, issuer := range issuers {
		r.url(issuer.Issuer, allowPrivate)
	}
}

// url adds the port of a URL that the table has checked.
func (r *reach) url(raw string, allowPrivate bool) {
	port := portOf(raw)
	if port == 0 {
		return
	}
	set(&r.public, port)
	if allowPrivate {
		set(&r.private, port)
	}
}

// portOf is the port of a URL, 0 if it has none.
func portOf(raw string) int32 {
	u, err := url.Parse(raw)
	if err != nil {
		return 0
	}
	switch port := u.Port(); {
	case port != "":
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return 0
		}
		return int32(n)
	case u.Scheme == "https":
		return 443
	case u.Scheme == "http":
		return 80
	}
	return 0
}

func (r *reach) sorted() desired.Reach {
	return desired.Reach{
		Servers: slices.Sorted(maps.Keys(r.servers)), Closed: slices.Sorted(maps.Keys(r.closed)),
		PublicPorts: slices.Sorted(maps.Keys(r.public)), PrivatePorts: slices.Sorted(maps.Keys(r.private)),
	}
}
