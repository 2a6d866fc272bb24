package bench

import (
	"bytes"
	"io"
	"net/http"
)

// echo is a server of both protocol versions that knows one tool, and takes from a request only what it must: it is to hide as
// little as possible of what stands before it. Servers made with a library need many times as long for a long text.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	id := bytes.TrimRight(between(body, `"id":`, `,`), "}")
	if id == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var out bytes.Buffer
	out.Grow(len(body) + 256)
	out.WriteString(`{"jsonrpc":"2.0","id":`)
	out.Write(id)
	out.WriteString(`,"result":{"resultType":"complete",`)
	switch string(between(body, `"method":"`, `"`)) {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "one")
		out.WriteString(`"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}`)
	case "server/discover":
		out.WriteString(`"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`)
	case "tools/list":
		out.WriteString(`"tools":[{"name":"echo","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}}`)
	case "tools/call":
		out.WriteString(`"content":[{"type":"text","text":"`)
		out.Write(between(body, `"text":"`, `"`))
		out.WriteString(`"}]}}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		out.Reset()
		out.WriteString(`{"jsonrpc":"2.0","id":`)
		out.Write(id)
		out.WriteString(`,"error":{"code":-32601,"message":"method not found"}}`)
	}
	_, _ = w.Write(out.Bytes())
}

// between is what stands between two texts; nil if the first is nowhere.
func between(in []byte, begin, end string) []byte {
	_, rest, found := bytes.Cut(in, []byte(begin))
	if !found {
		return nil
	}
	rest, _, _ = bytes.Cut(rest, []byte(end))
	return rest
}
