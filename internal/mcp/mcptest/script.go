package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
)

// Call is a JSON-RPC request that a hand-written server got.
type Call struct {
	// ID is the request's id as JSON; empty for a notification.
	ID string
	// Method is the JSON-RPC method.
	Method string
	// Cursor is params.cursor.
	Cursor string
	// Request is the HTTP request, its body already read.
	Request *http.Request
}

// Script says how a hand-written server answers each JSON-RPC method. What is
// not in it is answered as a plain server of the given generation would.
type Script map[string]func(w http.ResponseWriter, call Call)

// Session is the id that servers made by Legacy hand out.
const Session = "session-of-a-script"

// Legacy returns a server of protocol version 2025-11-25 with sessions. It
// offers tools and has one, "echo".
func Legacy(script Script) http.Handler {
	return serveScript(script, Script{
		"initialize": func(w http.ResponseWriter, call Call) {
			w.Header().Set("Mcp-Session-Id", Session)
			Result(w, call, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"script","version":"1"}}`)
		},
		"notifications/initialized": func(w http.ResponseWriter, _ Call) { w.WriteHeader(http.StatusAccepted) },
		"tools/list":                oneTool,
		"DELETE":                    func(w http.ResponseWriter, _ Call) { w.WriteHeader(http.StatusNoContent) },
	}, func(w http.ResponseWriter, _ Call) {
		http.Error(w, "Bad Request: not initialized", http.StatusBadRequest)
	})
}

// Modern returns a server of protocol version 2026-07-28. It offers tools and
// has one, "echo".
func Modern(script Script) http.Handler {
	return serveScript(script, Script{
		"server/discover": func(w http.ResponseWriter, call Call) {
			Result(w, call, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},`+
				`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"script","version":"1"}}}`)
		},
		"tools/list": oneTool,
	}, func(w http.ResponseWriter, call Call) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		writef(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, call.ID)
	})
}

func oneTool(w http.ResponseWriter, call Call) {
	Result(w, call, `{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object"}}]}`)
}

func serveScript(script, plain Script, unknown func(http.ResponseWriter, Call)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := Call{Method: r.Method, Request: r}
		if r.Method == http.MethodPost {
			var message struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params struct {
					Cursor string `json:"cursor"`
				} `json:"params"`
			}
			if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
				http.Error(w, "not JSON", http.StatusBadRequest)
				return
			}
			call.ID, call.Method, call.Cursor = string(message.ID), message.Method, message.Params.Cursor
		}
		if answer := script[call.Method]; answer != nil {
			answer(w, call)
			return
		}
		if answer := plain[call.Method]; answer != nil {
			answer(w, call)
			return
		}
		unknown(w, call)
	})
}

// Result answers a call with a result given as JSON.
func Result(w http.ResponseWriter, call Call, result string) {
	w.Header().Set("Content-Type", "application/json")
	writef(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, result)
}

// Fail answers a call with a JSON-RPC error.
func Fail(w http.ResponseWriter, call Call, status, code int, message string) {
	text, err := json.Marshal(message)
	if err != nil {
		http.Error(w, "not JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writef(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, call.ID, code, text)
}

// Raw answers a call with a body of the given type as it stands.
func Raw(w http.ResponseWriter, status int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// As with writef, what the client makes of it is what the test looks at.
	_, _ = io.WriteString(w, body)
}

// writef ignores errors: the client may hang up at any time, and what it makes
// of the answer is what the test looks at.
func writef(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
