package mcp

import (
	"strings"
	"testing"
)

func TestForeignTextIsCleaned(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ in, want string }{
		"plain":             {"Grüße, 世界 😀!", "Grüße, 世界 😀!"},
		"line breaks":       {" a\r\nb\n\n\tc  d ", "a b c d"},
		"colours":           {"\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;url\x1b\\y", "red xy"},
		"unfinished colour": {"a\x1b[31", "a"},
		"unfinished title":  {"a\x1b]0;x", "a"},
		"other escapes":     {"a\x1bc\x1b", "ac"},
		"C1 controls":       {"a\u009b31mb\u0085c", "a31mbc"},
		"NUL and bell":      {"a\x00\ab", "ab"},
		"bidi":              {"a\u202egnp.exe\u2066b\u200f\u061c", "agnp.exeb"},
		"invisible":         {"a\u200b\u200d\ufeff\u2060\u00adb\u3164\u115f", "ab"},
		"tags":              {"a\U000e0041\U000e007f\ufe0f", "a"},
		"line separators":   {"a\u2028b\u2029c", "abc"},
		"private use":       {"a\ue000b", "ab"},
		"odd spaces":        {"a\u00a0\u3000b", "a b"},
		"bad UTF-8":         {"a\xff\xc3b", "ab"},
		"too long":          {strings.Repeat("ä", 20), strings.Repeat("ä", 14) + "…"},
	}
	for name, tc := range cases {
		if got := cleanLine(tc.in, 32); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got, want := cleanText("\n# A\u202e \r\n\n  b\tc\x1b[0m\n\n", 100), "# A\n\n  b\tc"; got != want {
		t.Errorf("text of several lines: %q, want %q", got, want)
	}
	for limit := range 8 {
		if got := cut("ääää€€€€", limit); len(got) > limit {
			t.Errorf("cut to %d bytes: %q", limit, got)
		}
	}
}
