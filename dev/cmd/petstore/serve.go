package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
)

// readDocument says that the server is where the document is.
func readDocument(path string) (json.RawMessage, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document %s: %w", path, err)
	}
	document["servers"] = json.RawMessage(`[{"url":"/v2"}]`)
	return json.Marshal(document)
}

func handler(document json.RawMessage, tokens string) http.Handler {
	seen, shop := &recorder{}, newStore()
	guarded := http.NewServeMux()
	guarded.HandleFunc("/echo", echo)
	guarded.Handle("/v2/", http.StripPrefix("/v2", shop.routes()))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, document) })
	mux.HandleFunc("GET /requests", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, seen.all()) })
	mux.Handle("/", seen.recording(withToken(tokens, guarded)))
	return mux
}

func withToken(path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path == "" {
			next.ServeHTTP(w, r)
			return
		}
		list, err := os.ReadFile(path)
		if err != nil {
			answer(w, http.StatusInternalServerError, failure("the tokens cannot be read"))
			return
		}
		token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !given || token == "" || !slices.Contains(strings.Fields(string(list)), token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, failure("the token is missing or unknown"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func failure(message string) map[string]string { return map[string]string{"message": message} }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Print("answer: ", err)
	}
}
