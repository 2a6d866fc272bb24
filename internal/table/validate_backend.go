package table

import (
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

func (b *Backend) validate(p *problems, path string) {
	if !consists(b.Name, 1, maxBackendName, "abcdefghijklmnopqrstuvwxyz"+digits+"-") {
		p.add(path+".name", "%s must be 1 to %d of a-z, 0-9, '-'", clip(b.Name), maxBackendName)
	}
	switch b.Transport {
	case TransportHTTP, TransportSSE, "":
		b.validateHTTP(p, path)
	case TransportStdio:
		b.validateStdio(p, path)
	case TransportToolset:
		b.validateToolset(p, path)
	default:
		p.add(path+".transport", "%s is not known: %s, %s, %s or %s", clip(string(b.Transport)),
			TransportHTTP, TransportSSE, TransportStdio, TransportToolset)
	}
	if b.Transport != TransportToolset {
		unwanted(p, path, "without transport Toolset", field{"toolset", b.Toolset != nil}, field{"allowPrivate", b.AllowPrivate && !b.Guarded})
	}
	if b.Guarded && b.Transport != TransportHTTP && b.Transport != TransportSSE {
		p.add(path+".guarded", "is for servers over HTTP: a Toolset always is, and a child is not dialled")
	}
	switch {
	case b.ProtocolVersion != "" && b.ProtocolVersion != "2025-11-25" && b.ProtocolVersion != "2026-07-28":
		p.add(path+".protocolVersion", "%s cannot be pinned: 2025-11-25 or 2026-07-28", clip(b.ProtocolVersion))
	case b.ProtocolVersion == "2026-07-28" && b.Transport == TransportSSE:
		p.add(path+".protocolVersion", "2026-07-28 is not spoken over SSE")
	}
	if !consists(b.Prefix, 0, maxPrefix, toolName) {
		p.add(path+".prefix", "%s must be at most %d of A-Z, a-z, 0-9, '_', '-', '.'", clip(b.Prefix), maxPrefix)
	}
	if b.TimeoutSeconds < 0 || b.TimeoutSeconds > maxSeconds {
		p.add(path+".timeoutSeconds", "%d must be 1 to %d, or 0 for the default", b.TimeoutSeconds, maxSeconds)
	}
	b.Tools.validate(p, path+".tools", b.Trusted)
}

func (b *Backend) validateHTTP(p *problems, path string) {
	unwanted(p, path, "without transport Stdio", field{"command", len(b.Command) > 0})
	if b.HostHeader != "" {
		if err := checkAuthority(b.HostHeader); err != nil {
			p.add(path+".hostHeader", "%v", err)
		}
	}
	if b.PodsHost != "" {
		if err := checkHostname(b.PodsHost); err != nil {
			p.add(path+".podsHost", "%v", err)
		}
	}
	b.validateServer(p, path)
}

// validateServer checks what says where an HTTP server is, and how the two prove who they are.
func (b *Backend) validateServer(p *problems, path string) {
	u, err := parseURL(b.URL)
	if err != nil {
		p.add(path+".url", "%v", err)
	}
	if b.Credential != nil {
		b.Credential.validate(p, path+".credential")
	}
	b.validateFiles(p, path)
	if err != nil || u.Scheme == "https" {
		return
	}
	if b.CAFile != "" {
		p.add(path+".caFile", "verifies nothing, since the url is not https")
	}
	if b.ClientCertificate != nil {
		p.add(path+".clientCertificate", "proves nothing, since the url is not https")
	}
}

// validateFiles checks the paths of what is used for TLS.
func (b *Backend) validateFiles(p *problems, path string) {
	if b.CAFile != "" {
		if err := checkFile(b.CAFile); err != nil {
			p.add(path+".caFile", "%v", err)
		}
	}
	if c := b.ClientCertificate; c != nil {
		for _, file := range []struct{ name, path string }{{"certFile", c.CertFile}, {"keyFile", c.KeyFile}} {
			if err := checkFile(file.path); err != nil {
				p.add(path+".clientCertificate."+file.name, "%v", err)
			}
		}
	}
}

func (b *Backend) validateStdio(p *problems, path string) {
	unwanted(p, path, "with transport Stdio", field{"url", b.URL != ""}, field{"hostHeader", b.HostHeader != ""},
		field{"podsHost", b.PodsHost != ""}, field{"credential", b.Credential != nil}, field{"caFile", b.CAFile != ""},
		field{"clientCertificate", b.ClientCertificate != nil})
	switch {
	case len(b.Command) == 0 || b.Command[0] == "":
		p.add(path+".command", "must name a program with transport Stdio")
	case len(b.Command) > maxListItems:
		p.add(path+".command", "has %d entries, the limit is %d", len(b.Command), maxListItems)
	default:
		for i, argument := range b.Command {
			if len(argument) > maxArgument || strings.ContainsRune(argument, 0) {
				p.add(index(path+".command", i), "must be at most %d bytes without NUL", maxArgument)
			}
		}
	}
}

func (t *ToolPolicy) validate(p *problems, path string, trusted bool) {
	list(p, path+".allow", t.Allow, checkPattern)
	list(p, path+".deny", t.Deny, checkPattern)
	// What an untrusted server says of its tools would decide whether they can be called.
	for _, f := range []field{{"readOnly", t.ReadOnly}, {"denyDestructive", t.DenyDestructive}} {
		if f.set && !trusted {
			p.add(path+"."+f.name, "needs trusted, since it believes the server's own annotations")
		}
	}
	if len(t.Rename) > maxListItems {
		p.add(path+".rename", "has %d entries, the limit is %d", len(t.Rename), maxListItems)
		return
	}
	owner := map[string]string{}
	for _, original := range sorted(t.Rename) {
		target, path := t.Rename[original], join(path+".rename", original)
		if original == "" || utf8.RuneCountInString(original) > maxName || !isPrintable(original, "") || strings.Contains(original, "*") {
			p.add(path, "the key must be a tool's original name: 1 to %d printable characters, no '*'", maxName)
		}
		if !consists(target, 1, maxName, toolName) {
			p.add(path, "%s must be 1 to %d of A-Z, a-z, 0-9, '_', '-', '.'", clip(target), maxName)
		}
		if other, taken := owner[target]; taken {
			p.add(path, "%s is the new name of %s too", clip(target), clip(other))
			continue
		}
		owner[target] = original
	}
}

// checkPattern takes what tool names consist of in practice, and '*'. Signs that are special in other pattern languages are
// refused: who writes "delete_?" would take it for a rule, and it would match nothing.
func checkPattern(pattern string) error {
	if !consists(pattern, 1, maxName, toolName+"/:@*") {
		return fmt.Errorf("%s must be 1 to %d of A-Z, a-z, 0-9, '_', '-', '.', '/', ':', '@', with '*' for any run of characters", clip(pattern), maxName)
	}
	return nil
}

func (c *Credential) validate(p *problems, path string) {
	why := fmt.Sprintf("with type %s", c.Type)
	header, value := field{"header", c.Header != ""}, field{"valueFile", c.ValueFile != ""}
	username, password := field{"usernameFile", c.UsernameFile != ""}, field{"passwordFile", c.PasswordFile != ""}
	files := map[string]string{"valueFile": c.ValueFile}
	switch c.Type {
	case CredentialBearer:
		unwanted(p, path, why, header, username, password)
	case CredentialBasic:
		unwanted(p, path, why, header, value)
		files = map[string]string{"usernameFile": c.UsernameFile, "passwordFile": c.PasswordFile}
	case CredentialHeader:
		unwanted(p, path, why, username, password)
		if err := checkCredentialHeader(c.Header); err != nil {
			p.add(path+".header", "%v", err)
		}
	default:
		p.add(path+".type", "%s is not known: %s, %s or %s", clip(string(c.Type)), CredentialBearer, CredentialBasic, CredentialHeader)
		return
	}
	for _, name := range sorted(files) {
		if err := checkFile(files[name]); err != nil {
			p.add(path+"."+name, "%v", err)
		}
	}
}

// reservedHeaders belong to the connection (RFC 9110, section 7.6.1), to the message, or to what the gateway says itself.
// An Idempotency-Key would let the HTTP client send a call twice.
var reservedHeaders = []string{
	"Accept", "Baggage", "Connection", "Date", "Expect", "Forwarded", "Host", "Idempotency-Key", "Keep-Alive",
	"Last-Event-Id", "Origin", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Referer", "Te", "Traceparent",
	"Tracestate", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Via", "X-Idempotency-Key",
}

// reservedHeaderPrefixes begin the names of further such headers.
var reservedHeaderPrefixes = []string{"Accept-", "Access-Control-", "Content-", "If-", "Mcp-", "Sec-", "X-Forwarded-"}

func checkCredentialHeader(name string) error {
	if !consists(name, 1, maxName, letters+digits+"!#$%&'*+-.^`|~") {
		return fmt.Errorf("%s must be the name of an HTTP header, without '_'", clip(name))
	}
	if isReserved(name) {
		return fmt.Errorf("%s is not for credentials: the gateway or the connection sets it", clip(name))
	}
	return nil
}

// checkToolHeader takes the header that an argument of a tool is sent in. What says who is asking is the credential's.
func checkToolHeader(name string) error {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if err := checkCredentialHeader(name); err != nil || canonical == "Authorization" || canonical == "Cookie" {
		return fmt.Errorf("%s is not for arguments: it is no header, or the gateway, the connection or the credential sets it", clip(name))
	}
	return nil
}

func isReserved(name string) bool {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	return slices.Contains(reservedHeaders, canonical) ||
		slices.ContainsFunc(reservedHeaderPrefixes, func(prefix string) bool { return strings.HasPrefix(canonical, prefix) })
}

// checkFile takes a path with one meaning.
func checkFile(file string) error {
	if file == "" {
		return errors.New("must be given")
	}
	if len(file) > maxPath || !path.IsAbs(file) || path.Clean(file) != file || file == "/" || !isPrintable(file, "") {
		return fmt.Errorf("must be an absolute path of at most %d bytes without '.', '..', '//' or a slash at the end", maxPath)
	}
	return nil
}

// sorted are a map's keys in order, so that messages do not change from one reading to the next.
func sorted(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}
