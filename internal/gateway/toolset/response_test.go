package toolset

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// respond makes a handler of a status, a content type and a body.
func respond(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestResponsesBecomeResults(t *testing.T) {
	const typed = `{"name":"do","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}`
	cases := map[string]struct {
		handler    http.HandlerFunc
		definition string
		response   table.Response
		want       string
		structured string
		isError    bool
	}{
		"JSON":                 {handler: respond(200, "application/json", `{"a": 1}`), want: `{"a": 1}`},
		"JSON of another name": {handler: respond(200, "application/hal+json", `[]`), want: `[]`},
		"JSON that is none":    {handler: respond(200, "application/json", `{"a"`), want: `{"a"`},
		"text":                 {handler: respond(200, "text/html", "<p>ü</p>"), want: "<p>ü</p>"},
		"text of bad UTF-8":    {handler: respond(200, "text/plain", "a\xff"), want: "a\uFFFD"},
		"text of no type":      {handler: respond(200, "", "hello"), want: "hello"},
		"nothing":              {handler: respond(204, "", ""), want: "HTTP status 204, without content"},
		"something binary": {
			handler: respond(200, "application/zip", "PK\x00"),
			want:    "the API answered with 3 bytes that are neither text, JSON nor an image", isError: true,
		},
		"something of no type": {
			handler: respond(200, "", "\x00\x01"),
			want:    "the API answered with 2 bytes that are neither text, JSON nor an image", isError: true,
		},
		"a part": {
			handler: respond(200, "application/json", `{"d":[{"x":1},{"x/y":2}]}`), response: table.Response{Select: "/d/1/x~1y"},
			want: "2",
		},
		"no such part": {
			handler: respond(200, "application/json", `{"d":[]}`), response: table.Response{Select: "/d/0"},
			want: "the API's response has nothing at /d/0", isError: true,
		},
		"what was promised": {handler: respond(200, "application/json", `{ "a": 1 }`), definition: typed, want: `{ "a": 1 }`, structured: `{"a":1}`},
		"what was not promised": {
			handler: respond(200, "application/json", `{"a":"x"}`), definition: typed,
			want: "the response does not fit the tool's outputSchema: a: must be integer", isError: true,
		},
		"no JSON, as promised": {
			handler: respond(200, "text/html", `<html>`), definition: typed,
			want: "the API answered with HTTP status 200, but not with JSON as this tool promises: not valid JSON", isError: true,
		},
		"too much": {
			handler: respond(200, "text/plain", strings.Repeat("x", 101)), response: table.Response{MaxBytes: 100},
			want: "the API answered with HTTP status 200, but the response of 101 bytes is larger than " +
				"this tool's limit of 100 bytes: ask for less", isError: true,
		},
		"as much as allowed": {
			handler: respond(200, "text/plain", strings.Repeat("x", 100)), response: table.Response{MaxBytes: 100},
			want: strings.Repeat("x", 100),
		},
		"a failure": {
			handler: respond(404, "application/json", `{"error":"no such user"}`),
			want:    `the API answered with HTTP status 404 Not Found: {"error":"no such user"}`, isError: true,
		},
		"a failure without words": {
			handler: respond(500, "application/octet-stream", "\x00"),
			want:    "the API answered with HTTP status 500 Internal Server Error", isError: true,
		},
		"a failure with many words": {
			handler: respond(400, "text/plain", strings.Repeat("x", 100_000)),
			want:    "the API answered with HTTP status 400 Bad Request: " + strings.Repeat("x", maxExcerpt), isError: true,
		},
		"the secret, sent back": {handler: respond(200, "text/plain", "you sent Bearer "+canary+", "+canary), want: "you sent Bearer [redacted], [redacted]"},
		"the secret, in a failure": {
			handler: respond(403, "text/plain", "bad token "+canary),
			want:    "the API answered with HTTP status 403 Forbidden: bad token [redacted]", isError: true,
		},
		"a part of it, at the cut": {
			handler: respond(400, "text/plain", strings.Repeat(canary, 1000)),
			want:    "the API answered with HTTP status 400 Bad Request: " + strings.Repeat("[redacted]", 400), isError: true,
		},
		"a compressed body": {
			handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") },
			want:    "the API answered with HTTP status 200 and a compressed body, which was not asked for", isError: true,
		},
		"a redirect, not followed": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/v1/other")
			w.WriteHeader(http.StatusFound)
		}, want: "the API answered with HTTP status 302: redirects are not followed", isError: true},
		"a redirect to another host": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://evil.example/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, want: "the API answered with HTTP status 307: redirects are not followed", isError: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tool := table.HTTPTool{Method: "GET", Response: tc.response}
			if tc.definition != "" {
				tool.Definition = json.RawMessage(tc.definition)
			}
			got := call(t, openAPI(t, tc.handler, tool), "do", `{}`)
			text := got.text()
			if name == "a part of it, at the cut" {
				text = text[:min(len(text), len(tc.want))] // where it ends is no matter
			}
			if diff := cmp.Diff(tc.want, text); diff != "" || got.IsError != tc.isError || string(got.Structured) != tc.structured {
				t.Errorf("error %t, structured %s, -want +got:\n%s", got.IsError, got.Structured, diff)
			}
		})
	}
}

func TestAnImageIsShownAsOne(t *testing.T) {
	got := call(t, openAPI(t, respond(200, "image/png", "\x89PNG"), table.HTTPTool{Method: "GET"}), "do", `{}`)
	data, err := base64.StdEncoding.DecodeString(got.Content[0].Data)
	if err != nil || string(data) != "\x89PNG" || got.Content[0].MimeType != "image/png" || got.Content[0].Type != "image" {
		t.Errorf("got %+v, %v", got, err)
	}
}
