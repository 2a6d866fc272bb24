// Package table is the routing table that the operator writes and the gateway serves: plain Go, versioned, JSON. It imports
// nothing of Kubernetes, since the gateway must stay small.
package table

import "encoding/json"

// Version is the table format this package reads and writes.
const Version = 1

// Table is everything a gateway needs to know to serve one endpoint. Credentials are never in it, only the paths of the
// files they are mounted at.
type Table struct {
	// Version is the format; a gateway refuses a version it does not know.
	Version int `json:"version"`
	// Revision names this content for whoever compares, such as the operator reading /status. Opaque, at most 128 bytes.
	Revision string `json:"revision,omitempty"`
	// Endpoint is what clients see.
	Endpoint Endpoint `json:"endpoint"`
	// Auth says who may call. It has no default: anonymous access is said aloud.
	Auth Auth `json:"auth"`
	// Backends are the MCP servers behind the endpoint, at most 256, by unique name. Order is precedence for nothing: a
	// name that two of them offer is offered by neither.
	Backends []Backend `json:"backends"`
}

// Endpoint is what clients see of a gateway.
type Endpoint struct {
	// Name is the server name told to clients; empty is the backend's own if there is one backend, else "mcp-gateway".
	Name string `json:"name,omitempty"`
	// Path is the one URL path served, exactly. Default "/mcp".
	Path string `json:"path,omitempty"`
	// PublicURL is the URL clients know the endpoint by. It is the OAuth resource of RFC 9728 and an audience tokens may carry. Without
	// it the resource is the first of the audiences that is a URL with Path, or else the first that is a URL.
	PublicURL string `json:"publicURL,omitempty"`
	// AllowedHosts are the Host header values (without port) that are served besides that of PublicURL and addresses, "*.example.com"
	// included; empty serves any, but a gateway that listens on a loopback address serves loopback names only.
	AllowedHosts []string `json:"allowedHosts,omitempty"`
	// AllowedOrigins are the Origin header values that are served besides none at all and the endpoint's own.
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`
	// LenientHeaders serves requests of protocol version 2026-07-28 whose headers do not repeat the body as they must, for clients
	// that get it wrong. What is decided is decided by the body in any case.
	LenientHeaders bool `json:"lenientHeaders,omitempty"`
	// Instructions are told to clients; empty is the backend's own if there is one backend.
	Instructions string `json:"instructions,omitempty"`
}

// AuthType is how callers are told apart.
type AuthType string

const (
	// AuthNone lets everybody call.
	AuthNone AuthType = "None"
	// AuthTokens demands a bearer token (JWT) by one of the issuers.
	AuthTokens AuthType = "Tokens"
)

// Auth says who may call. With AuthTokens at least one of ServiceAccounts and OIDC is given.
type Auth struct {
	Type AuthType `json:"type"`
	// Audiences are accepted besides the endpoint's PublicURL; a token must carry one of them all.
	Audiences []string `json:"audiences,omitempty"`
	// ServiceAccounts accepts tokens of the cluster's own issuer, whose keys are in the table.
	ServiceAccounts *ServiceAccounts `json:"serviceAccounts,omitempty"`
	// OIDC accepts tokens of issuers that publish their keys (OpenID Connect Discovery 1.0).
	OIDC []OIDC `json:"oidc,omitempty"`
}

// ServiceAccounts accepts Kubernetes ServiceAccount tokens.
type ServiceAccounts struct {
	// Issuer is the iss claim of the cluster's tokens.
	Issuer string `json:"issuer"`
	// Keys is the cluster's JSON Web Key Set (RFC 7517).
	Keys json.RawMessage `json:"keys"`
	// Subjects are the accounts let in, as "system:serviceaccount:<namespace>:<name>". Empty lets nobody in.
	Subjects []string `json:"subjects"`
}

// OIDC accepts tokens of one issuer.
type OIDC struct {
	Issuer string `json:"issuer"`
	// Audiences replace Auth.Audiences and the PublicURL for this issuer, if given.
	Audiences []string `json:"audiences,omitempty"`
	// Subjects are let in; empty lets in every subject of the issuer that has the Claims.
	Subjects []string `json:"subjects,omitempty"`
	// Claims must be equal in the token: a list claim must contain the value, "scope" must have it among its words, and
	// booleans are "true" and "false".
	Claims map[string]string `json:"claims,omitempty"`
	// CAFile is a PEM bundle to verify the issuer's certificate with, besides the system's.
	CAFile string `json:"caFile,omitempty"`
	// AllowPrivate lets the issuer have private addresses, such as those of the cluster; else only public ones are dialled.
	// Loopback, link-local and metadata addresses are dialled in no case.
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// Transport is how a backend is spoken to.
type Transport string

const (
	// TransportHTTP is Streamable HTTP, of any protocol version.
	TransportHTTP Transport = "StreamableHTTP"
	// TransportSSE is the HTTP+SSE transport of protocol version 2024-11-05.
	TransportSSE Transport = "SSE"
	// TransportStdio is a child process of the gateway, of any protocol version.
	TransportStdio Transport = "Stdio"
)

// Backend is one MCP server.
type Backend struct {
	// Name is unique in the table: 1 to 63 of a-z, 0-9, '-'.
	Name string `json:"name"`
	// Transport defaults to TransportHTTP, which also finds out about an SSE-only server.
	Transport Transport `json:"transport,omitempty"`
	// URL is absolute, http or https, without userinfo, query or fragment.
	URL string `json:"url,omitempty"`
	// HostHeader is sent as Host instead of the URL's.
	HostHeader string `json:"hostHeader,omitempty"`
	// PodsHost is a DNS name with one address per pod. A session is opened with one of them and stays there.
	PodsHost string `json:"podsHost,omitempty"`
	// ProtocolVersion pins what is spoken with the backend: "2025-11-25" or "2026-07-28"; empty finds out.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
	// Command is the child of TransportStdio: program and arguments, no shell.
	Command []string `json:"command,omitempty"`
	// Prefix is put before the names of this backend's tools and prompts, separator included, such as "web_". It is part of
	// the backend, not of their number: adding a backend renames nothing.
	Prefix string `json:"prefix,omitempty"`
	// Toolset is what TransportToolset offers.
	Toolset *Toolset `json:"toolset,omitempty"`
	// Guarded holds a server over HTTP to the addresses that a Toolset is held to in any case: public ones, or with AllowPrivate
	// private ones too, such as those of the cluster. Loopback, link-local and metadata addresses are then dialled in no case.
	Guarded      bool `json:"guarded,omitempty"`
	AllowPrivate bool `json:"allowPrivate,omitempty"`
	// Tools says which tools are shown and may be called, and how they are called.
	Tools ToolPolicy `json:"tools,omitzero"`
	// Trusted lets the server's own tool annotations count in policy.
	Trusted bool `json:"trusted,omitempty"`
	// Credential is sent to the backend; none by default.
	Credential *Credential `json:"credential,omitempty"`
	// CAFile is a PEM bundle that replaces the system's roots for this backend.
	CAFile string `json:"caFile,omitempty"`
	// ClientCertificate is what the gateway proves with, by TLS, who it is; none by default. An HTTP backend's URL must be https.
	ClientCertificate *ClientCertificate `json:"clientCertificate,omitempty"`
	// TimeoutSeconds bounds one call, 1 to 3600; 0 is the gateway's default.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
}

// ToolPolicy filters and renames a backend's tools. Patterns match original names: '*' is any run of characters, all else
// is literal. Deny wins over allow; a tool that is hidden cannot be called.
type ToolPolicy struct {
	// Allow are the patterns of tools let through; nil lets all through, an empty list none.
	Allow []string `json:"allow"`
	// Deny are the patterns of tools held back.
	Deny []string `json:"deny,omitempty"`
	// ReadOnly holds back tools that do not say readOnlyHint. It needs Trusted.
	ReadOnly bool `json:"readOnly,omitempty"`
	// DenyDestructive holds back tools unless they say destructiveHint false or readOnlyHint true. It needs Trusted.
	DenyDestructive bool `json:"denyDestructive,omitempty"`
	// Rename maps an original name to the whole name clients see, Prefix not applied.
	Rename map[string]string `json:"rename,omitempty"`
}

// CredentialType is how a credential is sent.
type CredentialType string

const (
	// CredentialBearer sends "Authorization: Bearer <token>".
	CredentialBearer CredentialType = "Bearer"
	// CredentialBasic sends "Authorization: Basic" (RFC 7617).
	CredentialBasic CredentialType = "Basic"
	// CredentialHeader sends the value in the header named.
	CredentialHeader CredentialType = "Header"
)

// Credential is what the gateway sends to a backend. The files are read again when they change.
type Credential struct {
	Type CredentialType `json:"type"`
	// ValueFile holds the token of Bearer or the value of Header; trailing line feeds are cut.
	ValueFile string `json:"valueFile,omitempty"`
	// Header is the name for CredentialHeader.
	Header string `json:"header,omitempty"`
	// UsernameFile and PasswordFile are for CredentialBasic.
	UsernameFile string `json:"usernameFile,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
}

// ClientCertificate is a pair of PEM files, read again when they change.
type ClientCertificate struct {
	// CertFile holds the certificate, followed by those between it and the CA.
	CertFile string `json:"certFile"`
	// KeyFile holds its private key.
	KeyFile string `json:"keyFile"`
}
