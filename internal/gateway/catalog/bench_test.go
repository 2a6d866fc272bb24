package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// large makes sources as large as those of a server for dashboards: 1.3 KB a tool.
func large(tb testing.TB, backends, tools int) []Source {
	tb.Helper()
	var properties []string
	for i := range 8 {
		properties = append(properties, fmt.Sprintf(`"argument%d":{"type":"string","description":%q}`, i, strings.Repeat("word ", 20)))
	}
	members := `,"description":"d","annotations":{"readOnlyHint":true}`
	schema := `{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`
	var sources []Source
	for i := range backends {
		var list []string
		for j := range tools {
			list = append(list, fmt.Sprintf(`{"name":"tool_%d","inputSchema":%s%s}`, j, schema, members))
		}
		b := table.Backend{Name: fmt.Sprintf("b%d", i), Prefix: fmt.Sprintf("b%d_", i), Tools: table.ToolPolicy{Deny: []string{"*secret*"}}}
		sources = append(sources, source(tb, b, map[string]string{"tools/list": `{"tools":[` + strings.Join(list, ",") + `]}`}))
	}
	return sources
}

var sizes = map[string][2]int{"20x81": {20, 81}, "20x500": {20, 500}}

func BenchmarkCompile(b *testing.B) {
	for name, size := range sizes {
		sources := large(b, size[0], size[1])
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Compile(sources, 0)
			}
		})
	}
}

func BenchmarkFetch(b *testing.B) {
	s := large(b, 1, 81)[0]
	v := Compile([]Source{{Backend: table.Backend{Name: "b"}, Catalog: s.Catalog}}, 0)
	list, err := v.List(nil, Tools, "", backend.Legacy, nil)
	if err != nil {
		b.Fatal(err)
	}
	ch := answers(map[string]string{"tools/list": string(list)})
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Fetch(b.Context(), ch, Options{Capabilities: json.RawMessage(`{"tools":{}}`)}); err != nil {
			b.Fatal(err)
		}
		ch.asked = ch.asked[:0]
	}
}

func BenchmarkListPage(b *testing.B) {
	for name, size := range sizes {
		v := Compile(large(b, size[0], size[1]), 0)
		for era, client := range map[string]backend.Era{"legacy": backend.Legacy, "modern": backend.Modern} {
			b.Run(name+"/"+era, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.List(nil, Tools, "", client, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	v := Compile(large(b, 20, 500), 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := v.Tool("b7_tool_250"); !ok {
			b.Fatal("no route")
		}
	}
}

func BenchmarkFilterTools(b *testing.B) {
	s := large(b, 1, 81)[0]
	list, err := Compile([]Source{{Backend: table.Backend{Name: "b"}, Catalog: s.Catalog}}, 0).List(nil, Tools, "", backend.Legacy, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := FilterTools(list, s.Backend, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRoutingAllocatesNothing holds the hot path to its price.
func TestRoutingAllocatesNothing(t *testing.T) {
	v := Compile(large(t, 2, 50), 0)
	if n := testing.AllocsPerRun(100, func() { v.Tool("b1_tool_7") }); n > 0 {
		t.Errorf("a route takes %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = v.List(nil, Tools, "", backend.Modern, nil) }); n > 1 {
		t.Errorf("a page takes %v allocations", n)
	}
}
