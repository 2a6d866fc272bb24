package toolset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// api offers the operations of an HTTP API.
type api struct {
	*Backend

	set        *table.Toolset
	base       *url.URL
	client     *http.Client
	credential interface{ Apply(h http.Header) error }

	mu     sync.Mutex
	loaded []*tool // nil until all files were read
	broken []string
	err    *backend.Error // of the last attempt
}

func newAPI(b *Backend, set *table.Toolset, o Options) (*api, error) {
	u, err := url.Parse(b.config.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an absolute http or https URL without user, query and fragment", b.config.URL)
	}
	return &api{Backend: b, set: set, base: u, client: newClient(b, u, o), credential: o.Credential}, nil
}

// tools reads the files, until that has worked once: their content cannot change.
func (a *api) tools(context.Context) ([]*tool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loaded != nil {
		return a.loaded, nil
	}
	operations := slices.Clone(a.set.HTTP)
	for _, file := range a.set.Files {
		more, why, err := readTools(file)
		if err != nil {
			a.err = a.failure(classDefinition, false, "the file "+file.File+" "+why, err)
			return nil, a.err
		}
		operations = append(operations, more...)
	}
	a.err = nil
	a.loaded = make([]*tool, 0, len(operations))
	for i := range operations {
		a.add(&operations[i])
	}
	return a.loaded, nil
}

// add offers an operation, unless its schemas cannot be used.
func (a *api) add(operation *table.HTTPTool) {
	t, err := newTool(operation.Definition)
	if err == nil && find(a.loaded, t.name) != nil {
		err = fmt.Errorf("its name, %s, is another one's too", t.name)
	}
	if err != nil {
		name := "an operation"
		if t != nil {
			name = t.name
		}
		a.log.Warn("a tool is not offered", "method", operation.Method, "path", operation.Path, "error", err)
		a.broken = append(a.broken, fmt.Sprintf("%s (%s %s): %v", name, operation.Method, operation.Path, err))
		return
	}
	t.http = operation
	a.loaded = append(a.loaded, t)
	for _, s := range t.unchecked() {
		a.log.Info("a keyword of a tool's schema is not checked", "tool", t.name, "at", s)
	}
}

// readTools reads a file of tools. Why says what is wrong in words that are the same each time.
func readTools(file table.ToolFile) (tools []table.HTTPTool, why string, err error) {
	f, err := os.Open(file.File)
	if err != nil {
		return nil, "cannot be opened", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, table.MaxToolFileBytes+1))
	if err != nil {
		return nil, "cannot be read", err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != file.SHA256 {
		return nil, "has another SHA-256 than the table says", fmt.Errorf("it is %x", sum)
	}
	tools, err = table.ParseTools(content)
	return tools, "holds tools that are not valid", err
}

func (a *api) check() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.err != nil:
		return a.err
	case len(a.broken) > 0:
		return a.failure(classDefinition, false, "not offered: "+strings.Join(a.broken, "; "), nil)
	}
	return nil
}

// forget does nothing: what is read is known to be right, and what was not is read again anyway.
func (*api) forget() {}

func (a *api) close(context.Context) { a.client.CloseIdleConnections() }
