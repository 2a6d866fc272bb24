package route

import (
	"bytes"
	"slices"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// Read reads a table that Compile or Withdraw made, whichever version of the operator that was; nil if it is another one than the agent's
// status names by its revision. That is a digest of the content: who may change a ConfigMap cannot make the operator take anything from it.
func Read(written []byte, revision string) *table.Table {
	content := bytes.Replace(written, []byte(`"revision":"`+revision+`",`), nil, 1)
	if digestOf(content) != revision {
		return nil
	}
	t, err := table.Parse(written)
	if err != nil || t.Revision != revision {
		return nil
	}
	return t
}

// NeedsWritten says whether Compile asks for Input.Written: the table depends on it while the keys of the cluster are not known, or a server
// serves by a specification before its newest.
func NeedsWritten(in Input) bool {
	if in.Agent.Spec.Auth.Type == mcpv1alpha1.AgentAuthTokens && (in.Issuer == "" || len(in.Keys) == 0) {
		return true
	}
	for _, server := range in.Servers {
		if lags(server) {
			return true
		}
	}
	return false
}

// Withdraw is the table of an agent whose specification Compile refuses: the one that was written, less what is no longer granted or
// would have no backend, such as an MCPTool that is gone or may no longer send its credential. What is left is as its object is now; who may
// call, and what of an MCPServer is granted, stays as it was. Nothing is granted anew. Input.Written must be given.
func Withdraw(in Input) (Output, error) {
	in.settleKeys()
	frame := *in.Written
	frame.Backends, frame.Revision = []table.Backend{}, ""
	frame.Auth.OIDC = slices.Clone(frame.Auth.OIDC)
	for i := range frame.Auth.OIDC {
		frame.Auth.OIDC[i].AllowPrivate = frame.Auth.OIDC[i].AllowPrivate && in.AllowPrivate
	}
	grants := map[string]grant{}
	for _, g := range grantsOf(in.Agent) {
		grants[g.backend()] = g
	}
	c := newCompiler(in, &frame, files{})
	c.withdraws = true
	for i := range in.Written.Backends {
		if g, isGranted := grants[in.Written.Backends[i].Name]; isGranted {
			c.add(g)
		}
	}
	return c.finish()
}

// written is the backend of that name in the table that was last written; nil if it has none.
func (c *compiler) written(name string) *table.Backend {
	if c.Written == nil {
		return nil
	}
	i := slices.IndexFunc(c.Written.Backends, func(b table.Backend) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Written.Backends[i]
}
