// Package route compiles what an MCPAgent is granted into the routing table of its gateway, and what the gateways learned into a
// verdict for each tool. It is pure: objects in, tables and sentences out.
package route

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// MaxTableBytes is the size of the largest table that Compile makes: what a ConfigMap holds, less room for its metadata.
const MaxTableBytes = table.MaxBytes - 16<<10

// Input is what a table depends on.
type Input struct {
	Agent *mcpv1alpha1.MCPAgent
	// Servers and Tools are those granted objects of the agent's namespace that exist, by name.
	Servers map[string]*mcpv1alpha1.MCPServer
	Tools   map[string]*mcpv1alpha1.MCPTool
	// Schemas are what the ConfigMaps of schema.configMapRef hold, by the name of the MCPTool.
	Schemas map[string]SchemaText
	// Issuer and Keys are the cluster's issuer of ServiceAccount tokens, and its JSON Web Key Set. Empty while they are not known.
	Issuer string
	Keys   json.RawMessage
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain string
	// AllowPrivate lets the endpoints of MCPTools, and issuers, be at private addresses.
	AllowPrivate bool
	// Written is the table that was last written for the agent; nil if none was, or it is not known. See NeedsWritten.
	Written *table.Table
	// Mounted are the objects that the pods of the agent's gateway mount now, LetIn the names of the MCPServers at which a policy of the
	// agent's own lets that gateway in now.
	Mounted []desired.Mount
	LetIn   []string

	// keysProblem is why there are no Keys.
	keysProblem error
}

// SchemaText is the content of the key that an MCPTool's schema.configMapRef names: JSON or YAML with the members input and output.
type SchemaText struct {
	Text string
	// Problem says in a sentence why there is no Text, such as that the ConfigMap does not exist.
	Problem string
}

// Output is a table, and what comes with it.
type Output struct {
	// Table is accepted by table.Parse. Its revision is a digest of its content.
	Table *table.Table
	// JSON is Table as it is to be written.
	JSON []byte
	// Mounts are what the files that the table names are mounted from, and what is mounted already for granted tools that it does not have
	// for now, sorted by kind and name.
	Mounts []desired.Mount
	// Definitions are the names of the ConfigMaps that the table names, sorted.
	Definitions []string
	// Reach is where the table has the gateway connect to.
	Reach desired.Reach
	// Origins say what each of the table's backends is, in the same order.
	Origins []Origin
	// Verdicts are on what is granted and has no backend.
	Verdicts []mcpv1alpha1.EffectiveTool
	// LetsNobodyIn says, of Withdraw, that nobody may call: no caller is let in by what was written and by the specification too, or no table
	// can say who is, and so nothing is served.
	LetsNobodyIn bool
}

// Origin is what a backend is made of.
type Origin struct {
	// Backend is its name in the table.
	Backend string
	// Source is the object, as in EffectiveTool.
	Source string
	// Generation is that of an MCPTool, 0 of an MCPServer: each scaling of a server makes another one, and no tool differs.
	Generation int64
	// Tool is the name of its one tool, if it has just one by its nature.
	Tool string
	// Note is why it does not serve, as the object itself has it; empty if it knows no reason.
	Note string
}

// ErrKeysUnknown says that the cluster's issuer or keys are not known (yet), and that the agent's callers need them.
var ErrKeysUnknown = errors.New("the issuer and the keys of the cluster's ServiceAccount tokens are not known yet")

// InvalidError is what the author of an MCPAgent, or of an MCPTool, has to mend.
type InvalidError struct{ Message string }

func (e *InvalidError) Error() string { return e.Message }

func invalid(format string, args ...any) *InvalidError {
	return &InvalidError{fmt.Sprintf(format, args...)}
}

// Compile makes the table of an agent. What is wrong with one thing that is granted costs that thing only, and is told in
// Output.Verdicts. The error is an *InvalidError if the agent itself has to be mended, or ErrKeysUnknown.
func Compile(in Input) (Output, error) {
	in.settleKeys()
	files := files{}
	frame, err := frameOf(in, files)
	if err != nil {
		return Output{}, err
	}
	c := newCompiler(in, frame, files)
	c.reach.issuers(frame.Auth.OIDC, in.AllowPrivate)
	for _, g := range grantsOf(in.Agent) {
		c.add(g)
	}
	return c.finish()
}

// newCompiler returns one that adds backends to a frame.
func newCompiler(in Input, frame *table.Table, files files) *compiler {
	frame.Revision = revisionOf(frame) // as long as the one that it gets in the end
	return &compiler{Input: in, files: files, forbidden: map[mounted]map[string]bool{}, out: Output{Table: frame}, room: MaxTableBytes - len(encode(frame))}
}

// compiler gathers what the grants come to.
type compiler struct {
	Input

	out         Output
	files       files
	reach       reach
	definitions []string
	// room is how many bytes the table may still grow by.
	room int
	// awaits says that the last edit of a tool is to be judged in a moment, forbidden are the files that must not be sent.
	awaits    bool
	forbidden files
	// withdraws says that MCPServers are granted as it was written, less what is not granted any more.
	withdraws bool
	// isShut says that nothing is served, since no table can say that nobody may call.
	isShut bool
}

// add compiles one grant. The table takes its backend only if it would take it alone and has room for it, so that no grant spoils the
// others: were a table refused as a whole, what it withdraws would stay granted by the one before.
func (c *compiler) add(g grant) {
	found, refused := c.compile(g)
	size := len(encode(found.backend)) + len(",")
	if refused == nil {
		if err := checkAlone(found.backend); err != nil {
			refused = &refusal{mcpv1alpha1.VerdictInvalid, err.Error()}
		} else if size > c.room {
			refused = &refusal{mcpv1alpha1.VerdictInvalid, fmt.Sprintf("the routing table has %d bytes of room left, and it needs %d: "+
				"grant fewer tools to one agent, or shorten their schemas and descriptions", c.room, size)}
		}
	}
	if refused != nil {
		c.files.addAll(found.files)
		c.refuse(g, found.tool, refused)
		return
	}
	c.room -= size
	c.out.Table.Backends = append(c.out.Table.Backends, found.backend)
	c.out.Origins = append(c.out.Origins, Origin{
		Backend: found.backend.Name, Source: g.source(), Generation: c.generation(g), Tool: found.tool, Note: line(found.note, maxReason),
	})
	c.files.addAll(found.files)
	c.reach.addAll(&found, c.AllowPrivate)
	for _, file := range toolFiles(&found.backend) {
		c.definitions = append(c.definitions, file.ConfigMap)
	}
}

// refuse tells why a grant has no backend.
func (c *compiler) refuse(g grant, tool string, refused *refusal) {
	c.out.Verdicts = append(c.out.Verdicts, mcpv1alpha1.EffectiveTool{
		Name: tool, Source: g.source(), SourceGeneration: c.generation(g), Verdict: refused.verdict, Reason: line(refused.reason, maxReason),
	})
}

// generation is that of an MCPTool; see Origin.
func (c *compiler) generation(g grant) int64 {
	if tool := c.Tools[g.name]; g.isTool && tool != nil {
		return tool.Generation
	}
	return 0
}

func (c *compiler) finish() (Output, error) {
	out, t := c.out, c.out.Table
	if c.awaits { // the pods are replaced once, when the edit is judged, and not a second time for what it gives up
		c.files.addAll(allOf(c.Mounted).without(c.forbidden).without(c.givenUp()))
	}
	out.Mounts, out.Reach = c.files.mounts(), c.reach.sorted()
	out.Definitions = slices.Compact(slices.Sorted(slices.Values(c.definitions)))
	t.Revision = ""
	t.Revision = revisionOf(t)
	out.JSON = encode(t)
	if _, err := table.Parse(out.JSON); err != nil {
		return Output{}, invalid("%s", words(err))
	}
	return out, nil
}

func revisionOf(t *table.Table) string { return digestOf(encode(t)) }

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// grant is one object that an agent uses.
type grant struct {
	isTool bool
	name   string
	// server is how an MCPServer is granted.
	server mcpv1alpha1.AgentServer
}

// grantsOf lists what an agent is granted in the order of its specification, each once.
func grantsOf(agent *mcpv1alpha1.MCPAgent) []grant {
	var all []grant
	if ref := agent.Spec.ServerRef; ref != nil {
		all = append(all, grant{name: ref.Name, server: mcpv1alpha1.AgentServer{ObjectName: *ref}})
	}
	for _, server := range agent.Spec.Servers {
		all = append(all, grant{name: server.Name, server: server})
	}
	for _, tool := range agent.Spec.Tools {
		all = append(all, grant{isTool: true, name: tool.Name})
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(g grant) bool {
		again := seen[g.source()]
		seen[g.source()] = true
		return again
	})
}

// backend is the name of its backend.
func (g grant) backend() string {
	if g.isTool {
		return desired.ToolBackend(g.name)
	}
	return desired.ServerBackend(g.name)
}

// source is the value of EffectiveTool.Source.
func (g grant) source() string {
	kind := "server/"
	if g.isTool {
		kind = "tool/"
	}
	return kind + shortened(g.name, maxSource-len(kind))
}

// compiled is what a grant comes to.
type compiled struct {
	backend table.Backend
	files   files
	// tool is the name of its one tool, if it has just one by its nature. It is set where the grant is refused, too.
	tool string
	note string
	// server is the name of an MCPServer; closed says that it lets in gateways alone.
	server string
	closed bool
}

// refusal says why a grant has no backend.
type refusal struct {
	verdict mcpv1alpha1.ToolVerdict
	reason  string
}

func (c *compiler) compile(g grant) (compiled, *refusal) {
	if g.isTool {
		return c.compileTool(g)
	}
	return c.compileServer(g)
}

// checkAlone says what the table has against a backend, in its words.
func checkAlone(b table.Backend) error {
	t := &table.Table{Version: table.Version, Auth: table.Auth{Type: table.AuthNone}, Backends: []table.Backend{b}}
	if _, err := table.Parse(encode(t)); err != nil {
		return invalid("%s", words(err))
	}
	return nil
}

// fieldNames are the table's names of fields, and the API's.
var fieldNames = strings.NewReplacer(
	"backends[0].toolset.http[0].header[", "http.headers[",
	"backends[0].toolset.http[0].definition.", "",
	"backends[0].toolset.http[0].", "http.",
	"backends[0].toolset.postgres.definition.", "",
	"backends[0].toolset.postgres.params[", "postgres.parameters[",
	"backends[0].toolset.postgres.host", "endpoint",
	"backends[0].toolset.postgres.port", "endpoint",
	"backends[0].toolset.postgres.database", "endpoint",
	"backends[0].toolset.postgres.", "postgres.",
	"backends[0].url", "endpoint",
	"backends[0].credential", "auth",
	"backends[0].caFile", "caBundle",
	"backends[0].clientCertificate", "auth",
	"backends[0].", "",
	"endpoint.publicURL", "gateway.publicURL",
	"endpoint.allowedHosts", "gateway.allowedHosts",
	"endpoint.allowedOrigins", "gateway.allowedOrigins",
	"endpoint.instructions", "gateway.instructions",
	".caFile", ".caBundle",
)

// plain puts what a gateway, or the compiler of documents, says of one tool's definition into words of its author.
var plain = strings.NewReplacer("the table is refused: ", "", "http[0].definition.", "", "http[0].header[", "http.headers[", "http[0].", "http.")

// Plain leaves out of a sentence about a definition that it is in a table, and says its fields as an MCPTool has them.
func Plain(text string) string { return plain.Replace(text) }

// words are the first problems of a table, by the API's names of fields.
func words(err error) string {
	const most = 5
	problems, more := []string{err.Error()}, 0
	if refused, ok := errors.AsType[*table.InvalidError](err); ok {
		problems, more = refused.Problems, refused.More
	}
	if len(problems) > most {
		problems, more = problems[:most], more+len(problems)-most
	}
	text := fieldNames.Replace(strings.Join(problems, "; "))
	if more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// encode writes a table, or a part of one. It cannot fail: what is kept raw in it was checked or is replaced by null, which the table
// refuses.
func encode(part any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(part); err != nil {
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
}

func toolFiles(b *table.Backend) []table.ToolFile {
	if b.Toolset == nil {
		return nil
	}
	return b.Toolset.Files
}

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
