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
// may serve by a specification before its newest; what is mounted does while an edit of a tool is to be judged.
func NeedsWritten(in Input) bool {
	if in.Agent.Spec.Auth.Type == mcpv1alpha1.AgentAuthTokens && (in.Issuer == "" || len(in.Keys) == 0) {
		return true
	}
	for _, server := range in.Servers {
		if !isCurrent(server) {
			return true
		}
	}
	for _, tool := range in.Tools {
		if awaitsJudgement(tool) {
			return true
		}
	}
	return false
}

// Withdraw is the table of an agent whose specification Compile refuses: the one that was written, less what the specification does not
// grant any more or what would have no backend, such as an MCPTool that is gone or may no longer send its credential. What is left is as its
// object is now. Callers are let in, and tools of an MCPServer are served, as it was written and as far as the specification does so too;
// if no table can say that, nobody or nothing is. Nothing is granted anew, nor once more: a tool that was taken out while an edit of it was
// judged is told as held up by the agent. Input.Written must be given.
func Withdraw(in Input) (Output, error) {
	in.settleKeys()
	frame, isSaid := in.narrowedFrame()
	grants := map[string]grant{}
	for _, g := range grantsOf(in.Agent) {
		grants[g.backend()] = g
	}
	c := newCompiler(in, frame, files{})
	c.withdraws, c.isShut = true, !isSaid
	c.out.LetsNobodyIn = !isSaid || letsNobodyIn(&frame.Auth)
	for i := range in.Written.Backends {
		if g, isGranted := grants[in.Written.Backends[i].Name]; isGranted && isSaid {
			c.add(g)
		}
	}
	for _, g := range grantsOf(in.Agent) {
		if !isSaid || c.written(g.backend()) == nil {
			c.leaveOut(g)
		}
	}
	return c.finish()
}

// leaveOut tells what is wrong with something that is granted and that the table does not have; if nothing is, that it waits for the agent.
func (c *compiler) leaveOut(g grant) {
	found, refused := c.compile(g)
	if refused == nil {
		refused = &refusal{mcpv1alpha1.VerdictPending, heldUp}
		if c.isShut {
			refused.reason = shut
		}
	}
	c.refuse(g, found.tool, refused)
}

// heldUp is why something that could be served is not, while the table is what Withdraw left of it.
const heldUp = "the newest edit of the MCPAgent is not accepted (see its condition Accepted): until it is mended nothing is added to what it " +
	"serves, not even what was taken out to check an edit of its own; it is served once the MCPAgent is mended"

// shut is why nothing is served at all.
const shut = "who may call was changed, and cannot be told to the gateway yet (see the condition Accepted of the MCPAgent): until it can, " +
	"nothing is served"

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

// givenUp are the files of what the table that was last written has, and that is not granted any more or is gone.
func (c *compiler) givenUp() files {
	if c.Written == nil {
		return files{}
	}
	granted := map[string]bool{}
	for _, g := range grantsOf(c.Agent) {
		granted[g.backend()] = c.isThere(g)
	}
	needed, gone := files{}, files{}
	for i := range c.Written.Backends {
		b := &c.Written.Backends[i]
		for _, file := range mountedBy(b) {
			if granted[b.Name] {
				needed.addAll(at(file, c.Mounted))
			} else {
				gone.addAll(at(file, c.Mounted))
			}
		}
	}
	return gone.without(needed)
}

// isThere says whether what is granted exists, and does not go.
func (c *compiler) isThere(g grant) bool {
	if g.isTool {
		tool := c.Tools[g.name]
		return tool != nil && tool.DeletionTimestamp == nil
	}
	server := c.Servers[g.name]
	return server != nil && server.DeletionTimestamp == nil
}

// mountedBy are the paths of the files of a backend; some may be empty.
func mountedBy(b *table.Backend) []string {
	paths := []string{b.CAFile}
	if b.Credential != nil {
		paths = append(paths, b.Credential.ValueFile, b.Credential.UsernameFile, b.Credential.PasswordFile)
	}
	if b.ClientCertificate != nil {
		paths = append(paths, b.ClientCertificate.CertFile, b.ClientCertificate.KeyFile)
	}
	if b.Toolset != nil && b.Toolset.Postgres != nil {
		paths = append(paths, b.Toolset.Postgres.PasswordFile)
	}
	return paths
}
