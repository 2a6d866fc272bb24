package toolset

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
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
	credential Credential
	tls        func() (*tls.Config, error)

	definitions Definitions

	mu     sync.Mutex
	loaded []*tool // nil until all files were read
	broken []string
	err    *backend.Error // of the last attempt
	// final says that no further attempt can end otherwise.
	final bool
	// arrival is closed when what the last attempt failed for has come; nil if that is not known.
	arrival <-chan struct{}
}

func newAPI(b *Backend, set *table.Toolset, o Options) (*api, error) {
	u, err := url.Parse(b.config.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an absolute http or https URL without user, query and fragment", b.config.URL)
	}
	return &api{Backend: b, set: set, base: u, client: newClient(b, u, o), credential: o.Credential, tls: o.TLS, definitions: o.Definitions}, nil
}

// tools reads the files, until that has worked once: their content cannot change. What a ConfigMap holds is fetched beside, not
// by whoever calls, who waits for it a moment if it is new.
//
// While the credential cannot be read, or the certificates, there are none: each call would fail.
func (a *api) tools(ctx context.Context) ([]*tool, error) {
	if a.credential != nil {
		if err := a.credential.Apply(http.Header{}); err != nil {
			return nil, a.unready(unreadable, err)
		}
	}
	if a.base.Scheme == "https" {
		if _, err := a.tls(); err != nil {
			return nil, a.unready("", err)
		}
	}
	a.await(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.loaded != nil:
		return a.loaded, nil
	case a.final:
		return nil, a.err
	}
	operations := slices.Clone(a.set.HTTP)
	for _, file := range a.set.Files {
		more, err := a.read(file)
		if err != nil {
			a.err = err
			return nil, err
		}
		operations = append(operations, more...)
	}
	a.err, a.arrival = nil, nil
	a.loaded = make([]*tool, 0, len(operations))
	for i := range operations {
		a.add(&operations[i])
	}
	return a.loaded, nil
}

// await waits for what is only on its way.
func (a *api) await(ctx context.Context) {
	a.mu.Lock()
	isSettled := a.loaded != nil || a.final || a.definitions == nil
	a.mu.Unlock()
	if isSettled {
		return
	}
	for _, file := range a.set.Files {
		if file.ConfigMap != "" {
			a.definitions.Await(ctx, file)
		}
	}
}

// unreadable is what clients are told of a credential that cannot be sent.
const unreadable = "the gateway's credential cannot be read"

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
}

// read returns the tools of a file. The caller holds the lock.
func (a *api) read(file table.ToolFile) ([]table.HTTPTool, *backend.Error) {
	var content []byte
	var err error
	name := "the file " + file.File
	a.arrival = nil
	switch {
	case file.ConfigMap == "":
		content, err = readFile(file)
	case a.definitions == nil:
		name, err = "the ConfigMap "+file.ConfigMap, errors.New("cannot be fetched here")
	default:
		name = "the ConfigMap " + file.ConfigMap
		if content, err = a.definitions.Read(file); err != nil {
			a.arrival = a.definitions.Arrival(file)
		}
	}
	if err != nil {
		return nil, a.failure(classDefinition, false, name+" "+err.Error(), errors.Unwrap(err))
	}
	tools, err := table.ParseTools(content)
	if err != nil {
		a.final = true // its digest says that no other content will come
		failure := a.failure(classDefinition, false, name+" holds tools that are not valid", err)
		failure.Told = name + ": " + err.Error()
		return nil, failure
	}
	return tools, nil
}

// fileError says in stable words what is wrong with a file.
type fileError struct {
	why string
	err error
}

func (e *fileError) Error() string { return e.why }
func (e *fileError) Unwrap() error { return e.err }

// readFile reads a mounted file.
func readFile(file table.ToolFile) ([]byte, error) {
	f, err := os.Open(file.File)
	if err != nil {
		return nil, &fileError{"cannot be opened", err}
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, table.MaxToolFileBytes+1))
	if err != nil {
		return nil, &fileError{"cannot be read", err}
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != file.SHA256 {
		return nil, &fileError{"has another SHA-256 than the table says", fmt.Errorf("it is %x", sum)}
	}
	return content, nil
}

// renewed is closed when a file that was missing has come.
func (a *api) renewed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.arrival
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
