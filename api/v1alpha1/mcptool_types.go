package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPTool makes an HTTP API, an OpenAPI document, an SQL statement or a remote MCP server into MCP tools, which agents are granted by
// name (MCPAgent). Its credential stays with the gateways that call it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=mcp-operator
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Tools",type=integer,JSONPath=`.status.toolCount`
// +kubebuilder:printcolumn:name="Agents",type=integer,JSONPath=`.status.agents`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 54",message="metadata.name must have at most 54 characters: it becomes the name of a tool and of a backend, and of child objects"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and consist of lower-case letters, digits and '-': agents are shown a tool of that name"
// +genclient
type MCPTool struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked for.
	// +required
	Spec MCPToolSpec `json:"spec,omitzero"`

	// status is what was observed. Before anything was, its observedGeneration is -1: tools that wait for an object by it, such as those that
	// follow kstatus, then wait.
	// +optional
	// +default={"observedGeneration":-1}
	Status MCPToolStatus `json:"status,omitzero"`
}

// MCPToolList is a list of MCPTools.
//
// +kubebuilder:object:root=true
type MCPToolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []MCPTool `json:"items"`
}

// ToolType is what a tool is made of.
type ToolType string

// The tool types.
const (
	// ToolHTTP is one operation of an HTTP API.
	ToolHTTP ToolType = "http"
	// ToolOpenAPI is the operations of an OpenAPI document.
	ToolOpenAPI ToolType = "openapi"
	// ToolPostgres is one SQL statement.
	ToolPostgres ToolType = "postgres"
	// ToolMCP is the tools of a remote MCP server.
	ToolMCP ToolType = "mcp"
)

// MCPToolSpec is what is asked of an MCPTool.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.http) || self.type == 'http') && (!has(self.openapi) || self.type == 'openapi') && (!has(self.postgres) || self.type == 'postgres') && (!has(self.mcp) || self.type == 'mcp')",message="of http, openapi, postgres and mcp only the member that type names may be set"
// +kubebuilder:validation:XValidation:rule="self.type != 'openapi' || has(self.openapi)",message="openapi is required when type is openapi: it says where the document is"
// +kubebuilder:validation:XValidation:rule="self.type != 'postgres' || has(self.postgres)",message="postgres is required when type is postgres: it holds the statement"
// +kubebuilder:validation:XValidation:rule="self.type == 'openapi' || has(self.endpoint)",message="endpoint is required, unless type is openapi"
// +kubebuilder:validation:XValidation:rule="!has(self.endpoint) || self.endpoint.startsWith('postgres://') == (self.type == 'postgres')",message="endpoint must begin with postgres:// when type is postgres, and with http:// or https:// when it is not"
// +kubebuilder:validation:XValidation:rule="self.type != 'postgres' || !has(self.endpoint) || self.endpoint.matches('^[a-z]+://[^/]*/[A-Za-z0-9_.$~+-]{1,63}$')",message="endpoint must be postgres://host:port/database when type is postgres, the database at most 63 letters, digits and _.$~+-"
// +kubebuilder:validation:XValidation:rule="self.type in ['http', 'postgres'] || (!has(self.title) && !has(self.description) && !has(self.schema) && !has(self.annotations))",message="title, description, schema and annotations must not be set when type is openapi or mcp: there every tool brings its own"
// +kubebuilder:validation:XValidation:rule="self.type != 'mcp' || !has(self.maxResponseBytes)",message="maxResponseBytes must not be set when type is mcp: results are passed on as they come"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || (self.type == 'postgres' ? self.auth.type in ['Password', 'ClientCertificate'] : self.auth.type != 'Password')",message="auth.type must be Password or ClientCertificate when type is postgres, and must not be Password when it is not"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || self.auth.type == 'ClientCertificate' || !has(self.endpoint) || !self.endpoint.startsWith('http://') || self.endpoint.matches('^http://(([^/:.]+[.]){2,}svc|[^/:]+[.]cluster[.]local)[.]?(:|/|$)')",message="auth needs an https endpoint, or a Service of the cluster such as http://name.namespace.svc: elsewhere the credential would cross the network in the clear"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || self.auth.type != 'ClientCertificate' || ((!has(self.endpoint) || !self.endpoint.startsWith('http://')) && (!has(self.postgres) || !has(self.postgres.tls) || self.postgres.tls != 'Disable'))",message="auth.type ClientCertificate needs TLS: an https endpoint, or postgres.tls other than Disable"
// +kubebuilder:validation:XValidation:rule="!has(self.caBundle) || ((!has(self.endpoint) || !self.endpoint.startsWith('http://')) && (!has(self.postgres) || !has(self.postgres.tls) || self.postgres.tls != 'Disable'))",message="caBundle needs TLS: an https endpoint, or postgres.tls other than Disable"
// +kubebuilder:validation:XValidation:rule="!has(self.postgres) || !has(self.postgres.tls) || self.postgres.tls != 'VerifyCA' || has(self.caBundle)",message="caBundle is required when postgres.tls is VerifyCA: any certificate of the authorities of the world would do"
type MCPToolSpec struct {
	// type is what the tool is made of: http (one operation of an HTTP API), openapi (the operations of an OpenAPI document), postgres
	// (one SQL statement) or mcp (the tools of a remote MCP server). Of the members of those names only that one may be set.
	// +required
	// +kubebuilder:validation:Enum=http;openapi;postgres;mcp
	Type ToolType `json:"type,omitempty"`

	// endpoint is where it is: the base URL of the HTTP API (https://api.example.com/v1), the URL of the MCP server
	// (https://mcp.example.com/mcp), or the database as postgres://host:5432/database. No credentials, query or fragment. For openapi it
	// replaces what the document says of servers; there it may be left out, and with auth the server must then be on the host of
	// openapi.document.url, if that is given.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(http|https|postgres)://[^/?#@]+(/[^?#]*)?$')",message="endpoint must be a URL such as https://api.example.com/v1, beginning with http://, https:// or postgres://: no user, password, query or fragment"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+://([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*[.]?|[[][0-9A-Fa-f.]*:[0-9A-Fa-f:.]+[]])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?([/?]|$)') && size(self.find('://[^/?:]+')) <= 256 && (!self.matches('^[a-z]+://([^/?:]*[.])?([0-9]+|0[xX][0-9A-Fa-f]*)[.]?(:|/|[?]|$)') || isIP(self.find('://[^/?:]+').substring(3))) && (!self.contains('://[') || isIP(self.find('://[[][^]]*').substring(4)))",message="endpoint must have a host name or an IP address (a.b.c.d or [a:b::c]), and a port from 1 to 65535 if any"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+://[^/]*(/([A-Za-z0-9._~!$&()*+,;=:@/\\x27-]|%[0-9A-Fa-f]{2})*)?$') && !self.matches('%(2[eEfF5]|5[cC]|7[fF]|[01][0-9A-Fa-f])') && !self.matches('^[a-z]+://[^/]*(/.*)?(//|/[.]{1,2}(/|$))')",message="the path of endpoint must consist of letters, digits, -._~!$&'()*+,;=:@/ and percent escapes, without '//', without '.' or '..' as a part, and without escapes of '.', '/', '%', backslash and control characters"
	Endpoint string `json:"endpoint,omitempty"`

	// auth is the credential that the gateway sends. Callers never see it. Default: none.
	// +optional
	Auth *ToolAuth `json:"auth,omitempty"`

	// caBundle holds the PEM certificates to verify the endpoint's certificate with, in place of the system's.
	// +optional
	CABundle *CABundleSource `json:"caBundle,omitempty"`

	// title is the tool's name for people. http and postgres only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// description tells models what the tool does and when to use it. http and postgres only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Description string `json:"description,omitempty"`

	// schema is what the tool takes and gives, as JSON Schemas of objects. http and postgres only. Default: it takes nothing.
	// +optional
	Schema *ToolSchema `json:"schema,omitempty"`

	// annotations tell clients, and the policies of agents, how the tool behaves. http and postgres only; for openapi they follow from the
	// HTTP methods.
	// +optional
	Annotations *ToolAnnotations `json:"annotations,omitempty"`

	// timeoutSeconds is how long one call may take, in seconds. Default: 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// maxResponseBytes is the largest response that is passed on, in bytes; of postgres, of all rows together. Default: 1048576. Larger
	// ones are an error (http, openapi) or cut after a row (postgres). Not for mcp.
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=16777216
	MaxResponseBytes int32 `json:"maxResponseBytes,omitempty"`

	// http is the operation, of type http. Default: a POST to endpoint with all arguments as a JSON object.
	// +optional
	HTTP *HTTPTool `json:"http,omitempty"`

	// openapi is the document and the choice of its operations, of type openapi.
	// +optional
	OpenAPI *OpenAPITool `json:"openapi,omitempty"`

	// postgres is the statement, of type postgres.
	// +optional
	Postgres *PostgresTool `json:"postgres,omitempty"`

	// mcp is how to speak with the server, of type mcp.
	// +optional
	MCP *RemoteMCP `json:"mcp,omitempty"`
}

// ToolAuthType is how a credential is sent.
type ToolAuthType string

// The ways to send a credential.
const (
	// AuthBearer sends the token as "Authorization: Bearer".
	AuthBearer ToolAuthType = "Bearer"
	// AuthBasic sends username and password as "Authorization: Basic".
	AuthBasic ToolAuthType = "Basic"
	// AuthHeader sends the value in a header of its own.
	AuthHeader ToolAuthType = "Header"
	// AuthPassword logs in to a database.
	AuthPassword ToolAuthType = "Password"
	// AuthClientCertificate shows a certificate (mutual TLS).
	AuthClientCertificate ToolAuthType = "ClientCertificate"
)

// ToolAuth is a credential, and how it is sent.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Header') == has(self.header)",message="header is required when type is Header, and must not be set when it is not"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef.keys) || ((!has(self.secretRef.keys.token) || self.type in ['Bearer', 'Header']) && (!has(self.secretRef.keys.username) || self.type == 'Basic') && (!has(self.secretRef.keys.password) || self.type in ['Basic', 'Password']) && ((!has(self.secretRef.keys.certificate) && !has(self.secretRef.keys.key)) || self.type == 'ClientCertificate'))",message="secretRef.keys must have only keys that type uses: token of Bearer and Header, username and password of Basic, password of Password, certificate and key of ClientCertificate"
type ToolAuth struct {
	// type is how the credential is sent: Bearer, Basic or Header with each HTTP request; Password to a database; ClientCertificate in the
	// TLS handshake.
	// +required
	// +kubebuilder:validation:Enum=Bearer;Basic;Header;Password;ClientCertificate
	Type ToolAuthType `json:"type,omitempty"`

	// secretRef is the Secret of this namespace that holds it. It is mounted into the gateways of the agents that are granted the tool, and
	// nowhere else. Naming a Secret here equals mounting it into a pod. A Secret with the annotation mcp.operator/allowed-hosts is sent to
	// the hosts that it lists alone.
	// +required
	SecretRef ToolSecret `json:"secretRef,omitzero"`

	// header is the name of the header, of type Header, such as X-API-Key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9!#$%&*+.^|~-]+$')",message="header must be the name of an HTTP header, without '_'"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['accept', 'authorization', 'baggage', 'connection', 'cookie', 'date', 'expect', 'forwarded', 'host', 'idempotency-key', 'keep-alive', 'last-event-id', 'origin', 'referer', 'te', 'traceparent', 'tracestate', 'trailer', 'transfer-encoding', 'upgrade', 'user-agent', 'via', 'x-idempotency-key']) && !self.lowerAscii().matches('^(accept|access-control|content|if|mcp|proxy|sec|x-forwarded)-')",message="header must not be one that the connection, MCP, the gateway or another type of auth sets: for Authorization use Bearer or Basic"
	Header string `json:"header,omitempty"`
}

// ToolSecret is a Secret, and which of its keys are what.
//
// +kubebuilder:validation:MinProperties=1
type ToolSecret struct {
	ObjectName `json:",inline"`

	// keys are the keys in the Secret, where they are not the default ones.
	// +optional
	Keys ToolSecretKeys `json:"keys,omitzero"`
}

// ToolSecretKeys are the keys of a Secret.
type ToolSecretKeys struct {
	// token is that of Bearer and Header. Default: token.
	// +optional
	Token DataKey `json:"token,omitempty"`

	// username is that of Basic. Default: username.
	// +optional
	Username DataKey `json:"username,omitempty"`

	// password is that of Basic and Password. Default: password.
	// +optional
	Password DataKey `json:"password,omitempty"`

	// certificate is that of ClientCertificate, in PEM. Default: tls.crt.
	// +optional
	Certificate DataKey `json:"certificate,omitempty"`

	// key is the private key of ClientCertificate, in PEM. Default: tls.key.
	// +optional
	Key DataKey `json:"key,omitempty"`
}

// DataKey is a key of a Secret or ConfigMap.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && !self.startsWith('..') && self != '.'",message="a key of a ConfigMap or Secret must consist of letters, digits, '-', '_' and '.', and not begin with '..'"
type DataKey string

// CABundleSource is where PEM certificates are.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) != has(self.secretRef)",message="caBundle must have exactly one of configMapRef and secretRef"
type CABundleSource struct {
	// configMapRef is a key of a ConfigMap of this namespace.
	// +optional
	ConfigMapRef *KeyRef `json:"configMapRef,omitempty"`

	// secretRef is a key of a Secret of this namespace.
	// +optional
	SecretRef *KeyRef `json:"secretRef,omitempty"`
}

// KeyRef is a key of a ConfigMap or Secret of the same namespace.
type KeyRef struct {
	ObjectName `json:",inline"`

	// key in it.
	// +required
	Key DataKey `json:"key,omitempty"`
}

// ToolSchema is what a tool takes and gives.
//
// +kubebuilder:validation:XValidation:rule="has(self.inline) != has(self.configMapRef)",message="schema must have exactly one of inline and configMapRef"
type ToolSchema struct {
	// inline are the schemas themselves.
	// +optional
	Inline *InlineSchema `json:"inline,omitempty"`

	// configMapRef is a key of a ConfigMap of this namespace, whose value is JSON or YAML with the members input and output.
	// +optional
	ConfigMapRef *KeyRef `json:"configMapRef,omitempty"`
}

// InlineSchema are JSON Schemas (2020-12) of objects. They are replaced as a whole by server-side apply.
//
// +structType=atomic
// +kubebuilder:validation:MinProperties=1
type InlineSchema struct {
	// input is what the tool takes; arguments are checked against it before anything is sent.
	// +optional
	// +kubebuilder:validation:Type=object
	Input *apiextensionsv1.JSON `json:"input,omitempty"`

	// output is what the tool gives: then the response must be JSON that fits it, and becomes structured output.
	// +optional
	// +kubebuilder:validation:Type=object
	Output *apiextensionsv1.JSON `json:"output,omitempty"`
}

// ToolAnnotations are the hints of MCP about a tool's behaviour.
type ToolAnnotations struct {
	// readOnly says that it changes nothing. Default: true for the methods GET and HEAD and for statements, else false.
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`

	// destructive says that it may destroy something. A postgres tool runs in a read-only transaction unless it is true. Default: true for
	// http tools that are not read-only, false else.
	// +optional
	Destructive *bool `json:"destructive,omitempty"`

	// idempotent says that a second equal call changes nothing more. Default: true for the methods PUT and DELETE and for what is read-only.
	// +optional
	Idempotent *bool `json:"idempotent,omitempty"`

	// openWorld says that it deals with more than what is known beforehand, such as the Web. Default: true for http, false for postgres.
	// +optional
	OpenWorld *bool `json:"openWorld,omitempty"`
}
