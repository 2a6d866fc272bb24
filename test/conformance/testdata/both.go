package main

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bothVersions stands in for mcp.NewStreamableHTTPHandler, one of which serves one generation of the protocol: here two of
// them share a server, and each request goes to the one that its header asks for.
func bothVersions(get func(*http.Request) *mcp.Server, _ *mcp.StreamableHTTPOptions) http.Handler {
	legacy := mcp.NewStreamableHTTPHandler(get, nil)
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("MCP-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})
}
