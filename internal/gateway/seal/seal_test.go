package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/mounted"
)

const (
	purpose = "session"
	subject = "https://issuer.example alice"
)

// keyOf is a key that is the same in every run.
func keyOf(letter byte) []byte { return bytes.Repeat([]byte{letter}, minKey) }

func folder(tb testing.TB, files mounted.Files) string {
	tb.Helper()
	path := tb.TempDir()
	for name, content := range files {
		write(tb, path, name, content)
	}
	return path
}

func write(tb testing.TB, folder, name string, content []byte) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
		tb.Fatal(err)
	}
}

func load(tb testing.TB, path string) *Keyring {
	tb.Helper()
	k, err := Load(path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func sealed(tb testing.TB, k *Keyring, plaintext string) string {
	tb.Helper()
	s, err := k.Seal(purpose, subject, []byte(plaintext), time.Now().Add(time.Hour))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestAnyReplicaOpensWhatAnotherSealed(t *testing.T) {
	path := folder(t, mounted.Files{"a": keyOf('a')})
	one, two := load(t, path), load(t, path)
	for _, plaintext := range []string{"", "x", strings.Repeat("x", MaxPlaintext)} {
		s := sealed(t, one, plaintext)
		if got, err := two.Open(purpose, subject, s); err != nil || string(got) != plaintext {
			t.Errorf("%d bytes: got %d, %v", len(plaintext), len(got), err)
		}
		if len(s) > MaxLength {
			t.Errorf("%d bytes became %d, more than MaxLength", len(plaintext), len(s))
		}
		for _, c := range s {
			if c <= ' ' || c > '~' || strings.ContainsRune(`"%/+=&?#`, c) {
				t.Fatalf("%q is not safe in a header and in a URL", c)
			}
		}
	}
}

func TestSealingTwiceGivesTwoStrings(t *testing.T) {
	k := Ephemeral()
	one, two := sealed(t, k, "x"), sealed(t, k, "x")
	if one == two {
		t.Error("it does not: a nonce was used twice")
	}
}

func TestTheContentDoesNotShow(t *testing.T) {
	s := sealed(t, Ephemeral(), "canary-canary-canary")
	data, err := base64.RawURLEncoding.DecodeString(s[strings.LastIndexByte(s, '.')+1:])
	if err != nil || bytes.Contains(data, []byte("canary")) {
		t.Errorf("%q, %v", data, err)
	}
}

func TestWhatIsNotExactlyAsItWasSealedIsInvalid(t *testing.T) {
	path := folder(t, mounted.Files{"a": keyOf('a'), "b": keyOf('b'), "current": []byte("a\n")})
	k := load(t, path)
	good := sealed(t, k, "x")
	expired, err := k.Seal(purpose, subject, []byte("x"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := sealed(t, load(t, folder(t, mounted.Files{"a": keyOf('c')})), "x")
	data := good[len("1.a."):]
	for name, c := range map[string]struct{ purpose, subject, sealed string }{
		"another purpose":              {"state", subject, good},
		"another caller":               {purpose, "https://issuer.example bob", good},
		"nobody":                       {purpose, "", good},
		"purpose and subject shifted":  {purpose + subject[:1], subject[1:], good},
		"expired":                      {purpose, subject, expired},
		"sealed with another key":      {purpose, subject, elsewhere},
		"under another key's name":     {purpose, subject, "1.b." + data},
		"under an unknown key's name":  {purpose, subject, "1.c." + data},
		"under the name of no key":     {purpose, subject, "1.current." + data},
		"another version":              {purpose, subject, "2.a." + data},
		"no version":                   {purpose, subject, "a." + data},
		"no key":                       {purpose, subject, "1." + data},
		"a bit changed":                {purpose, subject, good[:20] + flipped(good[20]) + good[21:]},
		"the last bits, which are pad": {purpose, subject, good[:len(good)-1] + padded(good[len(good)-1])},
		"cut":                          {purpose, subject, good[:len(good)-4]},
		"longer":                       {purpose, subject, good + "AAAA"},
		"a line feed":                  {purpose, subject, good[:20] + "\n" + good[20:]},
		"a line feed at the end":       {purpose, subject, good + "\r\n"},
		"a space":                      {purpose, subject, good + " "},
		"padding":                      {purpose, subject, good + "="},
		"only a head":                  {purpose, subject, "1.a."},
		"only a nonce":                 {purpose, subject, "1.a." + data[:32]},
		"never issued":                 {purpose, subject, "3f0c8b52-1d4e-4a58-9a34-7d1f6a3e0c11"},
		"empty":                        {purpose, subject, ""},
		"huge":                         {purpose, subject, "1.a." + strings.Repeat("A", 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := k.Open(c.purpose, c.subject, c.sealed); !errors.Is(err, ErrInvalid) || err.Error() != ErrInvalid.Error() || got != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if got, err := k.Open(purpose, subject, good); err != nil || string(got) != "x" {
		t.Errorf("the string itself: %q, %v", got, err)
	}
}

func flipped(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// padded is the next letter of the alphabet, which differs in the lowest bit.
func padded(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)^1])
}

func TestWhatIsTooLongIsNotEvenDecoded(t *testing.T) {
	k := load(t, folder(t, mounted.Files{"a": keyOf('a')}))
	long := "1.a." + strings.Repeat("A", MaxLength)
	if got := testing.AllocsPerRun(100, func() { _, _ = k.Open(purpose, subject, long) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func TestTooMuchIsNotSealed(t *testing.T) {
	if _, err := Ephemeral().Seal(purpose, subject, make([]byte, MaxPlaintext+1), time.Now()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestASealedStringEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := Ephemeral()
		s, err := k.Seal(purpose, subject, []byte("x"), time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second) //nolint:forbidigo // in a bubble
		if _, err := k.Open(purpose, subject, s); err != nil {
			t.Errorf("before: %v", err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		if _, err := k.Open(purpose, subject, s); err == nil {
			t.Error("after: opened")
		}
	})
}

// There is no default key: whoever knew it could seal as well.
func TestWithoutAGoodKeyNothingStarts(t *testing.T) {
	for name, files := range map[string]mounted.Files{
		"empty folder":           {},
		"only a choice":          {"current": []byte("a")},
		"short key":              {"a": keyOf('a')[1:]},
		"one of two is short":    {"a": keyOf('a'), "b": []byte("x")},
		"huge key":               {"a": make([]byte, maxKey+1)},
		"choice of nothing":      {"a": keyOf('a'), "current": []byte("b")},
		"choice of itself":       {"a": keyOf('a'), "current": []byte("current")},
		"choice of a path":       {"a": keyOf('a'), "current": []byte("../a")},
		"empty choice":           {"a": keyOf('a'), "current": nil},
		"a name with a space":    {"a b": keyOf('a')},
		"a name that is too far": {strings.Repeat("a", maxID+1): keyOf('a')},
	} {
		t.Run(name, func(t *testing.T) {
			path := folder(t, files)
			k, err := Load(path, nil)
			if err == nil || k != nil {
				t.Fatal("it starts")
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not say where: %v", err)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("it starts without a folder")
	}
}

func TestTwoProcessesWithoutAFolderShareNothing(t *testing.T) {
	if _, err := Ephemeral().Open(purpose, subject, sealed(t, Ephemeral(), "x")); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestKeysAreChangedWithoutABreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := folder(t, mounted.Files{"2025": keyOf('a')})
		var told []error
		k, err := Load(path, func(err error) { told = append(told, err) })
		if err != nil {
			t.Fatal(err)
		}
		step := func(change func(), wantKey string) string {
			change()
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			s := sealed(t, k, "x")
			if !strings.HasPrefix(s, "1."+wantKey+".") {
				t.Errorf("sealed %q, want with key %s", s, wantKey)
			}
			return s
		}
		old := step(func() {}, "2025")
		step(func() { write(t, path, "current", []byte("2025")); write(t, path, "2026", keyOf('b')) }, "2025")
		fresh := step(func() { write(t, path, "current", []byte("2026\n")) }, "2026")
		for _, s := range []string{old, fresh} {
			if _, err := k.Open(purpose, subject, s); err != nil {
				t.Errorf("while both keys are there: %v", err)
			}
		}
		step(func() { _ = os.Remove(filepath.Join(path, "2025")) }, "2026")
		if _, err := k.Open(purpose, subject, old); !errors.Is(err, ErrInvalid) {
			t.Errorf("after the old key is gone: %v", err)
		}
		if len(told) > 0 {
			t.Errorf("told %v", told)
		}
		step(func() { _ = os.Remove(filepath.Join(path, "2026")) }, "2026")
		if _, err := k.Open(purpose, subject, fresh); err != nil || len(told) != 1 {
			t.Errorf("keys that are not fit are not used: %v, told %v", err, told)
		}
		step(func() { _ = os.Remove(filepath.Join(path, "current")); write(t, path, "a", keyOf('c')) }, "a")
	})
}

func TestTheLastNameSealsUnlessOneIsChosen(t *testing.T) {
	files := mounted.Files{"10": keyOf('a'), "9": keyOf('b'), ".hidden": keyOf('c')}
	if s := sealed(t, load(t, folder(t, files)), "x"); !strings.HasPrefix(s, "1.9.") {
		t.Errorf("sealed %q", s)
	}
	files["current"] = []byte("10")
	if s := sealed(t, load(t, folder(t, files)), "x"); !strings.HasPrefix(s, "1.10.") {
		t.Errorf("sealed %q", s)
	}
}

func TestAKeyIDMayHaveDots(t *testing.T) {
	k := load(t, folder(t, mounted.Files{"a.b.c": keyOf('a')}))
	if _, err := k.Open(purpose, subject, sealed(t, k, "x")); err != nil {
		t.Error(err)
	}
}

func TestNoWayOfFormattingShowsAKey(t *testing.T) {
	k := load(t, folder(t, mounted.Files{"a": []byte("canary-canary-canary-canary-canary")}))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, got := range []string{fmt.Sprintf(verb, k), fmt.Sprintf(verb, *k)} {
			if strings.Contains(got, "canary") || strings.Contains(got, "63616e617279") {
				t.Errorf("%s: %s", verb, got)
			}
		}
	}
}

// good was sealed with key "a" of the letter a, for the purpose and the subject of these tests, until the year 2200.
const good = "1.a.fz5Ol_CXjOyyE01AE14kHI-212fAEqY7VSzFGR1GvlSd-BbQILGCrxzV8SbwGwiLvQ"

// Clients keep sealed strings while the gateway is replaced by a newer one.
func TestWhatAnOlderGatewaySealedIsOpened(t *testing.T) {
	k := load(t, folder(t, mounted.Files{"a": keyOf('a')}))
	if got, err := k.Open(purpose, subject, good); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzOpen(f *testing.F) {
	k := load(f, folder(f, mounted.Files{"a": keyOf('a')}))
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add("1.a.")
	f.Add("1..")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := k.Open(purpose, subject, s)
		if s == good {
			if err != nil || string(got) != "x" {
				t.Errorf("the string itself: %q, %v", got, err)
			}
			return
		}
		if !errors.Is(err, ErrInvalid) || got != nil {
			t.Errorf("%q gave %q, %v", s, got, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	k := Ephemeral()
	b.ReportAllocs()
	for b.Loop() {
		_ = sealed(b, k, "x")
	}
}

func BenchmarkOpen(b *testing.B) {
	k := load(b, folder(b, mounted.Files{"a": keyOf('a')}))
	s := sealed(b, k, strings.Repeat("x", 200))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Open(purpose, subject, s); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTheLongestThatIsSealedFitsIntoAHeader(t *testing.T) {
	t.Parallel()
	const header, proxy = len("Mcp-Session-Id: \r\n"), 8 << 10
	sealed, err := Ephemeral().Seal(purpose, subject, make([]byte, MaxPlaintext), time.Now().Add(time.Hour))
	if longest := len(sealed) + 64; err != nil || header+longest > proxy { // the longest name of a key
		t.Errorf("%d bytes, %v", longest, err)
	}
}
