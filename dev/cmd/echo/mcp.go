package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net/http"
	"strings"
	"time"
)

// mcpVersion is the protocol version that mcp speaks.
const mcpVersion = "2025-11-25"

// serveMCP is the smallest MCP server there is: the handshake, and a list of tools that do nothing. With a certificate it speaks TLS.
func serveMCP(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mcp", flag.ContinueOnError)
	addr := flags.String("addr", ":8080", "address to listen on")
	cert := flags.String("cert", "", "file with the certificate and those of its issuers, in PEM (default: no TLS)")
	key := flags.String("key", "", "file with the certificate's key, in PEM")
	tools := flags.String("tools", "noop", "names of its tools, with commas between them; empty: it has no tools")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names := strings.FieldsFunc(*tools, func(r rune) bool { return r == ',' })
	server := &http.Server{Addr: *addr, ReadHeaderTimeout: 10 * time.Second, Handler: mcpHandler(names)}
	stopped := context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	defer stopped()
	log.Printf("MCP at %s, TLS: %t", *addr, *cert != "")
	listen := server.ListenAndServe
	if *cert != "" {
		listen = func() error { return server.ListenAndServeTLS(*cert, *key) }
	}
	if err := listen(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func mcpHandler(tools []string) http.Handler {
	capabilities, list := map[string]any{}, []any{}
	if len(tools) > 0 {
		capabilities["tools"] = map[string]any{}
	}
	for _, name := range tools {
		list = append(list, map[string]any{"name": name, "inputSchema": map[string]any{"type": "object"}})
	}
	results := map[string]any{
		"initialize": map[string]any{
			"protocolVersion": mcpVersion, "capabilities": capabilities, "serverInfo": map[string]any{"name": "echo", "version": "1"},
		},
		"tools/list": map[string]any{"tools": list},
		"ping":       map[string]any{},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&message); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if message.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": message.ID}
		if result, known := results[message.Method]; known {
			answer["result"] = result
		} else {
			answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
}
