package route

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Limits of one definition, which are those of the gateway's catalog.
const (
	maxDefinition  = 256 << 10
	maxDescription = 32 << 10
	digestBudget   = 64 << 20
)

// Definition is the one tool that an MCPTool of type http or postgres is; of the other types it is empty.
type Definition struct {
	// HTTP and Postgres are the tool for the routing table; one of them is nil.
	HTTP     *table.HTTPTool
	Postgres *table.PostgresTool
	// Name is what clients see, Digest that of its definition, as a gateway tells it.
	Name, Digest string
}

// ToolDefinition says what tool an MCPTool is, and that a gateway would take it: its endpoint, its credential and its schema fit
// together. Of the types openapi and mcp it checks what there is without asking anybody. The error is an *InvalidError. Whether
// the endpoint may be at a private address is not looked at.
func ToolDefinition(tool *mcpv1alpha1.MCPTool, schema SchemaText) (Definition, error) {
	definition, err := definitionOf(tool, schema)
	if err != nil {
		return Definition{}, err
	}
	if tool.Spec.Type == mcpv1alpha1.ToolOpenAPI {
		// What the document comes to is not looked at here.
		tool = tool.DeepCopy()
		tool.Status.Definitions = &mcpv1alpha1.ToolDefinitions{
			ObjectName: mcpv1alpha1.ObjectName{Name: "any"}, Key: "any", SHA256: strings.Repeat("0", 2*sha256.Size), Endpoint: "https://any.invalid",
		}
	}
	found, err := toolBackendOf(tool, definition, true)
	if err == nil {
		err = checkAlone(found.backend)
	}
	if err != nil {
		return Definition{}, err
	}
	return definition, nil
}

// Digest is that of a tool's definition, as gateways and the operator's prober tell it.
func Digest(definition json.RawMessage) (string, error) {
	members := []string{"annotations", "description", "inputSchema", "name", "outputSchema", "title"}
	values, err := wire.Pick(definition, members...)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if err := wire.NewCanonical(sum, digestBudget).Object(members, values); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// definitionOf makes the tool of an MCPTool.
func definitionOf(tool *mcpv1alpha1.MCPTool, text SchemaText) (Definition, error) {
	spec := &tool.Spec
	if loneTool(tool) == "" {
		return Definition{}, checkRest(spec)
	}
	schemas, err := schemasOf(spec.Schema, text)
	if err != nil {
		return Definition{}, err
	}
	annotations, err := annotationsOf(spec)
	if err != nil {
		return Definition{}, err
	}
	out := Definition{Name: tool.Name}
	if spec.Type == mcpv1alpha1.ToolHTTP {
		out.HTTP, err = httpTool(spec, schemas.input)
	} else {
		out.Postgres, err = postgresTool(spec, schemas.input)
		if schemas.output == nil {
			schemas.output = json.RawMessage(rows)
		}
		err = cmp.Or(err, checkRows(schemas.output))
	}
	if err != nil {
		return Definition{}, err
	}
	raw, err := describe(tool, schemas, annotations)
	if err != nil {
		return Definition{}, err
	}
	if out.HTTP != nil {
		out.HTTP.Definition = raw
	} else {
		out.Postgres.Definition = raw
	}
	if out.Digest, err = Digest(raw); err != nil {
		return Definition{}, invalid("schema: it cannot be digested: %s", err)
	}
	return out, nil
}

// checkRest refuses a tool that is not of a known type, or lacks the member of its type.
func checkRest(spec *mcpv1alpha1.MCPToolSpec) error {
	switch spec.Type {
	case mcpv1alpha1.ToolMCP:
		return nil
	case mcpv1alpha1.ToolOpenAPI:
		if spec.OpenAPI == nil {
			return invalid("openapi must be given with type openapi")
		}
		return nil
	case mcpv1alpha1.ToolHTTP, mcpv1alpha1.ToolPostgres:
	}
	return invalid("type must be http, openapi, postgres or mcp")
}

// describe writes the tool as clients are shown it.
func describe(tool *mcpv1alpha1.MCPTool, s schemas, annotations hints) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  hints           `json:"annotations"`
	}{tool.Name, tool.Spec.Title, tool.Spec.Description, s.input, s.output, annotations})
	if err != nil {
		return nil, invalid("the tool cannot be written as JSON: %s", err)
	}
	raw, err := wire.Check(out.Bytes(), wire.Limits{Bytes: maxDefinition})
	if err != nil {
		return nil, invalid("the definition of the tool, with its schemas: %s (the limits are %d bytes and %d levels)",
			err, maxDefinition, wire.DefaultLimits.Depth)
	}
	if len(wire.Field(raw, "description")) > maxDescription {
		return nil, invalid("description: must have at most %d bytes as JSON", maxDescription)
	}
	return raw, nil
}

// hints are the annotations of MCP.
type hints struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// annotationsOf fills in the defaults, which follow from what the tool does.
func annotationsOf(spec *mcpv1alpha1.MCPToolSpec) (hints, error) {
	asked := mcpv1alpha1.ToolAnnotations{}
	if spec.Annotations != nil {
		asked = *spec.Annotations
	}
	isHTTP, method := spec.Type == mcpv1alpha1.ToolHTTP, methodOf(spec.HTTP)
	h := hints{ReadOnly: !isHTTP && !given(asked.Destructive, false) || isHTTP && (method == "GET" || method == "HEAD"), OpenWorld: isHTTP}
	h.ReadOnly = given(asked.ReadOnly, h.ReadOnly)
	h.Destructive = given(asked.Destructive, isHTTP && !h.ReadOnly)
	if h.ReadOnly && h.Destructive {
		return hints{}, invalid("annotations: readOnly and destructive must not both be true")
	}
	h.Idempotent = given(asked.Idempotent, h.ReadOnly || isHTTP && (method == "PUT" || method == "DELETE"))
	h.OpenWorld = given(asked.OpenWorld, h.OpenWorld)
	return h, nil
}

func given(asked *bool, usual bool) bool {
	if asked == nil {
		return usual
	}
	return *asked
}
