package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// HTTPTool is one operation of an HTTP API. Every argument is encoded for its place; none leaves the path of endpoint. An argument that
// is absent or null is left out.
//
// +kubebuilder:validation:XValidation:rule="!has(self.body) || !has(self.method) || !(self.method in ['GET', 'HEAD'])",message="body must not be set when method is GET or HEAD"
type HTTPTool struct {
	// method is GET, HEAD, POST, PUT, PATCH or DELETE.
	// +optional
	// +default="POST"
	// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE
	Method string `json:"method,omitempty"`

	// path is appended to that of endpoint. {name} stands for the argument of that name, which must be required by schema.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^/$|^(/([A-Za-z0-9._~!$&()*+,;=:@\\x27-]|[{][ -.0-z|~]{1,128}[}])+)+/?$') && !self.matches('/[.]{1,2}(/|$)')",message="path must begin with '/' and consist of letters, digits, -._~!$&'()*+,;=:@/ and names of arguments as {name}, without '//' and without '.' or '..' as a part"
	Path string `json:"path,omitempty"`

	// query are the parameters of the query string, in this order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Query []HTTPParam `json:"query,omitempty"`

	// headers are headers to send. Authorization and such belong to auth.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(h, h.name.matches('^[A-Za-z0-9!#$%&*+.^|~-]+$'))",message="headers[].name must be the name of an HTTP header, without '_'"
	// +kubebuilder:validation:XValidation:rule="self.all(h, !(h.name.lowerAscii() in ['accept', 'authorization', 'baggage', 'connection', 'cookie', 'date', 'expect', 'forwarded', 'host', 'idempotency-key', 'keep-alive', 'last-event-id', 'origin', 'referer', 'te', 'traceparent', 'tracestate', 'trailer', 'transfer-encoding', 'upgrade', 'user-agent', 'via', 'x-idempotency-key']) && !h.name.lowerAscii().matches('^(accept|access-control|content|if|mcp|proxy|sec|x-forwarded)-'))",message="headers[].name must not be one that the connection, MCP, the gateway or auth sets"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.style))",message="headers[].style must not be set: it is for query"
	Headers []HTTPParam `json:"headers,omitempty"`

	// body is what is sent with POST, PUT, PATCH and DELETE. Default: with POST, PUT and PATCH a JSON object of all arguments that are used
	// nowhere else.
	// +optional
	Body *HTTPBody `json:"body,omitempty"`

	// response says what becomes of the response.
	// +optional
	Response *HTTPResponse `json:"response,omitempty"`
}

// HTTPParam is one parameter of a request: the value of an argument, or a constant.
//
// +kubebuilder:validation:XValidation:rule="!has(self.argument) || !has(dyn(self).value)",message="a parameter must not have both argument and value"
type HTTPParam struct {
	// name is its name in the request.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -~]+$')",message="name must consist of letters, digits and signs of ASCII"
	Name string `json:"name,omitempty"`

	// argument is the name of the argument. Default: name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -~]+$')",message="argument must consist of letters, digits and signs of ASCII"
	Argument string `json:"argument,omitempty"`

	// value is a constant to send in place of an argument: a string, number or boolean; in a JSON body anything.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// style is how lists and objects are written in a query: Repeat (a=1&a=2), Comma, Space, Pipe, DeepObject or JSON. Default: Repeat.
	// +optional
	// +kubebuilder:validation:Enum=Repeat;Comma;Space;Pipe;DeepObject;JSON
	Style string `json:"style,omitempty"`
}

// HTTPBody is the content of a request: the value of one argument, or an object with members; with neither, all arguments that are used
// nowhere else.
//
// +kubebuilder:validation:XValidation:rule="!has(self.argument) || !has(self.members)",message="body must not have both argument and members"
// +kubebuilder:validation:XValidation:rule="!has(self.argument) || !has(self.type) || self.type != 'Form'",message="body.argument must not be set when type is Form: a form consists of members"
type HTTPBody struct {
	// type is JSON or Form (application/x-www-form-urlencoded).
	// +optional
	// +default="JSON"
	// +kubebuilder:validation:Enum=JSON;Form
	Type string `json:"type,omitempty"`

	// argument is the name of the one whose value is the whole body. JSON only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -~]+$')",message="argument must consist of letters, digits and signs of ASCII"
	Argument string `json:"argument,omitempty"`

	// members are those of an object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.style))",message="members[].style must not be set: it is for query"
	Members []HTTPParam `json:"members,omitempty"`
}

// HTTPResponse says what becomes of a response.
type HTTPResponse struct {
	// select is a JSON pointer (RFC 6901) to the part of a JSON response that is the result. Default: all of it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.matches('~([^01]|$)') && size(bytes(self)) <= 512",message="select must be a JSON pointer such as /data/items, of at most 512 bytes; '~' is written ~0 and '/' in a name ~1"
	Select string `json:"select,omitempty"`
}

// OpenAPITool is a document, and which of its operations become tools. Each is named by its operationId, or by its method and path.
type OpenAPITool struct {
	// document is where the OpenAPI document (3.0 or 3.1, JSON or YAML, at most 8 MiB) is.
	// +required
	Document OpenAPIDocument `json:"document,omitzero"`

	// prefix is put before the names of the tools, separator included, such as "petstore_". Default: none.
	// +optional
	Prefix NamePrefix `json:"prefix,omitempty"`

	// include chooses operations; one that matches any of the list is chosen. Default: all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Include []OperationMatch `json:"include,omitempty"`

	// exclude leaves operations out that include chose.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Exclude []OperationMatch `json:"exclude,omitempty"`
}

// OpenAPIDocument is where a document is. It is replaced as a whole by server-side apply.
//
// +structType=atomic
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="[has(self.url), has(self.inline), has(self.configMapRef)].exists_one(given, given)",message="document must have exactly one of url, inline and configMapRef"
type OpenAPIDocument struct {
	// url is fetched by the operator, without credentials, and again every ten minutes.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(http|https)://[^/?#@]+(/[^?#]*)?([?][^#]*)?$') && self.matches('^[!-~]+$')",message="url must be a URL such as https://api.example.com/openapi.json, beginning with http:// or https://: no user, password, fragment, space or letter beyond ASCII"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+://([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*[.]?|[[][0-9A-Fa-f.]*:[0-9A-Fa-f:.]+[]])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?([/?]|$)') && size(self.find('://[^/?:]+')) <= 256 && (!self.matches('^[a-z]+://([^/?:]*[.])?([0-9]+|0[xX][0-9A-Fa-f]*)[.]?(:|/|[?]|$)') || isIP(self.find('://[^/?:]+').substring(3))) && (!self.contains('://[') || isIP(self.find('://[[][^]]*').substring(4)))",message="url must have a host name or an IP address (a.b.c.d or [a:b::c]), and a port from 1 to 65535 if any"
	URL string `json:"url,omitempty"`

	// inline is the document itself, as an object.
	// +optional
	// +kubebuilder:validation:Type=object
	Inline *apiextensionsv1.JSON `json:"inline,omitempty"`

	// configMapRef is a key of a ConfigMap of this namespace.
	// +optional
	ConfigMapRef *KeyRef `json:"configMapRef,omitempty"`
}

// OperationMatch matches operations of a document that have all that is given here.
//
// +kubebuilder:validation:MinProperties=1
type OperationMatch struct {
	// operation is a pattern of operationIds, in which '*' is any run of characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Operation string `json:"operation,omitempty"`

	// tag is a tag of the operation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Tag string `json:"tag,omitempty"`

	// method is the HTTP method.
	// +optional
	// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE
	Method string `json:"method,omitempty"`

	// path is a pattern of paths, in which '*' is any run of characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[/*]')",message="path must begin with '/' or '*'"
	Path string `json:"path,omitempty"`
}

// NamePrefix is put before names of tools, separator included.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.-]+$')",message="prefix must consist of letters, digits, '_', '-' and '.'"
type NamePrefix string

// PostgresTool is one SQL statement. Its result is an object with the member rows, a list of objects by column name.
type PostgresTool struct {
	// statement is one SQL statement, with $1, $2 and so on for parameters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="self.matches('[^ \\t\\r\\n]') && self.matches('^[^\\x00]*$')",message="statement must be an SQL statement, without NUL characters"
	Statement string `json:"statement,omitempty"`

	// parameters are those of the statement, in their order. Arguments are bound, never put into its text.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Parameters []SQLParameter `json:"parameters,omitempty"`

	// user is the role to log in as.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 63 && self.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]+$') && !self.matches('[\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="user must be the name of a role: at most 63 bytes, no invisible characters"
	User string `json:"user,omitempty"`

	// maxRows is how many rows are passed on at most. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxRows int32 `json:"maxRows,omitempty"`

	// tls is VerifyFull (the certificate must be for the host), VerifyCA (it must be by a CA of caBundle, for whatever host), or Disable,
	// which is for databases at private addresses alone.
	// +optional
	// +default="VerifyFull"
	// +kubebuilder:validation:Enum=VerifyFull;VerifyCA;Disable
	TLS string `json:"tls,omitempty"`
}

// SQLParameter is a parameter of a statement.
type SQLParameter struct {
	// argument is the name of the argument that is bound.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -~]+$')",message="argument must consist of letters, digits and signs of ASCII"
	Argument string `json:"argument,omitempty"`

	// type is its SQL type: Text, Integer, Number, Boolean, JSON, Timestamp, Date or UUID; with [] after it, a list of those. Default: it
	// follows from the argument's type in schema (string, integer, number, boolean; JSON for objects), else from the statement.
	// +optional
	// +kubebuilder:validation:Enum=Text;Integer;Number;Boolean;JSON;Timestamp;Date;UUID;Text[];Integer[];Number[];Boolean[];JSON[];Timestamp[];Date[];UUID[]
	Type string `json:"type,omitempty"`
}

// RemoteMCP is how to speak with a remote MCP server, and which of its tools become tools.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tools) || (has(self.trusted) && self.trusted) || ((!has(self.tools.readOnly) || !self.tools.readOnly) && (!has(self.tools.denyDestructive) || !self.tools.denyDestructive))",message="tools.readOnly and denyDestructive need trusted: they believe what the server says of its own tools"
type RemoteMCP struct {
	// prefix is put before the names of its tools and prompts, separator included. Default: none.
	// +optional
	Prefix NamePrefix `json:"prefix,omitempty"`

	// transport is StreamableHTTP, of any protocol version, or SSE.
	// +optional
	// +default="StreamableHTTP"
	// +kubebuilder:validation:Enum=StreamableHTTP;SSE
	Transport Transport `json:"transport,omitempty"`

	// tools says which of its tools are granted with this MCPTool. Default: all.
	// +optional
	Tools *ToolPolicy `json:"tools,omitempty"`

	// trusted lets the server's own tool annotations count: tools.readOnly and tools.denyDestructive need it. Default: false.
	// +optional
	Trusted bool `json:"trusted,omitempty"`
}
