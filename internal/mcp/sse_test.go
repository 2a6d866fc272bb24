package mcp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// events reads a whole stream.
func events(in io.Reader, limits Limits) ([]string, error) {
	var e eventReader
	e.start(in, limits)
	var out []string
	for {
		data, err := e.next()
		if err != nil {
			return out, err
		}
		out = append(out, string(data))
	}
}

func TestEventStreams(t *testing.T) {
	t.Parallel()
	atLimit := strings.Repeat("a", 30-len("data: \n\n"))
	cases := map[string]struct {
		text string
		want []string
		err  error
	}{
		"one":                   {"data: a\n\n", []string{"a"}, io.EOF},
		"two, CRLF":             {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, io.EOF},
		"CR":                    {"data: a\r\rdata: b\r\r", []string{"a", "b"}, io.EOF},
		"mixed ends":            {"data: a\r\n\ndata: b\n\r", []string{"a", "b"}, io.EOF},
		"several lines":         {"data: a\ndata:b\ndata:  c\n\n", []string{"a\nb\n c"}, io.EOF},
		"field without a colon": {"data\ndata: b\n\n", []string{"\nb"}, io.EOF},
		"no data":               {"id: 1\nretry: 3\n\n: comment\n\ndata: a\n\n", []string{"a"}, io.EOF},
		"empty data":            {"data:\n\n" + "data: a\n\n", []string{"a"}, io.EOF},
		"types":                 {"event: ping\ndata: a\n\nevent: message\ndata: b\n\nevent:\ndata: c\n\n", []string{"b", "c"}, io.EOF},
		"byte order mark":       {"\ufeffdata: a\n\n\ufeffdata: b\n\n", []string{"a"}, io.EOF},
		"unfinished":            {"data: a\n\ndata: b", []string{"a", "b"}, io.EOF},
		"event at the limit":    {"data: " + atLimit + "\n\n", []string{atLimit}, io.EOF},
		"event over the limit":  {"data: " + atLimit + "x\n\n", nil, errEventTooLarge},
		"lines over the limit":  {"data: 01234567\ndata: 01234567\n\n", nil, errEventTooLarge},
		"comment over it":       {": " + atLimit + atLimit, nil, errEventTooLarge},
		"events at the limit":   {"data: 1\n\n\n\ndata: 4\n\n", []string{"1", "4"}, io.EOF},
		"events over the limit": {"\n\n\n\n\ndata: 6\n\n", nil, errManyEvents},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := Limits{EventBytes: 30, Events: 4}
			got, err := events(strings.NewReader(tc.text), limits)
			if !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzEventStream(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "event: x\r\ndata: b\r\r\n", "\ufeffdata:\n\n", ": c\n\ndata: d", "data\n" + "data\n\n", "id: 1\nretry: x\n\n", "\r\n\r\n\n",
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{EventBytes: 64, Events: 8}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := events(bytes.NewReader(data), limits)
		if err == nil || len(got) > limits.Events {
			t.Fatalf("%d events, error %v", len(got), err)
		}
		for _, event := range got {
			if event == "" || len(event) > limits.EventBytes {
				t.Fatalf("an event of %d bytes", len(event))
			}
		}
		bytewise, byteErr := events(iotest.OneByteReader(bytes.NewReader(data)), limits)
		if diff := cmp.Diff(got, bytewise); diff != "" || !errors.Is(byteErr, err) {
			t.Fatalf("how the stream is cut into reads matters (%v, %v):\n%s", err, byteErr, diff)
		}
	})
}
