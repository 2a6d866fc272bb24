package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// kept is how many requests are remembered.
	kept = 1000
	// maxBody is how much of a body is read, in bytes.
	maxBody = 1 << 20
)

// credentials are headers whose values are told as digests.
var credentials = []string{"Authorization", "X-Api-Key", "Cookie"}

// request is what was asked.
type request struct {
	Method  string      `json:"method"`
	Path    string      `json:"path"`
	Query   url.Values  `json:"query"`
	Headers http.Header `json:"headers"`
	Body    string      `json:"body"`
	// Status is that of the answer; 0 while there is none.
	Status int `json:"status,omitempty"`
	// Cancelled says that whoever asked did not wait for the answer.
	Cancelled bool `json:"cancelled,omitempty"`
}

func observed(r *http.Request) request {
	headers := r.Header.Clone()
	for _, name := range credentials {
		for i, value := range headers[name] {
			headers[name][i] = digest(value)
		}
	}
	body, _ := r.Context().Value(bodyKey{}).([]byte)
	return request{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Headers: headers, Body: string(body)}
}

// digest is the beginning of the SHA-256 of a credential.
func digest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// recorder remembers requests.
type recorder struct {
	mu       sync.Mutex
	total    int
	requests []*request
}

func (s *recorder) all() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]request, 0, len(s.requests))
	for _, r := range s.requests {
		list = append(list, *r)
	}
	return map[string]any{"total": s.total, "requests": list}
}

func (s *recorder) recording(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			answer(w, http.StatusBadRequest, failure("the body cannot be read"))
			return
		}
		r = withBody(r, body)
		entry := observed(r)
		s.mu.Lock()
		s.total++
		s.requests = append(s.requests[max(0, len(s.requests)-kept+1):], &entry)
		s.mu.Unlock()
		told := &statusWriter{ResponseWriter: w}
		next.ServeHTTP(told, r)
		s.mu.Lock()
		entry.Status, entry.Cancelled = told.status, r.Context().Err() != nil
		s.mu.Unlock()
	})
}

type statusWriter struct {
	http.ResponseWriter

	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// echo answers with the request.
func echo(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	delay, _ := time.ParseDuration(query.Get("delay"))
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return
	}
	status, err := strconv.Atoi(query.Get("status"))
	if err != nil || !slices.Contains([]int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}, status) {
		status = http.StatusOK
	}
	answer(w, status, observed(r))
}
