package front

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestHostAndOriginDecideWhoIsServed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		loopbackOnly bool
		hosts        []string
		origins      []string
		publicURL    string
		host, origin string
		want         int // 0 is served
	}{
		"any host, if nothing is said": {host: "demo.mcp-system.svc.cluster.local:8080"},
		"no Host at all":               {host: "", want: http.StatusBadRequest},
		"a path in the Host":           {host: "a/?x=", want: http.StatusBadRequest},
		"userinfo in the Host":         {host: "a@evil.example", want: http.StatusBadRequest},
		"a port that is none":          {host: "demo:http", want: http.StatusBadRequest},
		"a host that is listed":        {hosts: []string{"mcp.example.com"}, host: "MCP.example.com:8443"},
		"its name with a trailing dot": {hosts: []string{"mcp.example.com"}, host: "mcp.example.com."},
		"an address":                   {hosts: []string{"mcp.example.com"}, host: "10.96.3.4:8080"},
		"an address of IPv6":           {hosts: []string{"mcp.example.com"}, host: "[fd00::7]:8080"},
		"a host that is not listed":    {hosts: []string{"mcp.example.com"}, host: "evil.example", want: http.StatusForbidden},
		"the host of the public URL": {
			hosts: []string{"a.svc"}, publicURL: "https://MCP.example.com:8443/mcp", host: "mcp.example.com",
		},
		"a host that only begins like it": {
			hosts: []string{"a.svc"}, publicURL: "https://mcp.example.com/mcp", host: "mcp.example.com.evil", want: http.StatusForbidden,
		},
		"a host under a wildcard":                       {hosts: []string{"*.example.com"}, host: "a.example.com"},
		"the wildcard's own domain":                     {hosts: []string{"*.example.com"}, host: "example.com", want: http.StatusForbidden},
		"a host that only ends like the wildcard":       {hosts: []string{"*.example.com"}, host: "evilexample.com", want: http.StatusForbidden},
		"localhost at a loopback listener":              {loopbackOnly: true, host: "localhost:8080"},
		"a loopback address at it":                      {loopbackOnly: true, host: "[::1]:8080"},
		"another name at it (DNS rebinding)":            {loopbackOnly: true, host: "evil.example:8080", want: http.StatusForbidden},
		"a listed name at it":                           {loopbackOnly: true, hosts: []string{"mcp.example.com"}, host: "mcp.example.com"},
		"an Origin that is not allowed":                 {host: "a", origin: "https://evil.example", want: http.StatusForbidden},
		"an Origin that is":                             {host: "a", origins: []string{"https://inspector.example"}, origin: "https://inspector.example"},
		"a page of the endpoint itself":                 {hosts: []string{"a"}, host: "a:8080", origin: "http://a:8080"},
		"a page of whatever the Host is (rebinding)":    {host: "evil:8080", origin: "http://evil:8080", want: http.StatusForbidden},
		"a page of this machine at a loopback listener": {loopbackOnly: true, host: "localhost:8080", origin: "http://localhost:8080"},
		"a page of the endpoint by its public URL":      {host: "a", publicURL: "https://mcp.example.com/mcp", origin: "https://mcp.example.com"},
		"an opaque Origin":                              {host: "a", origin: "null", want: http.StatusForbidden},
		"the endpoint's host by another scheme":         {hosts: []string{"a"}, host: "a", origin: "https://a", want: http.StatusForbidden},
		"an Origin that begins like a good one": {
			host: "a", origins: []string{"https://x.example"}, origin: "https://x.example.evil", want: http.StatusForbidden,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := New(Options{Logger: slog.New(slog.DiscardHandler), Telemetry: telemetry.New(telemetry.Options{}), LoopbackOnly: tc.loopbackOnly})
			state := &State{Table: &table.Table{Endpoint: table.Endpoint{
				AllowedHosts: tc.hosts, AllowedOrigins: tc.origins, PublicURL: tc.publicURL,
			}}}
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			r.Host = tc.host
			if tc.origin != "" {
				r.Header.Set("Origin", tc.origin)
			}
			if got, why := f.admit(state, r); got != tc.want {
				t.Errorf("got %d (%s), want %d", got, why, tc.want)
			}
		})
	}
}

func TestAcceptSaysHowToAnswer(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		values []string
		want   acceptance
	}{
		"nothing said":         {nil, acceptance{json: true, stream: true}},
		"both":                 {[]string{"application/json, text/event-stream"}, acceptance{json: true, stream: true}},
		"both, in two fields":  {[]string{"application/json", "text/event-stream;q=0.5"}, acceptance{json: true, stream: true}},
		"both, a stream first": {[]string{"text/event-stream, application/json"}, acceptance{json: true, stream: true, streamFirst: true}},
		"anything":             {[]string{"*/*"}, acceptance{json: true, stream: true}},
		"JSON alone":           {[]string{"Application/JSON"}, acceptance{json: true}},
		"a stream alone":       {[]string{"text/*"}, acceptance{stream: true, streamFirst: true}},
		"neither":              {[]string{"text/html, image/png"}, acceptance{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := accepts(tc.values); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
