package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestAnswerIsReadFromABodyAndFromAStream(t *testing.T) {
	t.Parallel()
	const stream = "text/event-stream"
	for name, tt := range map[string]struct{ contentType, body, want, problem string }{
		"a body":                         {"application/json", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, `{"a":1}`, ""},
		"a stream, after a notification": {stream, "event: message\ndata: {\"method\":\"x\"}\n\ndata: {\"id\":1,\"result\":{}}\n\n", `{}`, ""},
		"a stream without an answer":     {stream, "data: {\"method\":\"x\"}\n\n", "", "without an answer"},
		"an error":                       {"application/json", `{"id":1,"error":{"code":-32602,"message":"unknown tool"}}`, "", "error -32602: unknown tool"},
		"no MCP":                         {"text/html", "<html>", "", "status 502: <html>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, header := io.NopCloser(strings.NewReader(tt.body)), http.Header{"Content-Type": {tt.contentType}}
			got, err := read(&http.Response{StatusCode: http.StatusBadGateway, Header: header, Body: body})
			if string(got) != tt.want || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("got %s, %v; want %s, %q", got, err, tt.want, tt.problem)
			}
		})
	}
}
