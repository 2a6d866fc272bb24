package main

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bothVersions stands in for mcp.NewStreamableHTTPHandler, one of which serves one generation of the protocol: here two of
// them share a server, and each request goes to the one that its header asks for. Under /sse it is served as in 2024-11-05.
func bothVersions(get func(*http.Request) *mcp.Server, _ *mcp.StreamableHTTPOptions) http.Handler {
	legacy := mcp.NewStreamableHTTPHandler(get, nil)
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})
	sse := mcp.NewSSEHandler(get, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sse" {
			sse.ServeHTTP(w, r)
			return
		}
		if r.Header.Get("MCP-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})
}
