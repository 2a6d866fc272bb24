// Package openapi compiles an OpenAPI document, 3.0 or 3.1, to the tools of a gateway.
//
// Documents are foreign. Compiling one takes bounded time and memory, fetches nothing, and gives the same tools for the same document
// and options. An operation that cannot be expressed is left out with a reason; it never costs the others.
package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/gateway/schema"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const (
	// MaxTools is how many tools a document may become.
	MaxTools = 512

	// maxDefinition bounds the definition of one tool, in bytes.
	maxDefinition = 128 << 10

	// maxDepth bounds how deep a definition is nested: what gateways take.
	maxDepth = 64

	// maxToolDescription bounds what a model is told of a tool, in bytes.
	maxToolDescription = 4096
)

// Options say what to make of a document.
type Options struct {
	// Endpoint replaces what the document says of servers; empty: its first server.
	Endpoint string `json:"endpoint,omitempty"`
	// DocumentURL is where the document was found; relative URLs in it are relative to that. Empty: there must be none.
	DocumentURL string `json:"documentURL,omitempty"`
	// Prefix is put before the tools' names.
	Prefix string `json:"prefix,omitempty"`
	// Include chooses operations, all by default.
	Include []mcpv1alpha1.OperationMatch `json:"include,omitempty"`
	// Exclude leaves out what Include chose.
	Exclude []mcpv1alpha1.OperationMatch `json:"exclude,omitempty"`
	// MaxResponseBytes bounds a response of each tool; 0 is the gateway's default.
	MaxResponseBytes int `json:"maxResponseBytes,omitempty"`
}

// Result is what became of a document.
type Result struct {
	// Tools are in the order of their paths and methods.
	Tools []table.HTTPTool `json:"tools"`
	// Names are those of Tools.
	Names []string `json:"names"`
	// BaseURL is where the operations are.
	BaseURL string `json:"baseURL"`
	// Title is the document's.
	Title string `json:"title,omitempty"`
	// Skipped says of each entry of include and exclude that matches no operation that it does not, and then of each operation that was
	// left out, or of which something was, why.
	Skipped []string `json:"skipped,omitempty"`
}

type compiler struct {
	doc  *document
	opts Options
	base string

	// requests and responses are the schemas as they are there.
	requests, responses *library

	// unmatched are the entries of include and exclude that match no operation.
	unmatched []entry

	result Result
}

// Compile makes tools of a document. The error is a sentence about the document; ErrTime if it takes too long, and the cause of ctx if that
// ended.
func Compile(ctx context.Context, content []byte, opts Options) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, ErrTime)
	defer cancel()
	return compile(ctx, content, opts)
}

func compile(ctx context.Context, content []byte, opts Options) (Result, error) {
	doc, err := open(ctx, content)
	if err != nil {
		return Result{}, err
	}
	c := &compiler{doc: doc, opts: opts, requests: newLibrary(doc, "readOnly"), responses: newLibrary(doc, "writeOnly")}
	if c.base, err = c.baseURL(); err != nil {
		return Result{}, err
	}
	c.result.BaseURL, c.result.Title = c.base, line(text(members(doc.root["info"])["title"]), maxTitle)
	operations, err := c.operations()
	if err != nil {
		return Result{}, err
	}
	if n := len(operations); n > MaxTools {
		return Result{}, fmt.Errorf("%d of its operations are chosen, the limit is %d: choose fewer by include and exclude", n, MaxTools)
	}
	if err := name(&doc.budget.clock, operations, opts.Prefix); err != nil {
		return Result{}, err
	}
	for _, op := range operations {
		c.add(op)
		if err := doc.budget.clock.now(); err != nil {
			return Result{}, err
		}
	}
	if len(c.result.Tools) == 0 {
		return Result{}, fmt.Errorf("no tool can be made of it: %s", c.nothing())
	}
	var notes []string
	for _, e := range c.unmatched {
		notes = append(notes, e.String())
	}
	c.result.Skipped = append(notes, c.result.Skipped...)
	return c.result, nil
}

// nothing says why there is no tool.
func (c *compiler) nothing() string {
	if len(c.result.Skipped) > 0 {
		return c.result.Skipped[0]
	}
	if n := len(c.opts.Include); n > 0 && len(c.unmatched) >= n && !c.unmatched[n-1].isExclude {
		return c.unmatched[0].String()
	}
	return "it has no operations, or include and exclude choose none"
}

func (c *compiler) skip(op operation, err error) {
	c.result.Skipped = append(c.result.Skipped, fmt.Sprintf("%s: %s", op, err))
}

// builder makes the tool of one operation.
type builder struct {
	*compiler

	op         operation
	tool       table.HTTPTool
	input      *reader
	properties map[string]any
	required   []string
	notes      []string // what was left out
}

// add makes a tool of an operation, or says why not.
func (c *compiler) add(op operation) {
	b := &builder{compiler: c, op: op, input: &reader{library: c.requests}, properties: map[string]any{}}
	b.tool = table.HTTPTool{Method: op.method, Response: table.Response{MaxBytes: c.opts.MaxResponseBytes}}
	if err := b.build(); err != nil {
		c.skip(op, err)
		return
	}
	for _, note := range b.notes {
		c.skip(op, errors.New(note+", and is left out"))
	}
	c.result.Tools, c.result.Names = append(c.result.Tools, b.tool), append(c.result.Names, op.name)
}

func (b *builder) build() error {
	if b.op.object == nil {
		return errors.New("it is not an object")
	}
	if err := b.elsewhere(b.op); err != nil {
		return err
	}
	parameters, err := b.parameters(b.op)
	if err != nil {
		return err
	}
	if err := b.addParameters(parameters); err != nil {
		return err
	}
	if err := b.addBody(); err != nil {
		return err
	}
	defs, err := b.requests.collect(b.input, maxDefinition)
	if err != nil {
		return err
	}
	input := map[string]any{"type": "object", "properties": b.properties, "additionalProperties": false}
	if len(b.required) > 0 {
		input["required"] = b.required
	}
	if defs != nil {
		input["$defs"] = defs
	}
	if err := b.define(input); err != nil {
		return err
	}
	if b.doc.budget.blind {
		return errBudget
	}
	return checkTool(&b.tool)
}

// define writes the definition that clients are shown.
func (b *builder) define(input map[string]any) error {
	inputSchema, err := encode(input)
	if err != nil {
		return err
	}
	if n := len(inputSchema); n > maxDefinition {
		return fmt.Errorf("its schema has %d bytes, and the limit of its definition is %d", n, maxDefinition)
	}
	if _, err := schema.Compile(inputSchema); err != nil {
		return fmt.Errorf("its schema cannot be used: %s", line(err.Error(), maxTitle))
	}
	definition := map[string]any{"name": b.op.name, "inputSchema": json.RawMessage(inputSchema), "annotations": b.annotations()}
	title := line(text(b.op.object["summary"]), maxTitle)
	if title != "" {
		definition["title"] = title
	}
	if description := b.description(title); description != "" {
		definition["description"] = description
	}
	if output := b.outputSchema(); output != nil {
		outputSchema, err := encode(output)
		if err != nil {
			return err
		}
		_, wrong := schema.Compile(outputSchema)
		if _, deep := wire.Check(outputSchema, wire.Limits{Depth: maxDepth - 1}); wrong == nil && deep == nil { // else it is worth nothing, and the tool is
			definition["outputSchema"] = json.RawMessage(outputSchema)
		}
	}
	if b.tool.Definition, err = encode(definition); err != nil {
		return err
	}
	if n := len(b.tool.Definition); n > maxDefinition {
		return fmt.Errorf("its definition has %d bytes, the limit is %d", n, maxDefinition)
	}
	if _, err := wire.Check(b.tool.Definition, wire.Limits{Depth: maxDepth}); err != nil {
		return fmt.Errorf("its definition cannot be shown to clients: %w", err)
	}
	return nil
}

// description tells a model what the operation does.
func (b *builder) description(title string) string {
	description := paragraphs(text(b.op.object["description"]), maxToolDescription)
	switch {
	case description == "":
		description = title
	case title != "" && len(title)+len(description) < maxToolDescription:
		description = title + "\n\n" + description
	}
	if truth(b.op.object["deprecated"]) {
		description = cut(strings.TrimSpace("Deprecated. "+description), maxToolDescription)
	}
	return description
}

// annotations follow from the method (RFC 9110, section 9.2).
func (b *builder) annotations() map[string]bool {
	method := b.op.method
	readOnly := method == "GET" || method == "HEAD"
	return map[string]bool{
		"readOnlyHint":    readOnly,
		"destructiveHint": !readOnly, // what a POST does, no document tells
		"idempotentHint":  readOnly || method == "PUT" || method == "DELETE",
		"openWorldHint":   true,
	}
}

// checkTool says what the gateway would find wrong with a tool.
func checkTool(tool *table.HTTPTool) error {
	content, err := Encode([]table.HTTPTool{*tool})
	if err != nil {
		return err
	}
	if _, err := table.ParseTools(content); err != nil {
		return fmt.Errorf("it cannot be called: %s", line(err.Error(), maxTitle))
	}
	return nil
}

// Encode writes tools as the content of a table.ToolFile.
func Encode(tools []table.HTTPTool) ([]byte, error) {
	content, err := encode(map[string]any{"http": tools})
	if err != nil {
		return nil, err
	}
	if n := len(content); n > table.MaxToolFileBytes {
		return nil, fmt.Errorf("its tools have %d bytes, the limit is %d: choose fewer by include and exclude", n, table.MaxToolFileBytes)
	}
	return content, nil
}

// encode writes JSON as short as it can be.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
