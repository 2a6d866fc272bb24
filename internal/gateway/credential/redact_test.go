package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestSecretsAreFoundAsTheyAreAndAsJSONWritesThem(t *testing.T) {
	pair := base64.StdEncoding.EncodeToString([]byte("ada:" + canary))
	for name, tc := range map[string]struct{ value, text, want string }{
		"nothing":                      {"Bearer " + canary, "hello", "hello"},
		"a token":                      {"Bearer " + canary, "you sent Bearer " + canary + ", " + canary, "you sent Bearer [redacted], [redacted]"},
		"a token in a word":            {"Bearer " + canary, "x" + canary + "y", "x[redacted]y"},
		"a value without a scheme":     {canary, canary, "[redacted]"},
		"the pair of Basic":            {"Basic " + pair, "Basic " + pair, "Basic [redacted]"},
		"the pair of Basic, decoded":   {"Basic " + pair, "ada:" + canary, "ada:[redacted]"},
		"a short password in its pair": {"Basic " + base64.StdEncoding.EncodeToString([]byte("ada:x")), "ada:x, x", "[redacted], x"},
		"a name without a password":    {"Basic " + base64.StdEncoding.EncodeToString([]byte(canary+":")), canary, "[redacted]"},
		"a phrase":                     {"open sesame", "open sesame, sesame", "[redacted], [redacted]"},
		"a short token":                {"Bearer abc", "abc, Bearer abc", "abc, [redacted]"},
		"a word of the protocol":       {"Bearer true", `{"isError":true}`, `{"isError":true}`},
		"a slash, escaped":             {"Bearer ab/cd/ef", `"ab\/cd\/ef ab/cd/ef"`, `"[redacted] [redacted]"`},
		"a plus, by its number":        {"Bearer ab+cd==", `"ab\u002Bcd== ab\u002bcd\u003d\u003d"`, `"[redacted] [redacted]"`},
		"encoded twice":                {"Bearer +/ab", `"{\"a\":\"\\u002b\\/ab\"}"`, `"{\"a\":\"[redacted]\"}"`},
		"quotes":                       {`Bearer "ab"cd"`, `"say \"ab\"cd\""`, `"say [redacted]"`},
		"backslashes":                  {`Bearer a\b\c\d`, `"a\\b\\c\\d"`, `"[redacted]"`},
		"a tab":                        {"Bearer ab\tcd", `"ab\tcd"`, `"[redacted]"`},
		"letters of the world":         {"Bearer пароль", `"пароль \u043f\u0430\u0440\u043e\u043b\u044c"`, `"[redacted] [redacted]"`},
		"what is in two units":         {"Bearer 🔑🔑", `"\ud83d\udd11\uD83D\uDD11 🔑🔑"`, `"[redacted] [redacted]"`},
		"half of it":                   {"Bearer 🔑🔑", `"\ud83d\udd11\uD83D"`, `"\ud83d\udd11\uD83D"`},
		"after an escape":              {"Bearer " + canary, `"a\n` + canary + `"`, `"a\n[redacted]"`},
		"after a backslash":            {"Bearer " + canary, `"a\\` + canary + `"`, `"a\\[redacted]"`},
		"one after another":            {"Bearer " + canary, canary + canary, "[redacted][redacted]"},
		"one that begins twice":        {"Bearer aabaac", "aabaabaac", "aab[redacted]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRedactor(tc.value)
			got, found := r.Redact([]byte(tc.text))
			if diff := cmp.Diff(tc.want, string(got)); diff != "" || found != (tc.want != tc.text) {
				t.Errorf("found %t, -want +got:\n%s", found, diff)
			}
			if json.Valid([]byte(tc.text)) && !json.Valid(got) {
				t.Error("it is JSON no more")
			}
			for how, in := range map[string]io.Reader{
				"whole": strings.NewReader(tc.text), "in bytes": iotest.OneByteReader(strings.NewReader(tc.text)),
				"with its end": iotest.DataErrReader(strings.NewReader(tc.text)),
			} {
				got, err := io.ReadAll(iotest.OneByteReader(r.Reader(in)))
				if diff := cmp.Diff(tc.want, string(got)); diff != "" || err != nil {
					t.Errorf("%s: %v, -want +got:\n%s", how, err, diff)
				}
			}
		})
	}
}

// TestNoCutLetsASecretThrough has a long text with secrets, in reads of every size.
func TestNoCutLetsASecretThrough(t *testing.T) {
	r := NewRedactor("Bearer +"+canary+"/==", "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:lovelace")))
	text := strings.Repeat("x+canary", 9000) + `\u002b` + canary + `\/\u003d=` + strings.Repeat("lovelac", 9000) + "lovelace" + strings.Repeat(`\`, 99)
	want, _ := r.Redact([]byte(text))
	for size := 1; size < 70; size += 3 {
		got, err := io.ReadAll(r.Reader(&pieces{text: text, size: size * 700}))
		if err != nil || !bytes.Equal(got, want) || bytes.Contains(got, []byte("lovelace")) {
			t.Errorf("in pieces of %d: %d bytes of %d, %v", size*700, len(got), len(want), err)
		}
	}
}

// A server knows the credential that it was sent, and may write what takes the longest to look through.
func TestATextThatIsMadeToBeSlowIsNot(t *testing.T) {
	r := NewRedactor("Bearer " + strings.Repeat("@!#+", 1<<10) + "w0rd$")
	for name, part := range map[string]string{"of anchors": "w0rd", "of backslashes before anchors": strings.Repeat(`\`, 60<<10) + "w0rd"} {
		text := []byte(strings.Repeat(part, 256<<10/len(part)))
		begun := time.Now()
		if _, found := r.Redact(text); found || time.Since(begun) > 10*time.Second {
			t.Errorf("a text %s took %s", name, time.Since(begun))
		}
	}
}

// pieces is a reader that brings at most size bytes at once.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(into []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(into[:min(len(into), p.size)], p.text)
	p.text = p.text[n:]
	return n, nil
}

func TestWhatCanBeNoSecretIsNotHeldBack(t *testing.T) {
	r := NewRedactor("Bearer " + canary)
	for text, want := range map[string]string{"hello": "hello", "hello can": "hello ", "hello can ": "hello can ", "hello\\": "hello"} {
		in, out := io.Pipe()
		go func() { _, _ = io.WriteString(out, text) }()
		got := make([]byte, 100)
		n, err := r.Reader(in).Read(got)
		if string(got[:n]) != want || err != nil {
			t.Errorf("of %q it gives %q, %v", text, got[:n], err)
		}
		in.Close()
	}
}

func TestTheBeginningOfASecretIsNotGivenOutWhereReadingFails(t *testing.T) {
	r := NewRedactor("Bearer " + canary)
	broken := errors.New("broken")
	got, err := io.ReadAll(r.Reader(io.MultiReader(strings.NewReader("hello "+canary[:8]), iotest.ErrReader(broken))))
	if string(got) != "hello " || !errors.Is(err, broken) {
		t.Errorf("got %q, %v", got, err)
	}
	if got := r.RedactHead([]byte(canary + " " + canary[:8])); string(got) != "[redacted] " {
		t.Errorf("of a head: %q", got)
	}
}

// Who was sent an older value may still repeat it.
func TestLateValuesOfASourceAreHiddenToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := file(t, "first-value")
		s, err := New(&table.Credential{Type: table.CredentialBearer, ValueFile: path})
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range []string{"first-value", "a\nb", "first-value-and-more", "second-value"} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			if err := s.Apply(http.Header{}); (err != nil) != (content == "a\nb") {
				t.Fatal(err)
			}
		}
		got, _ := s.Redactor().Redact([]byte("first-value second-value first-value-and-more"))
		if string(got) != "[redacted] [redacted] [redacted]" {
			t.Errorf("got %s", got)
		}
	})
}

func TestASourceOfNothingHidesNothing(t *testing.T) {
	s, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	in := strings.NewReader("x")
	if got, found := s.Redactor().Redact([]byte("Bearer")); string(got) != "Bearer" || found || s.Redactor().Reader(in) != io.Reader(in) {
		t.Error("it hides something")
	}
	if got := fmt.Sprintf("%v %+v %#v", NewRedactor(canary), NewRedactor(canary), NewRedactor(canary)); strings.Contains(got, canary) {
		t.Errorf("it shows as %s", got)
	}
}

func BenchmarkRedact(b *testing.B) {
	for name, value := range map[string]string{
		"a plain token": "Bearer sk-0123456789abcdefghijklmnopqrstuvwxyz", "base64": "Bearer q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ+/==",
		"Basic": "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:p@ss w0rd!")),
	} {
		text := []byte(strings.Repeat(`{"type":"text","text":"so they say, \"once\" upon a time in p@p0"},`, 1000))
		b.Run(name, func(b *testing.B) {
			r := NewRedactor(value)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				r.Redact(text)
			}
		})
	}
}
