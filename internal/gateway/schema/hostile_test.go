package schema

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestWhatAFailedCheckTellsIsBounded: each of these was told of hundreds of thousands of problems, or of few of megabytes, or looked at
// long texts and values again and again.
func TestWhatAFailedCheckTellsIsBounded(t *testing.T) {
	refer := func(times int, part string) string {
		return `{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/a"},`, times) + `{}],"$defs":{"a":` + part + `}}`
	}
	text := `"` + strings.Repeat("x", 100) + `"`
	list := `[` + strings.Repeat("0,", 50_000) + `0]`
	for name, tt := range map[string]struct {
		schema, value string
		isOver        bool // takes too long, as it shall be told
	}{
		"what is required, by many":         {refer(5000, `{"required":["`+strings.Repeat(`a","`, 20_000)+`b"]}`), `{}`, false},
		"what is required and there":        {refer(5000, `{"required":["`+strings.Repeat(`a","`, 20_000)+`a"]}`), `{"a":1}`, true},
		"what depends, by many":             {refer(5000, `{"dependentRequired":{"a":["`+strings.Repeat(`b","`, 20_000)+`b"]}}`), `{"a":1}`, false},
		"a type that is said again":         {refer(5000, `{"type":["`+strings.Repeat(`null","`, 15_000)+`null"]}`), `1`, false},
		"a long list of values":             {refer(5000, `{"not":{"enum":[`+list+`]}}`), list[:len(list)-2] + `1]`, true},
		"a long text that is counted":       {refer(9000, `{"maxLength":9999999}`), `"` + strings.Repeat("ü", 500_000) + `"`, true},
		"alternatives that fail, and again": {refer(9000, `{"anyOf":[{"required":["a","b","c","d","e","f","g"]}]}`), `{}`, false},
		"a large pattern on a long text":    {`{"pattern":"(?:x?x?x?){1,900}y$"}`, `"` + strings.Repeat("x", 1_000_000) + `"`, true},
		"a large pattern on many texts":     {`{"items":{"pattern":"(?:x?x?x?){0,900}y$|x"}}`, `[` + strings.Repeat(text+`,`, 10_000) + `""]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			err = s.Validate(json.RawMessage(tt.value), "v")
			runtime.ReadMemStats(&after)
			t.Logf("%s, %d bytes, %.200v", time.Since(began), after.TotalAlloc-before.TotalAlloc, err)
			if err == nil || errors.Is(err, errBudget) != tt.isOver || len(err.Error()) > 4096 {
				t.Errorf("got %.400v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 256*mebibyte {
				t.Errorf("%d bytes were allocated", took)
			}
			if took := time.Since(began); took > 30*time.Second { // it takes one or two, and else minutes
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestLargePatternsThatAreSoonDoneAreNoMatterForTheBudget(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"items":{"pattern":"^.{1,1000}$"}}`))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("aü", 495)
	if err := s.Validate(json.RawMessage(`["`+strings.Repeat(text+`","`, 50)+text+`"]`), "v"); err != nil {
		t.Error(err)
	}
	err = s.Validate(json.RawMessage(`["`+strings.Repeat(text+`","`, 50)+text+strings.Repeat("b", 11)+`"]`), "v")
	if want := "[50]: must match the pattern ^.{1,1000}$"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLargePatternsAreMatchedAFewAtATime: else each call had its own working memory for one.
func TestLargePatternsAreMatchedAFewAtATime(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"pattern":"^(?:x{0,999}y|x{5,999}z)$"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(json.RawMessage(`"xxxx"`), "v"); err == nil { // and it is compiled from then on
		t.Fatal("it has no match")
	}
	for range cap(matching) {
		matching <- struct{}{}
	}
	const calls = 20
	ended := make(chan error, calls)
	for range calls {
		go func() { ended <- s.Validate(json.RawMessage(`"xxxx"`), "v") }()
	}
	small, err := Compile(json.RawMessage(`{"pattern":"^x{1,100}$"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := small.Validate(json.RawMessage(`"xxxx"`), "v"); err != nil {
		t.Errorf("a small one: %v", err)
	}
	for range 10_000 { // time enough for each of them to end, if it were not for the others
		runtime.Gosched()
	}
	select {
	case err := <-ended:
		t.Fatalf("one ended while there were others: %v", err)
	default:
	}
	for range cap(matching) {
		<-matching
	}
	for range calls {
		if err := <-ended; err == nil || errors.Is(err, errBudget) {
			t.Errorf("got %v", err)
		}
	}
}
