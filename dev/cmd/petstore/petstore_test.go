package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shop is a server that lets in the tokens of a file.
func shop(t *testing.T) (url, tokens string) {
	t.Helper()
	tokens = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler(json.RawMessage(`{"openapi":"3.0.0"}`), tokens))
	t.Cleanup(server.Close)
	return server.URL, tokens
}

func ask(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(content)
}

func TestPetsAreKeptAndOnlyKnownTokensAreLetIn(t *testing.T) {
	t.Parallel()
	url, tokens := shop(t)
	for _, tt := range []struct {
		what, method, path, token, body string
		status                          int
		word                            string
	}{
		{"the document is for everybody", http.MethodGet, "/openapi.json", "", "", 200, "3.0.0"},
		{"no token", http.MethodGet, "/v2/pet/1", "", "", 401, "token"},
		{"an unknown token", http.MethodGet, "/v2/pet/1", "three", "", 401, "token"},
		{"a known token", http.MethodGet, "/v2/pet/1", "two", "", 200, "Rex"},
		{"a new pet", http.MethodPost, "/v2/pet", "one", `{"name":"Ida","status":"sold"}`, 200, `"id":3`},
		{"pets by one of two values", http.MethodGet, "/v2/pet/findByStatus?status=pending&status=sold", "one", "", 200, "Ida"},
		{"pets by tag", http.MethodGet, "/v2/pet/findByTags?tags=dog", "one", "", 200, "Rex"},
		{"the inventory", http.MethodGet, "/v2/store/inventory", "one", "", 200, `"sold":2`},
		{"a pet is removed", http.MethodDelete, "/v2/pet/3", "one", "", 200, ""},
		{"and is gone", http.MethodGet, "/v2/pet/3", "one", "", 404, "not found"},
		{"what is no object", http.MethodPost, "/v2/pet", "one", `[]`, 400, "object"},
		{"no operation", http.MethodGet, "/v2/other", "one", "", 404, "no such operation"},
	} {
		if status, body := ask(t, tt.method, url+tt.path, tt.token, tt.body); status != tt.status || !strings.Contains(body, tt.word) {
			t.Errorf("%s: %d %s, want %d with %q", tt.what, status, body, tt.status, tt.word)
		}
	}
	if err := os.WriteFile(tokens, []byte("three"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := ask(t, http.MethodGet, url+"/v2/pet/1", "three", ""); status != 200 {
		t.Errorf("a token that was added: %d", status)
	}
}

func TestRequestsAreToldWithoutCredentials(t *testing.T) {
	t.Parallel()
	url, _ := shop(t)
	if _, body := ask(t, http.MethodPut, url+"/echo?a=1", "one", "text"); strings.Contains(body, "Bearer") || !strings.Contains(body, digest("Bearer one")) {
		t.Errorf("the echo is %s", body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/echo?delay=1h", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer two")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			t.Error("a request that waits an hour was answered")
		}
	}()
	requests := func() []request {
		var all struct {
			Requests []request `json:"requests"`
		}
		_, body := ask(t, http.MethodGet, url+"/requests", "", "")
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
		return all.Requests
	}
	list := requests()
	for len(list) < 2 { // until the second one is under way
		list = requests()
	}
	cancel()
	<-ended
	for !list[1].Cancelled {
		list = requests()
	}
	first := list[0]
	if first.Method != http.MethodPut || first.Path != "/echo" || first.Query.Get("a") != "1" ||
		first.Body != "text" || first.Status != 200 || first.Cancelled {
		t.Errorf("the first request is told as %+v", first)
	}
}
