package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// event is an Event of which the rest was read.
type event struct{ Type, ID, Data string }

// events reads a whole stream.
func events(e *EventReader) ([]event, error) {
	var out []event
	for {
		got, err := e.Next()
		if err != nil {
			return out, err
		}
		data := string(got.Data)
		if got.Rest != nil {
			rest, err := io.ReadAll(got.Rest)
			if string(got.Data) != data {
				return out, errors.New("the head changes while the rest is read")
			}
			data += string(rest)
			if err != nil {
				return append(out, event{got.Type, got.ID, data}), err
			}
		}
		out = append(out, event{got.Type, got.ID, data})
	}
}

// message is an event of type "message" without an id.
func message(data string) event { return event{TypeMessage, "", data} }

func TestEventStreams(t *testing.T) {
	t.Parallel()
	atLimit := strings.Repeat("a", 30-len("data: \n\n"))
	response := `{"id":1,"result":"` + strings.Repeat("x", 100) + `"}`
	cases := map[string]struct {
		text string
		want []event
		err  error
	}{
		"nothing":               {"", nil, io.EOF},
		"one":                   {"data: a\n\n", []event{message("a")}, io.EOF},
		"two, CRLF":             {"data: a\r\n\r\ndata: b\r\n\r\n", []event{message("a"), message("b")}, io.EOF},
		"CR":                    {"data: a\r\rdata: b\r\r", []event{message("a"), message("b")}, io.EOF},
		"mixed ends":            {"data: a\r\n\ndata: b\n\r", []event{message("a"), message("b")}, io.EOF},
		"several lines":         {"data: a\ndata:b\ndata:  c\n\n", []event{message("a\nb\n c")}, io.EOF},
		"lines apart":           {"data:a\n:\nid:1\ndata:b\ndata:c\n\n", []event{{TypeMessage, "1", "a\nb\nc"}}, io.EOF},
		"field without a colon": {"data\ndata: b\n\n", []event{message("\nb")}, io.EOF},
		"no data":               {"id: 1\nretry: 3\n\n: comment\n\ndata: a\n\n", []event{{TypeMessage, "1", "a"}}, io.EOF},
		"empty data":            {"data:\n\n" + "data: a\n\n", []event{message("a")}, io.EOF},
		"types": {
			"event: ping\ndata: a\n\nevent: message\ndata: b\n\nevent:\ndata: c\n\nEvent: x\nevent : x\ndata: d\n\n",
			[]event{{"ping", "", "a"}, message("b"), message("c"), message("d")},
			io.EOF,
		},
		"ids": {
			"id: 1\ndata: a\n\ndata: b\n\nid: x\x00\nid:\ndata: c\n\nid: \x00\ndata: d\n\n",
			[]event{{TypeMessage, "1", "a"}, {TypeMessage, "1", "b"}, message("c"), message("d")},
			io.EOF,
		},
		"byte order mark":                        {"\ufeffdata: a\n\n\ufeffdata: b\n\n", []event{message("a")}, io.EOF},
		"only a mark":                            {"\ufeff", nil, io.EOF},
		"unfinished":                             {"data: a\n\ndata: b", []event{message("a"), message("b")}, io.EOF},
		"unfinished, one end":                    {"data: a\n\ndata: b\r", []event{message("a"), message("b")}, io.EOF},
		"unfinished comment":                     {"data: a\n:x", []event{message("a")}, io.EOF},
		"event at the limit":                     {"data: " + atLimit + "\n\n", []event{message(atLimit)}, io.EOF},
		"event over the limit":                   {"data: " + atLimit + "x\n\n", nil, ErrEventTooLarge},
		"lines over the limit":                   {"data: 01234567\ndata: 01234567\n\n", nil, ErrEventTooLarge},
		"comment over it":                        {": " + atLimit + atLimit, nil, ErrEventTooLarge},
		"id over it":                             {"id: " + atLimit + atLimit + "\n\n", nil, ErrEventTooLarge},
		"comments in between":                    {strings.Repeat(": alive\n", 20) + "data: a\n\n", []event{message("a")}, io.EOF},
		"a long response":                        {"data: " + response + "\n\ndata: b\n\n", []event{message(response), message("b")}, io.EOF},
		"a long response, CRLF, the end missing": {"id: 1\r\ndata: " + response + "\r\nid: 2", []event{{TypeMessage, "1", response}}, io.EOF},
		"a long response in lines": {
			"data:{\ndata: \"error\":\r\ndata:{\"x\":\"" + atLimit + "\",\n:c\nretry: 1\rdata:\ndata\ndata: \"y\":0}\ndata: }\n\ndata: b\n\n",
			[]event{message("{\n\"error\":\n{\"x\":\"" + atLimit + "\",\n\n\n\"y\":0}\n}"), message("b")},
			io.EOF,
		},
		"a long request":                 {`data: {"id":1,"method":"m","params":"` + atLimit + `"}` + "\n\n", nil, ErrEventTooLarge},
		"a request that has a result":    {`data: {"method":"m","result":1,"params":"` + atLimit + `"}` + "\n\n", nil, ErrEventTooLarge},
		"a long response of other type":  {"event: x\ndata: " + response + "\n\n", nil, ErrEventTooLarge},
		"a long field within a response": {"data: " + response + "\n:" + atLimit + atLimit + "\n\n", []event{message(response)}, ErrEventTooLarge},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, in := range map[string]io.Reader{
				"at once": strings.NewReader(tc.text), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.text)),
				"with the error": iotest.DataErrReader(strings.NewReader(tc.text)), "in pieces": inPieces([]byte(tc.text), 7, 2),
			} {
				e := NewEventReader(in, 30)
				e.MaxEvents = 100
				got, err := events(e)
				if !errors.Is(err, tc.err) {
					t.Errorf("%s: error %v, want %v", how, err, tc.err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: events (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

func TestAReaderOfWholeEventsStreamsNone(t *testing.T) {
	t.Parallel()
	text := `data: {"id":1,"result":"` + strings.Repeat("x", 100_000) + `"}` + "\n\n"
	e := NewEventReader(strings.NewReader(text), len(text))
	e.Whole = true
	if got, err := e.Next(); err != nil || got.Rest != nil || len(got.Data) != len(text)-len("data: \n\n") {
		t.Errorf("%d bytes, error %v", len(got.Data), err)
	}
	e = NewEventReader(strings.NewReader(text), len(text)-1)
	e.Whole = true
	if _, err := e.Next(); !errors.Is(err, ErrEventTooLarge) {
		t.Errorf("an event over the limit: %v", err)
	}
}

func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{"data: 1\n\n\n\ndata: 4\n\n": io.EOF, "\n\n\n\n\ndata: 6\n\n": ErrManyEvents} {
		e := NewEventReader(strings.NewReader(text), 100)
		e.MaxEvents = 4
		if _, err := events(e); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestWhatIsLeftOfAResponseIsSkipped(t *testing.T) {
	t.Parallel()
	response := `{"id":1,"result":"` + strings.Repeat("x", 200_000) + `"}`
	e := NewEventReader(strings.NewReader("data: "+response+"\nid: 9\n\ndata: b\n\n"), 1000)
	got, err := e.Next()
	if err != nil || got.Rest == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if id := Field(got.Data, "id"); string(id) != "1" {
		t.Errorf("the head has the id %s", id)
	}
	if _, err := got.Rest.Read(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if got, err = e.Next(); err != nil || string(got.Data) != "b" || got.ID != "9" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAStreamThatBreaksWithinAResponseSaysSo(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	head := "data: " + `{"id":1,"result":"` + strings.Repeat("x", 200_000)
	got, err := events(NewEventReader(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), 1000))
	if !errors.Is(err, broken) || len(got) != 1 || len(got[0].Data) != len(head)-len("data: ") {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func TestTheServersWishesAreKept(t *testing.T) {
	t.Parallel()
	stream := "id: 4\nretry: 1500\ndata:\n\n"
	for _, nonsense := range []string{"", "-1", "+1", "x", "1.5", "99999999999999"} {
		stream += "retry: " + nonsense + "\n\n"
	}
	e := NewEventReader(strings.NewReader(stream), 100)
	if _, err := e.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if e.LastEventID() != "4" || e.Retry() != 1500*time.Millisecond {
		t.Errorf("id %q, retry %v", e.LastEventID(), e.Retry())
	}
	e.Reset(strings.NewReader("data: a\n\n"))
	got, err := e.Next()
	if err != nil || got.ID != "" || e.Retry() != 0 || string(got.Data) != "a" {
		t.Errorf("after a reset: %+v, retry %v, error %v", got, e.Retry(), err)
	}
}

// endless gives the same text again and again, and counts.
type endless struct {
	text string
	at   int
	read int
}

func (r *endless) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	r.read += n
	return n, nil
}

// TestAHostileStreamIsBounded is attack B14.
func TestAHostileStreamIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	cases := map[string]struct {
		text string
		want error
	}{
		"one endless line":            {"data: x", ErrEventTooLarge},
		"one endless comment":         {":", ErrEventTooLarge},
		"an endless event":            {"data: x\n", ErrEventTooLarge},
		"an endless event, CR":        {"data:\r", ErrEventTooLarge},
		"fields without end":          {"id: 1\n", ErrEventTooLarge},
		"a million tiny events":       {"data: x\n\n", ErrManyEvents},
		"a million events of nothing": {"\n", ErrManyEvents},
	}
	for name, tc := range cases {
		in := &endless{text: tc.text}
		e := NewEventReader(in, limit)
		e.MaxEvents = 10_000
		if _, err := events(e); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if in.read > 3*limit || len(e.lines.buf) > 4*limit {
			t.Errorf("%s: %d bytes read, buffer of %d", name, in.read, len(e.lines.buf))
		}
	}
	e := NewEventReader(iotest.ErrReader(nil), limit) // gives nothing, for ever
	if _, err := e.Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

func TestAHeadThatTellsNothingIsNotLookedAtAgainAndAgain(t *testing.T) {
	t.Parallel()
	judged := map[int]bool{}
	var e *EventReader
	in := &chunked{err: io.EOF}
	for range 1000 {
		in.pieces = append(in.pieces, bytes.Repeat([]byte("x"), 1000))
	}
	e = NewEventReader(io.MultiReader(strings.NewReader(`data: {"id":"`), readerFunc(func(p []byte) (int, error) {
		judged[e.judged] = true
		return in.Read(p)
	})), 2_000_000)
	if _, err := e.Next(); err != nil {
		t.Fatal(err)
	}
	if len(judged) > 6 { // at 0, 64, 128, 256, 512 and 1024 KiB
		t.Errorf("judged at %d sizes", len(judged))
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestALargeEventDoesNotKeepItsMemory(t *testing.T) {
	t.Parallel()
	large := "data: " + strings.Repeat("x", 500_000) + "\n\n"
	e := NewEventReader(strings.NewReader(large+"data: a\n\n"), 1<<20)
	for _, want := range []int{500_000, 1} {
		if got, err := e.Next(); err != nil || len(got.Data) != want {
			t.Fatalf("%d bytes, %v", len(got.Data), err)
		}
	}
	if len(e.lines.buf) > headBytes {
		t.Errorf("a buffer of %d bytes is held", len(e.lines.buf))
	}
}

func TestAnEventIsGivenOutAsSoonAsItIsThere(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		in := inPieces([]byte("data: a"+end), 1000)
		in.err = errors.New("asked for more")
		got, err := NewEventReader(in, 1000).Next()
		if err != nil || string(got.Data) != "a" {
			t.Errorf("%q: %+v, %v", end, got, err)
		}
	}
}

func FuzzEventStream(f *testing.F) {
	for i, seed := range []string{
		"data: a\n\n", "event: x\r\ndata: b\r\r\n", "\ufeffdata:\n\n", ": c\n\ndata: d", "data\n" + "data\n\n", "id: 1\nretry: x\n\n", "\r\n\r\n\n",
		`data: {"result":"0123456789012345678901234567890123456789012345678901234567890123456789"` + "\ndata\r\ndata:}\n\ndata: x\n\n",
		`data: {"a":[{"method":1}],"error":{` + "\rdata:\"\":0123456789012345678901234567890123456789\ndata}\r\n",
	} {
		f.Add([]byte(seed), uint8(i), uint8(3*i))
	}
	const limit, most = 64, 8
	read := func(in io.Reader) ([]event, error) {
		e := NewEventReader(in, limit)
		e.MaxEvents = most
		return events(e)
	}
	f.Fuzz(func(t *testing.T, data []byte, a, b uint8) {
		got, err := read(bytes.NewReader(data))
		if err == nil || len(got) > most {
			t.Fatalf("%d events, error %v", len(got), err)
		}
		for _, e := range got {
			if e.Data == "" || len(e.Data) > limit && kindOfHead([]byte(e.Data)) != responseHead {
				t.Fatalf("an event of %d bytes", len(e.Data))
			}
		}
		for how, in := range map[string]io.Reader{
			"byte by byte": iotest.OneByteReader(bytes.NewReader(data)), "in pieces": inPieces(data, int(a), int(b)),
		} {
			same, sameErr := read(in)
			if diff := cmp.Diff(got, same); diff != "" || fmt.Sprint(err) != fmt.Sprint(sameErr) {
				t.Fatalf("%s: how the stream is cut into reads matters (%v, %v):\n%s", how, err, sameErr, diff)
			}
		}
	})
}
