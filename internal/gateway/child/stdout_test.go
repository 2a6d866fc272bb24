package child

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLinesThatAreNoMessagesAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	began := time.Now()
	for name, channel := range channels(r) {
		before := r.Status().NoiseLines
		noise := "hello\x1b[31m\n\n   \n[]\n\"text\"\n{}\n{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}} trailing\n\x00\u202e\n"
		noise += strings.Repeat("y", 100_000) + "\n"
		if got := r.call(channel, "noise", textArg(noise)); got != "after the noise" {
			t.Errorf("%s: got %q", name, got)
		}
		if n := r.Status().NoiseLines - before; n < 7 {
			t.Errorf("%s: %d lines were counted", name, n)
		}
	}
	logs := r.logs.String()
	if n := strings.Count(logs, "no MCP message"); n == 0 || n > 1+int(time.Since(began)/noiseEvery) {
		t.Errorf("noise was logged %d times", n)
	}
	if strings.Contains(logs, "\x1b") || strings.Contains(logs, strings.Repeat("y", 300)) {
		t.Error(logs)
	}
}

func TestAMessageMayComeInPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	got := newRecorder()
	if err := r.session(`{}`).Call(r.context(), tool("1", "pieces", ""), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"jsonrpc":"2.0","id":1,"result":{"text":"in pieces"}}`, got.response); diff != "" {
		t.Error(diff)
	}
}

func TestResponsesUpToTheLimitPassAndLongerOnesFailAlone(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	r := newRig(t, script{Legacy: true, Modern: true}, func(o *Options) { o.LineLimit = limit })
	for name, channel := range channels(r) {
		pid := r.call(channel, "pid", "")
		got := newRecorder()
		if err := channel.Call(r.context(), tool(`"a"`, "huge", fmt.Sprintf(`{"n":%d}`, limit-100)), got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.HasSuffix(got.response, `"more":{"id":"2"}},"jsonrpc":"2.0","id":"a"}`) || len(got.response) < limit-100 {
			t.Errorf("%s: %d bytes came, ending in %s", name, len(got.response), got.response[max(0, len(got.response)-100):])
		}
		_, err := callTool(r.context(), channel, "1", "huge", fmt.Sprintf(`{"n":%d}`, 8*limit))
		wantClass(t, err, "TooLarge", true)
		for _, kind := range []string{"hugeRequest", "hugeNotification"} {
			if got := r.call(channel, kind, fmt.Sprintf(`{"n":%d}`, 2*limit)); got == "" {
				t.Errorf("%s: %s", name, kind)
			}
		}
		if again := r.call(channel, "pid", ""); again != pid {
			t.Errorf("%s: the process was restarted", name)
		}
	}
}

func TestATooLongLineWithoutAnIDEndsTheProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, func(o *Options) { o.LineLimit = 1 << 16 })
	channel := r.session(`{}`)
	_, err := callTool(r.context(), channel, "1", "hugeWithoutID", `{"n":200000}`)
	wantClass(t, err, "ChildExited", true)
	if got := r.call(channel, "echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestAMalformedResponseFailsItsCallAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel := r.session(`{}`)
	_, err := callTool(r.context(), channel, "1", "malformed", "")
	wantClass(t, err, "NotMCP", true)
	for _, name := range []string{"twice", "stranger"} {
		r.call(channel, name, "")
	}
	if got := r.call(channel, "echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestStderrGoesToTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	r.call(r.session(`{}`), "stderr", textArg("one\ntwo\n"+strings.Repeat("z", 3*stderrBytes)+"\nlast\n"))
	eventually(t, "all of it is there", func() bool { return strings.HasSuffix(r.stderr.String(), "last\n") })
	if !strings.HasPrefix(r.stderr.String(), "one\ntwo\n") || strings.Count(r.stderr.String(), "z") != 3*stderrBytes {
		t.Error(r.stderr.String())
	}
}

// endless is a line of n bytes.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	n := min(e.n, len(p))
	for i := range n {
		p[i] = 'x'
	}
	if e.n -= n; e.n == 0 {
		p[n-1] = '\n'
	}
	return n, nil
}

func TestALineOverTheLimitIsNotHeld(t *testing.T) {
	lines := newLineReader(&endless{64 << 20}, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	line, long, err := lines.next()
	runtime.ReadMemStats(&after)
	if line != nil || long == nil || err != nil {
		t.Errorf("line of %d bytes, head %v, %v", len(line), long, err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
		t.Errorf("%d bytes were allocated", allocated)
	}
	if _, _, err := lines.next(); !errors.Is(err, io.EOF) {
		t.Errorf("then %v", err)
	}
}

func TestTheHeadOfABrokenMessageIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, id, method string }{
		"id first":                {`{"jsonrpc":"2.0","id":7,"result":{"id":8}}`, "7", ""},
		"id last":                 {`{"result":{"id":8,"method":"x","a":[{"id":9}]},"id":"seven"}`, `"seven"`, ""},
		"a request":               {`{ "method" : "m" , "id" : 7 }`, "7", `"m"`},
		"escapes":                 {`{"a\"":"}\\","b":"\"id\":1,","id":7}`, "7", ""},
		"cut off":                 {`{"id":7,"result":{"text":"`, "7", ""},
		"key in another case":     {`{"ID":7}`, "", ""},
		"id within":               {`{"result":{"id":7}}`, "", ""},
		"no object":               {`["id",7]`, "", ""},
		"a string that looks it":  {`{"a":"{\"id\":7}"}`, "", ""},
		"value is an object":      {`{"id":{"id":7}}`, "", ""},
		"no JSON at all":          {`id: 7, "id" 7 }{ "id":`, "", ""},
		"more after it":           {`{"id":7} {"id":8}`, "7", ""},
		"a long key and a string": {`{"` + strings.Repeat("k", 1000) + `":"` + strings.Repeat(`v\"`, 1000) + `","id":7}`, "7", ""},
	} {
		for _, step := range []int{1, 3, 1 << 20} {
			var h head
			for rest := []byte(c.line); len(rest) > 0; {
				n := min(step, len(rest))
				h.write(rest[:n])
				rest = rest[n:]
			}
			if string(h.id) != c.id || string(h.method) != c.method {
				t.Errorf("%s, in steps of %d: id %s method %s", name, step, h.id, h.method)
			}
		}
	}
}

func TestWhatIsLoggedOfNoiseIsPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ä":                   "plain ä",
		"a\x1b[31mb\r\x00":          "a·[31mb··",
		"\xff\u202e\u200b":          "···",
		strings.Repeat("x", 300):    strings.Repeat("x", 200) + "…",
		strings.Repeat("\xff", 300): strings.Repeat("·", 100) + "…",
	} {
		if got := printable([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
