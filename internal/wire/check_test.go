package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestStrictJSON(t *testing.T) {
	t.Parallel()
	limits := Limits{Depth: 3, Members: 3}
	cases := map[string]struct {
		text string
		want error
	}{
		"nested beyond the limit": {`[[[1]],{"a":{"b":[]}}]`, ErrTooDeep},
		"nested to the limit":     {`[[[1]],{"a":{"b":2}}]`, nil},
		"members at the limit":    {`{"a":1,"b":2,"c":3}`, nil},
		"members over it":         {`{"a":1,"b":2,"c":3,"d":4}`, ErrManyMembers},
		"long array":              {`[1,2,3,4,5,6,7]`, nil},
		"white space":             {" \t\r\n{ } \n", nil},
		"form feed":               {"\f{}", ErrSyntax},
		"byte order mark":         {"\ufeff{}", ErrSyntax},
		"nothing":                 {"", ErrSyntax},
		"only white space":        {" \n", ErrSyntax},
		"two values":              {"{}{}", ErrSyntax},
		"trailing comma":          {"[1,]", ErrSyntax},
		"trailing comma, object":  {`{"a":1,}`, ErrSyntax},
		"missing comma":           {"[1 2]", ErrSyntax},
		"missing colon":           {`{"a" 1}`, ErrSyntax},
		"missing value":           {`{"a":}`, ErrSyntax},
		"bare key":                {`{a:1}`, ErrSyntax},
		"wrong bracket":           {`[1}`, ErrSyntax},
		"unclosed":                {`{"a":[1`, ErrSyntax},
		"unclosed text":           {`"abc`, ErrSyntax},
		"NUL":                     {"\"a\x00b\"", ErrSyntax},
		"NUL far in a text":       {"\"" + strings.Repeat("a", 100) + "\x00\"", ErrSyntax},
		"line feed in text":       {"\"a\nb\"", ErrSyntax},
		"NUL after the end":       {"{}\x00", ErrSyntax},
		"bad escape":              {`"\x41"`, ErrSyntax},
		"short escape":            {`"\u12"`, ErrSyntax},
		"bad digit in an escape":  {`"\u12g4"`, ErrSyntax},
		"lone backslash":          {`"\`, ErrSyntax},
		"bad UTF-8":               {"\"\xc3\x28\"", ErrSyntax},
		"surrogates as UTF-8":     {"\"\xed\xa0\x80\"", ErrSyntax},
		"leading zero":            {"01", ErrSyntax},
		"plus":                    {"+1", ErrSyntax},
		"lone minus":              {"-", ErrSyntax},
		"no fraction":             {"1.", ErrSyntax},
		"no exponent":             {"1e", ErrSyntax},
		"hexadecimal":             {"0x10", ErrSyntax},
		"NaN":                     {"NaN", ErrSyntax},
		"too big":                 {"1e400", ErrSyntax},
		"tiny":                    {"1e-400", nil},
		"numbers":                 {"[0,-0,1.5e+3,1E2,-12.25]", nil},
		"many digits":             {strings.Repeat("9", 300), nil},
		"too many digits":         {strings.Repeat("9", 400), ErrSyntax},
		"far too many digits":     {"0." + strings.Repeat("0", 5000), ErrSyntax},
		"wrong word":              {"trie", ErrSyntax},
		"words":                   {"[true,false,null]", nil},
	}
	for name, tc := range cases {
		for check, f := range map[string]func([]byte, Limits) error{
			"Check":       func(b []byte, l Limits) error { _, err := Check(b, l); return err },
			"CheckSyntax": func(b []byte, l Limits) error { _, err := CheckSyntax(b, l); return err },
		} {
			if err := f([]byte(tc.text), limits); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("%s, %s: %v, want %v", check, name, err, tc.want)
			}
		}
	}
}

func TestTheSameKeyTwiceIsRefusedAtEveryLevel(t *testing.T) {
	t.Parallel()
	many := func(n, twice int) string {
		var b strings.Builder
		b.WriteString("{")
		for i := range n {
			fmt.Fprintf(&b, `"key %d":{"x":[]},`, i)
		}
		fmt.Fprintf(&b, `"key %d":0}`, twice)
		return b.String()
	}
	cases := map[string]struct {
		text string
		want error
	}{
		"at the top":                     {`{"a":1,"b":2,"a":3}`, ErrDuplicateKey},
		"within":                         {`[{"x":{"a":1,"b":2,"a":3}}]`, ErrDuplicateKey},
		"after a nested object":          {`{"a":{"b":1},"c":{"b":1},"a":1}`, ErrDuplicateKey},
		"the second escaped":             {`{"a":1,"\u0061":2}`, ErrDuplicateKey},
		"the first escaped":              {`{"\u0061":1,"a":2}`, ErrDuplicateKey},
		"escaped in two ways":            {`{"\u002f":1,"\/":2}`, ErrDuplicateKey},
		"both as a pair":                 {`{"\ud83d\ude00":1,"😀":2}`, ErrDuplicateKey},
		"halves of pairs":                {`{"\ud800":1,"\udfff":2}`, ErrDuplicateKey},
		"empty keys":                     {`{"":1,"":2}`, ErrDuplicateKey},
		"in siblings":                    {`[{"a":1},{"a":2},{"a":{"a":{}}}]`, nil},
		"of other case":                  {`{"a":1,"A":2}`, nil},
		"the last of few":                {many(15, 14), ErrDuplicateKey},
		"the first of just too many":     {many(16, 0), ErrDuplicateKey},
		"the last of just too many":      {many(17, 16), ErrDuplicateKey},
		"the first of many":              {many(5000, 0), ErrDuplicateKey},
		"the last of many":               {many(5000, 4999), ErrDuplicateKey},
		"many, each once":                {many(5000, 5000), nil},
		"many, with escapes":             {strings.Replace(many(5000, 5000), "key 7\"", `\u006bey 8"`, 1), ErrDuplicateKey},
		"many in many":                   {`{"a":` + many(100, 100) + `,"b":` + many(100, 100) + `,"a":1}`, ErrDuplicateKey},
		"deep, after more than are held": {strings.Repeat(`{"a":1,"b":`, 40) + `{"c":1,"d":2,"c":3}` + strings.Repeat("}", 40), ErrDuplicateKey},
		"NUL in a key":                   {`{"method\u0000":1}`, ErrKey},
		"NUL in a nested key":            {`{"a":[{"\u0000":1}]}`, ErrKey},
		"NUL in a text":                  {`{"a":"\u0000"}`, nil},
	}
	for name, tc := range cases {
		_, err := Check([]byte(tc.text), DefaultLimits)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if _, err := CheckSyntax([]byte(tc.text), DefaultLimits); err != nil {
			t.Errorf("%s: the syntax is refused: %v", name, err)
		}
	}
}

func TestALimitOfZeroIsTheDefault(t *testing.T) {
	t.Parallel()
	nested := func(depth int) []byte { return []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)) }
	if _, err := Check(nested(DefaultLimits.Depth), Limits{}); err != nil {
		t.Error(err)
	}
	if _, err := Check(nested(DefaultLimits.Depth+1), Limits{}); !errors.Is(err, ErrTooDeep) {
		t.Errorf("a level too deep: %v", err)
	}
	if _, err := Check(make([]byte, DefaultLimits.Bytes+1), Limits{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a byte too long: %v", err)
	}
}

// TestHostileTextIsRefusedForItsSize is attack B15: what would cost a reader much is refused before it does.
func TestHostileTextIsRefusedForItsSize(t *testing.T) {
	t.Parallel()
	var keys strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&keys, `"%x":0,`, i)
	}
	cases := map[string]struct {
		text string
		want error
	}{
		"100,000 levels":       {strings.Repeat(`{"a":[`, 50_000), ErrTooDeep},
		"a million members":    {"{" + keys.String() + `"z":0}`, ErrManyMembers},
		"a number out of hand": {`{"a":1e400}`, ErrSyntax},
	}
	for name, tc := range cases {
		if _, err := Parse([]byte(tc.text), Limits{Bytes: 64 << 20}); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}
