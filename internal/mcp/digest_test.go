package mcp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestADigestCostsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("0,", 500) + "0"
	for name, text := range map[string]string{
		"arrays":  strings.Repeat("[", 20) + payload + strings.Repeat("]", 20),
		"objects": strings.Repeat(`{"a":`, 20) + "[" + payload + "]" + strings.Repeat("}", 20),
	} {
		tool := json.RawMessage(`{"name":"a","inputSchema":` + text + `}`)
		if _, err := NewDigester(10_000).tool(tool); !errors.Is(err, wire.ErrBudget) {
			t.Errorf("%s over the budget: %v", name, err)
		}
		if _, err := NewDigester(40_000).tool(tool); err != nil {
			t.Errorf("%s within it: %v", name, err)
		}
	}
}

func TestADigestCoversTheDefinitionAlone(t *testing.T) {
	t.Parallel()
	digest := func(text string) [32]byte {
		t.Helper()
		sum, err := NewDigester(1 << 20).tool(json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	base := digest(`{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":true}}`)
	same := digest(`{"annotations":{ "readOnlyHint" : true },"outputSchema":{},"_meta":{"v":2},"icons":[],` +
		`"name":"\u0061","title":"A","inputSchema":{"x":1,"type":"object"},"description":"d"}`)
	if base != same {
		t.Error("order, white space or members that define nothing change the digest")
	}
	for _, text := range []string{
		`{"name":"b","title":"A","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"B","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"A","description":"e","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","x":2},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":false}}`,
	} {
		if digest(text) == base {
			t.Errorf("the same digest for %s", text)
		}
	}
}
