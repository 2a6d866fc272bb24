package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting within a value that is kept raw.
const maxDepth = 64

var rawType = reflect.TypeFor[json.RawMessage]()

// shape compares JSON with the Go types it is to be decoded into, since encoding/json takes keys in any letter case, takes the
// last of two equal keys, and takes null for everything.
type shape struct {
	*problems

	decoder *json.Decoder
}

// checkShape adds what in data, which is valid JSON, does not match t exactly.
func checkShape(data []byte, t reflect.Type, p *problems) {
	s := shape{p, json.NewDecoder(bytes.NewReader(data))}
	s.decoder.UseNumber()
	if err := s.value(t, ""); err != nil {
		s.add("table", "cannot be read: %v", err)
		return
	}
	if _, err := s.decoder.Token(); !errors.Is(err, io.EOF) {
		s.add("table", "is followed by more data")
	}
}

// value compares the next value with t. The error is one of the decoder.
func (s shape) value(t reflect.Type, path string) error {
	token, err := s.decoder.Token()
	if err != nil {
		return err
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawType {
		if token == nil {
			s.add(at(path), "must not be null")
		}
		return s.rest(token, path, maxDepth)
	}
	matches := false
	switch token := token.(type) {
	case json.Delim:
		switch {
		case token == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
			return s.object(path, func(key, path string) error { return s.member(t, key, path) })
		case token == '[' && t.Kind() == reflect.Slice:
			return s.list(path, func(path string) error { return s.value(t.Elem(), path) })
		}
	case string:
		matches = t.Kind() == reflect.String
	case bool:
		matches = t.Kind() == reflect.Bool
	case json.Number:
		_, err := strconv.ParseInt(token.String(), 10, 32)
		matches = t.Kind() == reflect.Int && err == nil
	case nil:
		matches = t.Kind() == reflect.Slice
	}
	if !matches {
		s.add(at(path), "must be %s", kindNames[t.Kind()])
	}
	return s.rest(token, path, maxDepth)
}

// kindNames are the kinds of a Table's fields in JSON's words.
var kindNames = map[reflect.Kind]string{
	reflect.Struct: "an object", reflect.Map: "an object", reflect.Slice: "a list",
	reflect.String: "a string", reflect.Bool: "true or false", reflect.Int: "a whole number below 2^31",
}

// member compares the value of a key of a struct or map.
func (s shape) member(t reflect.Type, key, path string) error {
	if t.Kind() == reflect.Map {
		return s.value(t.Elem(), path)
	}
	for field := range t.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == key {
			return s.value(field.Type, path)
		}
	}
	s.add(at(path), "is not a field of table version %d", Version)
	return s.any(path, maxDepth)
}

// any passes over a value of any type, in which no key may occur twice.
func (s shape) any(path string, depth int) error {
	token, err := s.decoder.Token()
	if err != nil {
		return err
	}
	return s.rest(token, path, depth)
}

// rest passes over what follows the first token of a value.
func (s shape) rest(token json.Token, path string, depth int) error {
	delim, nested := token.(json.Delim)
	if nested && depth == 0 {
		return fmt.Errorf("%s is nested deeper than %d levels", at(path), maxDepth)
	}
	switch {
	case !nested:
		return nil
	case delim == '{':
		return s.object(path, func(_, path string) error { return s.any(path, depth-1) })
	default:
		return s.list(path, func(path string) error { return s.any(path, depth-1) })
	}
}

// object calls member before the value of each key, after the '{' was read.
func (s shape) object(path string, member func(key, path string) error) error {
	seen := map[string]bool{}
	for s.decoder.More() {
		token, err := s.decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		below := join(path, key)
		if seen[key] {
			s.add(below, "occurs twice")
		}
		seen[key] = true
		if err := member(key, below); err != nil {
			return err
		}
	}
	_, err := s.decoder.Token()
	return err
}

// list calls element before each element, after the '[' was read.
func (s shape) list(path string, element func(path string) error) error {
	for i := 0; s.decoder.More(); i++ {
		if err := element(index(path, i)); err != nil {
			return err
		}
	}
	_, err := s.decoder.Token()
	return err
}

// at names the place of a message; the table itself has the empty path.
func at(path string) string {
	if path == "" {
		return "table"
	}
	return path
}

// join is the path of a key: "auth.type", or `rename["a b"]` where the key is no word.
func join(path, key string) string {
	switch {
	case !consists(key, 1, 64, letters+digits+"_-"):
		return path + "[" + clip(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// index is the path of an element.
func index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}
