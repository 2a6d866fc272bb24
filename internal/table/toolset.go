package table

import "encoding/json"

// TransportToolset is no server at all: the gateway itself offers the tools of Backend.Toolset, by protocol version 2026-07-28.
const TransportToolset Transport = "Toolset"

// Toolset is a set of tools that are made of something else than an MCP server: operations of the HTTP API at Backend.URL (HTTP,
// Files or both), or one SQL statement (Postgres), not both.
//
// An HTTP API gets Backend.Credential; its certificate, and a database's, is verified with Backend.CAFile.
// Backend.TimeoutSeconds bounds a call; default 30.
type Toolset struct {
	// HTTP are operations of the API, at most 512, offered in this order.
	HTTP []HTTPTool `json:"http,omitempty"`
	// Files hold further operations, at most 16, offered in this order after those of HTTP.
	Files []ToolFile `json:"files,omitempty"`
	// Postgres is one SQL statement.
	Postgres *PostgresTool `json:"postgres,omitempty"`
}

// ToolFile is an object {"http": [...]}, whose elements are HTTPTools, for sets that a table has no room for: a mounted file, or
// a key of a ConfigMap that the gateway fetches by its name. See ParseTools.
type ToolFile struct {
	// File is the absolute path of a mounted file. Either it or ConfigMap is given.
	File string `json:"file,omitempty"`
	// ConfigMap is the name of a ConfigMap in the namespace of the gateway's own (--configmap). It must never change: it is
	// fetched once, and is best immutable and named by its content.
	ConfigMap string `json:"configMap,omitempty"`
	// Key is that of the ConfigMap's data or binaryData. What is under a key that ends in ".gz" is unpacked.
	Key string `json:"key,omitempty"`
	// SHA256 is that of the content, unpacked, in 64 lower-case hexadecimal digits. Content that has another is not used. It
	// has at most MaxToolFileBytes.
	SHA256 string `json:"sha256"`
}

// HTTPTool is one operation of an HTTP API. An argument that is absent or null is left out of the request.
type HTTPTool struct {
	// Definition is the tool as clients are shown it: name, title, description, inputSchema, outputSchema, annotations. With an
	// outputSchema the response must be JSON that fits it, and becomes the structuredContent of the result.
	Definition json.RawMessage `json:"definition"`
	// Method is GET, HEAD, POST, PUT, PATCH or DELETE.
	Method string `json:"method"`
	// Path is appended to the path of Backend.URL. It is empty or begins with '/'. "{name}" stands for the argument of that name, a
	// string, number, boolean, or a list of those, which is joined by commas. An argument never adds a segment.
	Path string `json:"path,omitempty"`
	// Query are the parameters after the '?', in this order.
	Query []Param `json:"query,omitempty"`
	// Header are the headers, besides those the gateway sets. Lists are joined by commas.
	Header []Param `json:"header,omitempty"`
	// Body is sent with POST, PUT, PATCH and DELETE; none by default.
	Body *Body `json:"body,omitempty"`
	// Response says what becomes of the response.
	Response Response `json:"response,omitzero"`
}

// Param is one parameter of a request: the value of an argument, or a constant.
type Param struct {
	// Name is its name in the request.
	Name string `json:"name"`
	// Argument is the name of the argument. Default Name.
	Argument string `json:"argument,omitempty"`
	// Value is a constant to send instead of an argument: any JSON in a JSON body, else a string, number or boolean.
	Value json.RawMessage `json:"value,omitempty"`
	// Style is how lists and objects are written in the query. Default StyleRepeat.
	Style ParamStyle `json:"style,omitempty"`
}

// ParamStyle is how a query parameter that has more than one value is written (OpenAPI 3.1, "Style Values").
type ParamStyle string

const (
	// StyleRepeat writes ids=1&ids=2: OpenAPI's form with explode, its default. Objects are refused.
	StyleRepeat ParamStyle = "Repeat"
	// StyleComma writes ids=1,2: form without explode. Objects are refused.
	StyleComma ParamStyle = "Comma"
	// StyleSpace writes ids=1%202: spaceDelimited without explode. Objects are refused.
	StyleSpace ParamStyle = "Space"
	// StylePipe writes ids=1%7C2: pipeDelimited without explode. Objects are refused.
	StylePipe ParamStyle = "Pipe"
	// StyleDeep writes filter[a]=1&filter[b]=2 of an object whose members are strings, numbers or booleans: deepObject.
	StyleDeep ParamStyle = "DeepObject"
	// StyleJSON writes any value as JSON text.
	StyleJSON ParamStyle = "JSON"
)

// BodyType is how a body is written.
type BodyType string

const (
	// BodyJSON is application/json.
	BodyJSON BodyType = "JSON"
	// BodyForm is application/x-www-form-urlencoded. Lists are repeated, objects are refused.
	BodyForm BodyType = "Form"
)

// Body is the content of a request: one argument, or named members; with neither, an object of all arguments that are used nowhere
// else in the request.
type Body struct {
	// Type is BodyJSON by default.
	Type BodyType `json:"type,omitempty"`
	// Argument is the name of the one whose value is the whole body. BodyJSON only.
	Argument string `json:"argument,omitempty"`
	// Members are those of an object.
	Members []Param `json:"members,omitempty"`
}

// Response says what becomes of a response.
type Response struct {
	// MaxBytes is the largest response, 1 to 16 MiB. Default 1 MiB. What is larger is refused.
	MaxBytes int `json:"maxBytes,omitempty"`
	// Select is a JSON pointer (RFC 6901) to the part of a JSON response that is the result. Empty is all of it.
	Select string `json:"select,omitempty"`
}

// PostgresTool is one SQL statement as a tool. The result is an object with the member "rows", a list of objects by column name,
// "truncated": true if there were more than allowed, and "rowsAffected" if the statement returns none.
type PostgresTool struct {
	// Definition is the tool as clients are shown it; see HTTPTool.
	Definition json.RawMessage `json:"definition"`
	// Statement is one SQL statement with $1, $2 and so on for Params. Arguments are bound, never put into its text.
	Statement string `json:"statement"`
	// Params are the statement's parameters in their order. An argument that is absent or null is bound as NULL.
	Params []SQLParam `json:"params,omitempty"`
	// Write lets the statement change something. Otherwise it runs in a READ ONLY transaction.
	Write bool `json:"write,omitempty"`
	// MaxRows is the largest number of rows, 1 to 10,000. Default 100.
	MaxRows int `json:"maxRows,omitempty"`
	// MaxBytes bounds the rows together, as JSON: 1 KiB to 16 MiB. Default 1 MiB.
	MaxBytes int `json:"maxBytes,omitempty"`
	// Host is a DNS name or an IP address.
	Host string `json:"host"`
	// Port is 5432 by default.
	Port int `json:"port,omitempty"`
	// Database is the name of the database.
	Database string `json:"database"`
	// User is the role to log in as.
	User string `json:"user"`
	// PasswordFile holds the password; trailing line feeds are cut. It is read again for every connection. Empty sends none.
	PasswordFile string `json:"passwordFile,omitempty"`
	// TLS is TLSVerifyFull by default.
	TLS TLSMode `json:"tls,omitempty"`
}

// TLSMode is how a connection to a database is secured. What is not encrypted at all is never fallen back to.
type TLSMode string

const (
	// TLSVerifyFull demands a certificate for the host, by a CA of Backend.CAFile or of the system.
	TLSVerifyFull TLSMode = "VerifyFull"
	// TLSVerifyCA demands a certificate by a CA of Backend.CAFile, for whatever host.
	TLSVerifyCA TLSMode = "VerifyCA"
	// TLSDisable does not encrypt. It needs Backend.AllowPrivate, and public addresses are not dialled then.
	TLSDisable TLSMode = "Disable"
)

// SQLParam is a parameter of a statement.
type SQLParam struct {
	// Argument is the name of the argument that is bound.
	Argument string `json:"argument"`
	// Type is its SQL type; empty has the server derive it from the statement.
	Type SQLType `json:"type,omitempty"`
}

// SQLType is the type of a parameter.
type SQLType string

// The types of parameters, by the JSON they are for; with SQLArray after it, such as "Integer[]", the type of a list of those.
const (
	SQLText      SQLType = "Text"      // text, of a string
	SQLInteger   SQLType = "Integer"   // bigint
	SQLNumber    SQLType = "Number"    // numeric
	SQLBoolean   SQLType = "Boolean"   // boolean
	SQLJSON      SQLType = "JSON"      // jsonb, of any value
	SQLTimestamp SQLType = "Timestamp" // timestamptz, of an RFC 3339 string
	SQLDate      SQLType = "Date"      // date, of a string
	SQLUUID      SQLType = "UUID"      // uuid, of a string
	SQLArray             = "[]"
)
