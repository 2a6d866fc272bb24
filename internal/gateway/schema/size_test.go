package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"
	"time"
)

const mebibyte = 1 << 20

// properties is a schema with as many properties, each of which is made of its number.
func properties(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `"p%d":%s,`, i, fmt.Sprintf(format, i))
	}
	return `{"type":"object","properties":{` + strings.TrimSuffix(out.String(), ",") + `}}`
}

func TestASchemaThatWouldBeTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	const (
		pattern = "at #/properties/p0/pattern: compiled, the pattern takes "
		whole   = " bytes when it is compiled, and the limit is 8388608: " +
			"cut down its patterns, those that repeat by {n,m} before all, its parts and its lists of values"
	)
	for name, tt := range map[string]struct{ schema, begin, end string }{
		"patterns that repeat":             {properties(3900, `{"type":"string","pattern":"^(a{1,900}){1,1}%d$"}`), "at #/properties/p", whole},
		"patterns that repeat, each other": {properties(200, `{"pattern":"^x%d(a{1,900}){1,1}$"}`), "at #/properties/p", whole},
		"one pattern that repeats on and on": {
			properties(1, `{"pattern":"%d`+strings.Repeat("a{999}", 600)+`"}`), pattern, "and the limit is 4194304: shorten it, and repeat less by {n,m}",
		},
		"classes of Unicode that repeat":   {properties(1, `{"pattern":"^%d[\\p{L}\\p{N}]{1,400}$"}`), pattern, "repeat less by {n,m}"},
		"a class that is given many times": {properties(1, `{"pattern":"%d[`+strings.Repeat(`\\pL`, 1300)+`]"}`), pattern, "repeat less by {n,m}"},
		"ranges without case": {
			properties(1, `{"pattern":"%d(?i)[`+strings.Repeat(`B-\\x{1e942}`, 300)+`]"}`), pattern, "repeat less by {n,m}",
		},
		"parts by themselves": {`{"allOf":[` + strings.Repeat("{},", 80_000) + `{}]}`, "at #/allOf/", "nested deeper than 128 levels"},
		"parts and patterns": {
			`{"allOf":[` + strings.Repeat(`{"anyOf":[{"pattern":"\\pL"},{"enum":[1,2,3,4,5,6]}]},`, 4500) + `{}]}`, "at #/allOf/", whole,
		},
		"values that are small objects": {`{"enum":[` + strings.Repeat(`{"":0},`, 30_000) + `0]}`, "at #/enum: up to here", whole},
		"names of members":              {`{"required":["` + strings.Repeat(`","`, 80_000) + `"]}`, "", ""},
		"a text without end":            {`{"title":"` + strings.Repeat("a", maxText) + `"}`, "it has 262156 bytes, and the limit is 262144", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := time.Now()
			err := Check(json.RawMessage(tt.schema))
			if tt.begin == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.begin) || !strings.HasSuffix(err.Error(), tt.end) {
				t.Errorf("got %.400v", err)
			}
			t.Log(time.Since(before), err)
		})
	}
}

// TestSchemasTakeNoMoreThanIsReckoned compares with what the runtime says.
func TestSchemasTakeNoMoreThanIsReckoned(t *testing.T) {
	class := `[\\p{L}\\p{N}]`
	for name, schema := range map[string]string{
		"parts":                 `{"allOf":[` + strings.Repeat("{},", 15_000) + `{}]}`,
		"properties":            properties(6000, `{"type":"string","minLength":%d}`),
		"small objects":         `{"enum":[` + strings.Repeat(`{"":0},`, 12_000) + `0]}`,
		"lists":                 `{"enum":[` + strings.Repeat(`[],`, 60_000) + `0]}`,
		"numbers":               `{"enum":[` + strings.Repeat(`1,`, 100_000) + `0]}`,
		"names":                 `{"required":["` + strings.Repeat(`","`, 80_000) + `"]}`,
		"a long repetition":     properties(20, `{"pattern":"x%d(a{1,900}){1,1}$"}`),
		"many short ones":       properties(1500, `{"pattern":"^x%d[a-z]{1,4}$"}`),
		"one pass":              properties(10, `{"pattern":"^%d`+class+`{60}$"}`),
		"a class":               properties(100, `{"pattern":"^%d`+class+`{3}$"}`),
		"a class without case":  properties(60, `{"pattern":"(?i)^%d`+class+`[a-z]{30}$"}`),
		"a class of many":       properties(3, `{"pattern":"[%d`+strings.Repeat(`\\pL`, 100)+`]"}`),
		"alternatives":          properties(50, `{"pattern":"^(%d`+strings.Repeat("|ab|c[^d]+", 40)+`)+?$"}`),
		"captures":              properties(50, `{"pattern":"^%d`+strings.Repeat("(a)", 150)+`$"}`),
		"words":                 properties(1, `{"pattern":"(%d\\w+\\s*(?:[.,;:]\\b)?){1,400}"}`),
		"captures that repeat":  properties(1, `{"pattern":"^(%d(a)(b)(c)?(d)*){1,200}$"}`),
		"members by their name": strings.Replace(properties(3000, `{"minLength":%d}`), "properties", "patternProperties", 1),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(schema))
			if err != nil {
				t.Fatal(err)
			}
			before := heap()
			_, root, err := compile(s.raw, true)
			took := heap() - before
			if err != nil || took > s.bytes {
				t.Errorf("it takes %d bytes, reckoned are %d, %v", took, s.bytes, err)
			}
			t.Logf("takes %d, reckoned %d: %.2f", took, s.bytes, float64(took)/float64(s.bytes))
			runtime.KeepAlive(root)
			runtime.KeepAlive(s)
		})
	}
}

// heap is how many bytes are in use once what is not has gone.
func heap() int {
	var stats runtime.MemStats
	for range 3 { // what pools keep goes at the second time
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestOfSchemasThatAreHeldTheTextIsAllThatStays measures the operator, which checks them, and a gateway, which checks values against each.
func TestOfSchemasThatAreHeldTheTextIsAllThatStays(t *testing.T) {
	const tools = 100
	compiled.evict(cacheBytes) // what other tests used
	before := heap()
	schemas := make([]*Schema, tools)
	for i := range schemas {
		raw := json.RawMessage(properties(12, fmt.Sprintf(`{"type":"string","pattern":"^x%d-%%d(a{1,900}){1,1}$"}`, i)))
		if err := Check(raw); err != nil {
			t.Fatal(err)
		}
		var err error
		if schemas[i], err = Compile(raw); err != nil {
			t.Fatal(err)
		}
	}
	if took := heap() - before; took > 4*mebibyte {
		t.Errorf("%d bytes stay of what was only checked", took)
	}
	reckoned := 0
	for i, s := range schemas {
		reckoned += s.bytes
		good := fmt.Sprintf(`{"p0":"x%d-0aaa","p11":"x%d-11a"}`, i, i)
		if err := s.Validate(json.RawMessage(good), "v"); err != nil {
			t.Fatal(err)
		}
		var invalid *InvalidError
		if err := s.Validate(json.RawMessage(`{"p1":"b"}`), "v"); !errors.As(err, &invalid) {
			t.Fatalf("a value that does not fit: %v", err)
		}
	}
	took := heap() - before
	if took > 32*mebibyte {
		t.Errorf("%d bytes stay of schemas that were used", took)
	}
	if reckoned < 4*cacheBytes {
		t.Errorf("they would not take much in any case: %d bytes", reckoned)
	}
	t.Log(took, reckoned)
	runtime.KeepAlive(schemas)
}

// TestPathsOfPartsTakeNothing: each of the parts is below a name of 100 kB, which was copied for each.
func TestPathsOfPartsTakeNothing(t *testing.T) {
	raw := json.RawMessage(`{"properties":{"` + strings.Repeat("n", 100_000) + `":{"allOf":[` + strings.Repeat("{},", 10_000) + `{"type":"no"}]}}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Check(raw)
	runtime.ReadMemStats(&after)
	want := "at #/properties/" + strings.Repeat("n", 200) + "…/allOf/10000/type: it must be a JSON type or a list of them"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64*mebibyte {
		t.Errorf("%d bytes were allocated", took)
	}
}

// FuzzPatternsTakeNoMoreInstructionsThanIsReckoned compares with the compiler of package regexp.
func FuzzPatternsTakeNoMoreInstructionsThanIsReckoned(f *testing.F) {
	for _, seed := range []string{
		"", "a", "^a{1,900}$", "(a{1,900}){1,1}", "(?i)[a-z]+k", `\pL{3,}`, "(a|bc|d*)+?", "((((a?){3}){2,5}){0}){2}", `(?:\b|^){4}|x`, "(?:a*)*",
		"(){0,}", "a{0}b{,3}", "[^\n]|.",
		"(?s).{2,}?(?U)x+", "(?:){100}", "(|a){3}", "x{0,1}{2}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return
		}
		reckoned, _ := measure(parsed)
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(program.Inst); got > reckoned+2 { // one that fails and one that matches are in all
			t.Errorf("%q has %d instructions, reckoned are %d", text, got, reckoned)
		}
	})
}
