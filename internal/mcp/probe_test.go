package mcp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// client has limits that a loaded machine keeps and that no test waits for.
var client = &mcp.Client{Name: "mcp-operator", Version: "v0.0.0-test"}

func target(s *mcptest.Server) mcp.Target { return mcp.Target{URL: s.URL} }

func toolNames(r *mcp.Result) []string {
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func TestProbeOfARealServer(t *testing.T) {
	t.Parallel()
	stateful := []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	all := append([]string{"2026-07-28"}, stateful...)
	modernCalls := []string{"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"}
	legacyCalls := []string{
		"server/discover", "initialize", "notifications/initialized",
		"tools/list", "prompts/list", "resources/list", "resources/templates/list", "DELETE",
	}
	cases := map[string]struct {
		options  []mcptest.Option
		version  string
		versions []string
		stateful bool
		calls    []string
	}{
		"both generations, event streams": {nil, "2026-07-28", all, false, modernCalls},
		"both generations, JSON":          {[]mcptest.Option{mcptest.JSON()}, "2026-07-28", all, false, modernCalls},
		"stateless, event streams":        {[]mcptest.Option{mcptest.Stateless()}, "2026-07-28", all, false, modernCalls},
		"stateful, event streams":         {[]mcptest.Option{mcptest.Stateful()}, "2025-11-25", stateful, true, legacyCalls},
		"stateful, JSON":                  {[]mcptest.Option{mcptest.Stateful(), mcptest.JSON()}, "2025-11-25", stateful, true, legacyCalls},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			common := []mcptest.Option{mcptest.Tools("zeta", "alpha"), mcptest.Instructions("Be kind.\nBe brief.")}
			server := mcptest.NewServer(t, append(common, tc.options...)...)
			got, err := client.Probe(t.Context(), target(server))
			if err != nil {
				t.Fatal(err)
			}
			want := &mcp.Result{
				Server:          mcp.ServerInfo{Name: "mcptest", Title: "Test server", Version: "1.2.3"},
				ProtocolVersion: tc.version, ProtocolVersions: tc.versions, Stateful: tc.stateful,
				Instructions: "Be kind.\nBe brief.",
				Capabilities: mcp.Capabilities{
					Tools: true, Resources: true, Prompts: true,
					ToolsListChanged: true, ResourcesListChanged: true, PromptsListChanged: true,
				},
				Tools: []mcp.Tool{
					{Name: "alpha", Digest: "sha256:2e6cb26b0b297e5229f7b33182d95ec618f01b8d1b70ea4f27143fe0e159c7af"},
					{Name: "zeta", Digest: "sha256:923b611102e59fcdfd9af160b65d51fd348c2f5c429bba8a65ceaba54d8daa49"},
				},
				ToolsDigest: "sha256:30cf403332fc81053d1102726c86438785fa8c7e80cb8c9cb719f99d2cd4b70f",
				ToolCount:   new(int32(2)), PromptCount: new(int32(1)), ResourceCount: new(int32(1)), ResourceTemplateCount: new(int32(0)),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.calls, server.Calls()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if n := server.Sessions(); n != 0 {
				t.Errorf("%d sessions were left open", n)
			}
		})
	}
}

func TestAServerWithoutPromptsAndResourcesHasNoCounts(t *testing.T) {
	t.Parallel()
	server := mcptest.NewServer(t, mcptest.Bare(), mcptest.Tools())
	got, err := client.Probe(t.Context(), target(server))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(new(int32(0)), got.ToolCount); diff != "" {
		t.Errorf("tool count (-want +got):\n%s", diff)
	}
	if got.PromptCount != nil || got.ResourceCount != nil || got.ResourceTemplateCount != nil {
		t.Errorf("counts of lists that are not offered: %v %v %v", got.PromptCount, got.ResourceCount, got.ResourceTemplateCount)
	}
}

func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]mcptest.Option{"stateful": mcptest.Stateful(), "stateless": mcptest.Stateless()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.NewServer(t, option, mcptest.PageSize(2), mcptest.Tools("a", "b", "c", "d", "e"))
			got, err := client.Probe(t.Context(), target(server))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, toolNames(got)); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADigestChangesWithTheDefinitionOnly(t *testing.T) {
	t.Parallel()
	server := mcptest.NewServer(t, mcptest.Tools("one", "two"))
	probe := func() *mcp.Result {
		t.Helper()
		r, err := client.Probe(t.Context(), target(server))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := probe()
	if diff := cmp.Diff(before, probe()); diff != "" {
		t.Errorf("second probe of the same server (-first +second):\n%s", diff)
	}
	server.SetTool("two", "Something else")
	after := probe()
	if before.Tools[0] != after.Tools[0] {
		t.Errorf("tool one changed from %v to %v", before.Tools[0], after.Tools[0])
	}
	if before.Tools[1].Digest == after.Tools[1].Digest {
		t.Errorf("another description of tool two has the same digest %s", after.Tools[1].Digest)
	}
}

func TestRequestsCarryOurFixedHeadersOnly(t *testing.T) {
	t.Parallel()
	server := mcptest.NewServer(t, mcptest.Stateful())
	if _, err := client.Probe(t.Context(), target(server)); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{
		"Accept": true, "Accept-Encoding": true, "Content-Type": true, "Content-Length": true, "User-Agent": true,
		"Mcp-Protocol-Version": true, "Mcp-Method": true, "Mcp-Session-Id": true,
	}
	for _, r := range server.Requests() {
		for header := range r.Header {
			if !allowed[header] {
				t.Errorf("%s %s carries the header %s", r.HTTPMethod, r.RPCMethod, header)
			}
		}
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("%s: Accept-Encoding %q", r.RPCMethod, got)
		}
		if got := r.Header.Get("User-Agent"); got != "mcp-operator/v0.0.0-test" {
			t.Errorf("%s: User-Agent %q", r.RPCMethod, got)
		}
	}
}

func TestNothingButTheTargetIsDialled(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.example:3128")
	t.Setenv("http_proxy", "http://proxy.example:3128")
	server := mcptest.Pipe(t, mcptest.Legacy(nil))
	transport := server.Transport()
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "server.example:8080" {
			t.Errorf("%s was dialled", address)
		}
		return dial(ctx, network, address)
	}
	transport.Proxy = func(*http.Request) (*url.URL, error) {
		t.Error("the transport's proxy was asked for")
		return &url.URL{Scheme: "http", Host: "proxy.example:3128"}, nil
	}
	if _, err := client.Probe(t.Context(), mcp.Target{URL: server.URL, Transport: transport}); err != nil {
		t.Error(err)
	}
}

func TestHeadersFollowTheProtocolVersion(t *testing.T) {
	t.Parallel()
	type headers struct{ Call, Version, Method, Session string }
	sent := func(s *mcptest.Server) (out []headers) {
		for _, r := range s.Requests() {
			call := r.RPCMethod
			if call == "" {
				call = r.HTTPMethod
			}
			out = append(out, headers{call, r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Mcp-Method"), r.Header.Get("Mcp-Session-Id")})
		}
		return out
	}
	cases := map[string]struct {
		handler http.Handler
		want    []headers
	}{
		"2026-07-28": {mcptest.Modern(nil), []headers{
			{"server/discover", "2026-07-28", "server/discover", ""},
			{"tools/list", "2026-07-28", "tools/list", ""},
		}},
		"2025-11-25": {mcptest.Legacy(nil), []headers{
			{"server/discover", "2026-07-28", "server/discover", ""},
			{"initialize", "", "", ""},
			{"notifications/initialized", "2025-11-25", "", mcptest.Session},
			{"tools/list", "2025-11-25", "", mcptest.Session},
			{"DELETE", "2025-11-25", "", mcptest.Session},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.Serve(t, tc.handler)
			if _, err := client.Probe(t.Context(), target(server)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, sent(server)); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatelessRequestsDescribeThemselves(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, mcptest.Modern(nil))
	if _, err := client.Probe(t.Context(), target(server)); err != nil {
		t.Fatal(err)
	}
	const want = `"_meta":{"io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"mcp-operator","version":"v0.0.0-test"},` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for _, r := range server.Requests() {
		if !strings.Contains(r.Body, want) {
			t.Errorf("%s lacks the _meta of a stateless request: %s", r.RPCMethod, r.Body)
		}
	}
}

func TestTheHostHeaderIsSentAsGiven(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, mcptest.HostGuard(http.StatusForbidden, mcptest.Legacy(nil), "demo.example.com"))
	_, err := client.Probe(t.Context(), mcp.Target{URL: server.URL, Host: "demo.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range server.Requests() {
		if r.Host != "demo.example.com" {
			t.Errorf("%s was sent with Host %q", r.RPCMethod, r.Host)
		}
	}
}

func TestASessionIsEndedAlsoWhenTheCallerGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := mcptest.Serve(t, mcptest.Legacy(mcptest.Script{"tools/list": func(_ http.ResponseWriter, call mcptest.Call) {
		cancel()
		<-call.Request.Context().Done()
	}}))
	_, err := client.Probe(ctx, target(server))
	if mcp.ReasonOf(err) != mcp.Timeout || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v with reason %q", err, mcp.ReasonOf(err))
	}
	calls := server.Calls()
	if last := calls[len(calls)-1]; last != "DELETE" {
		t.Errorf("the last of %v is not DELETE", calls)
	}
}
