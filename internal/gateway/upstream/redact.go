package upstream

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// secrets hides the credential in what the server sends: there are servers that tell their callers what they were sent.
func (b *Backend) secrets() *credential.Redactor {
	if b.options.Credential == nil {
		return nil
	}
	return b.options.Credential.Redactor()
}

// redacted is a message of the server's without the credential. A response keeps its id, by which its caller is found.
func (b *Backend) redacted(m *wire.Message) (*wire.Message, error) {
	raw, found := b.secrets().Redact(m.Raw)
	if !found {
		return m, nil
	}
	if m.Kind == wire.Response {
		member, value := "result", m.Result
		if m.Error != nil {
			member, value = "error", m.Error
		}
		value, _ = b.secrets().Redact(value)
		id := m.ID
		if id == nil {
			id = json.RawMessage("null")
		}
		raw = bytes.Join([][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"` + member + `":`), value, []byte("}")}, nil)
	}
	limits := answerLimits
	limits.Bytes = len(raw)
	return wire.Parse(raw, limits)
}
