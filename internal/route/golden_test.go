package route

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A case is two files: the objects of one namespace, and what the agent among them comes to. A document without a kind changes the rest
// of the input.
func TestTablesAreWhatTheGoldenFilesShow(t *testing.T) {
	t.Parallel()
	for name, in := range goldenInputs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := golden(t, in)
			file := filepath.Join("testdata", name+".out.json")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: write it with -update", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("it differs from %s (-want +got); -update rewrites it:\n%s", file, diff)
			}
		})
	}
}

func TestNoGoldenFileIsLeftOver(t *testing.T) {
	t.Parallel()
	inputs := goldenInputs(t)
	outputs, err := filepath.Glob("testdata/*.out.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		if _, ok := inputs[strings.TrimSuffix(filepath.Base(output), ".out.json")]; !ok {
			t.Errorf("%s belongs to no .in.yaml", output)
		}
	}
}

func TestEveryTableIsTakenByTheGateway(t *testing.T) {
	t.Parallel()
	tables := 0
	for name, in := range goldenInputs(t) {
		out, err := Compile(in)
		if err != nil {
			continue
		}
		tables++
		parsed, err := table.Parse(out.JSON)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(out.Table, parsed); diff != "" {
			t.Errorf("%s: what the gateway reads is not what was compiled (-compiled +read):\n%s", name, diff)
		}
	}
	if tables == 0 {
		t.Error("no golden case has a table")
	}
}

func TestCompilingIsDeterministicAndChangesNoInput(t *testing.T) {
	t.Parallel()
	for name, in := range goldenInputs(t) {
		agent := in.Agent.DeepCopy()
		first := golden(t, in)
		for range 20 { // the order of a map's keys is another one in most of them
			again := in
			again.Servers, again.Tools, again.Schemas = maps.Clone(in.Servers), maps.Clone(in.Tools), maps.Clone(in.Schemas)
			if got := golden(t, again); got != first {
				t.Fatalf("%s: two runs differ:\n%s", name, cmp.Diff(first, got))
			}
		}
		if diff := cmp.Diff(agent, in.Agent); diff != "" {
			t.Errorf("%s: the agent was changed:\n%s", name, diff)
		}
	}
}

func TestTheRevisionNamesTheContent(t *testing.T) {
	t.Parallel()
	in := goldenInputs(t)["one-server-is-shown-as-it-is"]
	revision := func(change func(*Input)) string {
		t.Helper()
		in := in
		in.Agent, in.Servers = in.Agent.DeepCopy(), map[string]*mcpv1alpha1.MCPServer{"web": in.Servers["web"].DeepCopy()}
		change(&in)
		out, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		return out.Table.Revision
	}
	base := revision(func(*Input) {})
	if got := revision(func(in *Input) {
		in.Servers["web"].Status.ReadyReplicas, in.Servers["web"].ResourceVersion, in.Servers["web"].Spec.Image = 7, "9", "other"
	}); got != base {
		t.Error("the revision changes with what changes nothing for clients")
	}
	if got := revision(func(in *Input) { in.Servers["web"].Spec.Port = 9000 }); got == base {
		t.Error("the revision stays though the server listens elsewhere")
	}
}

// options are what a golden case can change beside objects.
type options struct {
	AllowPrivate bool   `json:"allowPrivate"`
	Issuer       string `json:"issuer"`
	Keys         string `json:"keys"`
	// Mounted are as in Input.
	Mounted []desired.Mount `json:"mounted"`
}

// goldenInputs returns the inputs of testdata by the name of their case.
func goldenInputs(t *testing.T) map[string]Input {
	t.Helper()
	names, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no case in testdata: %v", err)
	}
	inputs := map[string]Input{}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		inputs[strings.TrimSuffix(filepath.Base(name), ".in.yaml")] = goldenInput(t, name, raw)
	}
	return inputs
}

func goldenInput(t *testing.T, file string, raw []byte) Input {
	t.Helper()
	in := Input{
		Servers: map[string]*mcpv1alpha1.MCPServer{}, Tools: map[string]*mcpv1alpha1.MCPTool{}, Schemas: map[string]SchemaText{},
		ClusterDomain: "cluster.local",
	}
	o := options{
		Issuer: "https://kubernetes.default.svc.cluster.local",
		Keys:   `{ "keys": [ {"kty": "RSA", "kid": "a", "alg": "RS256", "n": "AQAB", "e": "AQAB"} ] }`,
	}
	content := map[string]string{}
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		var head struct {
			Kind string `json:"kind"`
		}
		into := any(&o)
		agent, server, tool, configMap := &mcpv1alpha1.MCPAgent{}, &mcpv1alpha1.MCPServer{}, &mcpv1alpha1.MCPTool{}, &corev1.ConfigMap{}
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if head.Kind != "" {
			into = map[string]any{"MCPAgent": agent, "MCPServer": server, "MCPTool": tool, "ConfigMap": configMap}[head.Kind]
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch head.Kind {
		case "MCPAgent":
			in.Agent = agent
		case "MCPServer":
			in.Servers[server.Name] = server
		case "MCPTool":
			in.Tools[tool.Name] = tool
		case "ConfigMap":
			for key, value := range configMap.Data {
				content[configMap.Name+"/"+key] = value
			}
		}
	}
	in.AllowPrivate, in.Issuer, in.Keys, in.Mounted = o.AllowPrivate, o.Issuer, json.RawMessage(o.Keys), o.Mounted
	for name, tool := range in.Tools {
		if schema := tool.Spec.Schema; schema != nil && schema.ConfigMapRef != nil {
			text, ok := content[schema.ConfigMapRef.Name+"/"+string(schema.ConfigMapRef.Key)]
			in.Schemas[name] = SchemaText{Text: text}
			if !ok {
				in.Schemas[name] = SchemaText{Problem: "there is no ConfigMap '" + schema.ConfigMapRef.Name + "'"}
			}
		}
	}
	return in
}

// golden is what an input comes to, as it is kept in a file.
func golden(t *testing.T, in Input) string {
	t.Helper()
	out, err := Compile(in)
	shown := any(struct {
		Table       *table.Table                `json:"table"`
		Mounts      []desired.Mount             `json:"mounts,omitempty"`
		Definitions []string                    `json:"definitions,omitempty"`
		Reach       desired.Reach               `json:"reach"`
		Origins     []Origin                    `json:"origins,omitempty"`
		Verdicts    []mcpv1alpha1.EffectiveTool `json:"verdicts,omitempty"`
	}{out.Table, out.Mounts, out.Definitions, out.Reach, out.Origins, out.Verdicts})
	if err != nil {
		var refused *InvalidError
		shown = map[string]any{"error": err.Error(), "mend": errors.As(err, &refused)}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(shown); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(text.Bytes(), 0) {
		t.Fatal("NUL in the output")
	}
	return text.String()
}
