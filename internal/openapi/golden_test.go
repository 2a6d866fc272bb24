package openapi

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A case is a document and what becomes of it.
func TestDocumentsBecomeWhatTheGoldenFilesShow(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.*")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, input := range inputs {
		name, _, _ := strings.Cut(filepath.Base(input), ".in.")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			result, err := compile(t.Context(), document, Options{DocumentURL: "https://docs.example.com/openapi/pets.yaml"})
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, filepath.Join("testdata", name+".out.json"), result)
			checkServed(t, result)
		})
	}
}

func checkGolden(t *testing.T, golden string, result Result) {
	t.Helper()
	var got strings.Builder
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(result); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the result differs from %s (-want +got); -update rewrites it:\n%s", golden, diff)
	}
}

// checkServed makes sure that a gateway takes all of it.
func checkServed(t *testing.T, result Result) {
	t.Helper()
	content, err := Encode(result.Tools)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := table.ParseTools(content)
	if err != nil {
		t.Fatalf("a gateway would refuse it: %v", err)
	}
	if len(tools) != len(result.Names) {
		t.Errorf("%d tools, %d names", len(tools), len(result.Names))
	}
}
