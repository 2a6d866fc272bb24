package wire

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestEventsAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	w := NewEventWriter(recorder)
	long := `{"a":` + "\r\n\t" + `"` + strings.Repeat("x", 40_000) + `\n"` + "\n}"
	for _, write := range []func() error{
		func() error { return w.Event([]byte(`{"a":"\n"}`)) },
		w.Comment,
		func() error { return w.Event([]byte("{\r\n\"a\":\n1}")) },
		func() error { return w.EventFrom(strings.NewReader(long)) },
		func() error { return w.EventFrom(iotest.OneByteReader(strings.NewReader("{\n}"))) },
	} {
		recorder.Flushed = false
		if err := write(); err != nil || !recorder.Flushed {
			t.Errorf("error %v, flushed %v", err, recorder.Flushed)
		}
	}
	want := map[string][]string{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}, "X-Accel-Buffering": {"no"}}
	if diff := cmp.Diff(want, map[string][]string(recorder.Result().Header)); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	got, err := events(NewEventReader(recorder.Body, 1<<20))
	wantEvents := []event{
		message(`{"a":"\n"}`), message(`{  "a": 1}`), message(strings.NewReplacer("\r", " ", "\n", " ").Replace(long)), message("{ }"),
	}
	if diff := cmp.Diff(wantEvents, got); diff != "" || !errors.Is(err, io.EOF) {
		t.Errorf("error %v, events (-want +got):\n%s", err, diff)
	}
}

func TestAnEventWhoseSourceBreaksIsNotEnded(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	broken := errors.New("broken")
	err := NewEventWriter(recorder).EventFrom(io.MultiReader(strings.NewReader(`{"a":1`), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || strings.HasSuffix(recorder.Body.String(), "\n") {
		t.Errorf("error %v after %q", err, recorder.Body)
	}
}

func TestAClientThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	w := NewEventWriter(failingWriter{httptest.NewRecorder(), gone})
	for what, err := range map[string]error{"Event": w.Event([]byte("{}")), "Comment": w.Comment(), "EventFrom": w.EventFrom(strings.NewReader("{}"))} {
		if !errors.Is(err, gone) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

type failingWriter struct {
	*httptest.ResponseRecorder

	err error
}

func (w failingWriter) Write([]byte) (int, error)       { return 0, w.err }
func (w failingWriter) WriteString(string) (int, error) { return 0, w.err }
