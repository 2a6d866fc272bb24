package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

type bodyKey struct{}

// withBody gives a request a body that was read already, for observed too.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// thing is a pet, an order or a user.
type thing map[string]any

// shelf keeps the things of one kind by their key, which is the member of that name.
type shelf struct {
	key    string
	things map[string]thing
	next   int
}

// store is what the API is about.
type store struct {
	mu                  sync.Mutex
	pets, orders, users shelf
}

func newStore() *store {
	return &store{
		pets: shelf{key: "id", next: 3, things: map[string]thing{
			"1": {"id": 1, "name": "Rex", "status": "available", "photoUrls": []string{}, "tags": []any{thing{"id": 1, "name": "dog"}}},
			"2": {"id": 2, "name": "Tom", "status": "sold", "photoUrls": []string{}, "tags": []any{thing{"id": 2, "name": "cat"}}},
		}},
		orders: shelf{key: "id", next: 1, things: map[string]thing{}},
		users:  shelf{key: "username", things: map[string]thing{}},
	}
}

func (s *store) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pet", s.put(&s.pets))
	mux.HandleFunc("PUT /pet", s.put(&s.pets))
	mux.HandleFunc("GET /pet/findByStatus", s.petsBy("status", func(p thing, value string) bool { return p["status"] == value }))
	mux.HandleFunc("GET /pet/findByTags", s.petsBy("tags", hasTag))
	mux.HandleFunc("GET /pet/{key}", s.get(&s.pets))
	mux.HandleFunc("DELETE /pet/{key}", s.remove(&s.pets))
	mux.HandleFunc("GET /store/inventory", s.inventory)
	mux.HandleFunc("POST /store/order", s.put(&s.orders))
	mux.HandleFunc("GET /store/order/{key}", s.get(&s.orders))
	mux.HandleFunc("DELETE /store/order/{key}", s.remove(&s.orders))
	mux.HandleFunc("POST /user", s.put(&s.users))
	mux.HandleFunc("GET /user/{key}", s.get(&s.users))
	mux.HandleFunc("DELETE /user/{key}", s.remove(&s.users))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, failure("there is no such operation"))
	})
	return mux
}

func (s *store) put(in *shelf) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var t thing
		if err := json.NewDecoder(r.Body).Decode(&t); err != nil || t == nil {
			answer(w, http.StatusBadRequest, failure("the body must be a JSON object"))
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, given := t[in.key]; !given {
			t[in.key] = in.next
			in.next++
		}
		in.things[text(t[in.key])] = t
		answer(w, http.StatusOK, t)
	}
}

func (s *store) get(in *shelf) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t, found := in.things[r.PathValue("key")]
		if !found {
			answer(w, http.StatusNotFound, failure("not found"))
			return
		}
		answer(w, http.StatusOK, t)
	}
}

func (s *store) remove(in *shelf) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, found := in.things[r.PathValue("key")]; !found {
			answer(w, http.StatusNotFound, failure("not found"))
			return
		}
		delete(in.things, r.PathValue("key"))
		answer(w, http.StatusOK, failure("deleted"))
	}
}

// petsBy finds pets by one of the values of a parameter.
func (s *store) petsBy(parameter string, match func(pet thing, value string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		found := []thing{}
		for _, pet := range s.pets.things {
			if slices.ContainsFunc(r.URL.Query()[parameter], func(value string) bool { return match(pet, value) }) {
				found = append(found, pet)
			}
		}
		slices.SortFunc(found, func(a, b thing) int { return cmp.Compare(text(a["id"]), text(b["id"])) })
		answer(w, http.StatusOK, found)
	}
}

func hasTag(pet thing, value string) bool {
	tags, _ := pet["tags"].([]any)
	return slices.ContainsFunc(tags, func(tag any) bool {
		switch tag := tag.(type) {
		case thing:
			return tag["name"] == value
		case map[string]any:
			return tag["name"] == value
		}
		return false
	})
}

func (s *store) inventory(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[string]int{}
	for _, pet := range s.pets.things {
		count[text(pet["status"])]++
	}
	answer(w, http.StatusOK, count)
}

// text is a key as it stands in a path.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case int:
		return strconv.Itoa(v)
	}
	return ""
}
