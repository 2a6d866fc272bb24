package table

import "time"

// Status is what a gateway learned, served as JSON under /status for the operator. It carries error classes, and no text that a
// backend wrote but BackendStatus.ErrorDetail.
type Status struct {
	// Revision is the table in use.
	Revision string `json:"revision,omitempty"`
	// TableError says why a newer table was refused; the one in use serves on.
	TableError string `json:"tableError,omitempty"`
	// GatewayVersion is the build.
	GatewayVersion string `json:"gatewayVersion"`
	// Formats are the table formats this build reads.
	Formats []int `json:"formats"`
	// Draining is true once the gateway was told to stop.
	Draining bool            `json:"draining,omitempty"`
	Backends []BackendStatus `json:"backends"`
}

// BackendState is how a backend does.
type BackendState string

const (
	// BackendUnknown has not been asked yet.
	BackendUnknown BackendState = "Unknown"
	// BackendReady answered MCP.
	BackendReady BackendState = "Ready"
	// BackendFailed did not, lately; its last catalog is served on while calls fail.
	BackendFailed BackendState = "Failed"
)

// BackendStatus is what is known of one backend.
type BackendStatus struct {
	Name  string       `json:"name"`
	State BackendState `json:"state"`
	// ErrorClass is why State is BackendFailed: "DNS", "Connect", "TLS", "Timeout", "Unauthorized", "Forbidden", "NotFound",
	// "Credential" (the gateway's own, or its certificates, cannot be used), "NotMCP", "ServerError", "ChildExited", "ChildSilent",
	// "TooLarge"; of a Toolset also "Denied" (its address may not be dialled), "Definition" (what holds its tools is not there, or not
	// as expected), "Statement" (the database refuses its statement) and "NotPostgres" (what answers at its place is no PostgreSQL server).
	ErrorClass string `json:"errorClass,omitempty"`
	// ErrorDetail says more of the classes "Denied", "Definition", "Statement", "Credential" and "Forbidden", in at most 256 bytes of
	// printable text without any secret; of a Toolset that is BackendReady it says which of its tools cannot be offered. It is in the gateway's own
	// words, but for "Statement": the database's SQLSTATE and message are in it.
	ErrorDetail string `json:"errorDetail,omitempty"`
	// Since is when State last changed.
	Since time.Time `json:"since,omitzero"`
	// ProtocolVersions are what it speaks, newest first.
	ProtocolVersions []string `json:"protocolVersions,omitempty"`
	ServerName       string   `json:"serverName,omitempty"`
	ServerVersion    string   `json:"serverVersion,omitempty"`
	// CatalogDigest covers all its tools, prompts and resources.
	CatalogDigest string       `json:"catalogDigest,omitempty"`
	Tools         []ToolStatus `json:"tools,omitempty"`
	PromptCount   int          `json:"promptCount,omitempty"`
	ResourceCount int          `json:"resourceCount,omitempty"`
	// Truncated are the methods, such as "tools/list", whose lists are longer than the gateway takes: of them the first entries are
	// served where there are several backends. The list of a lone backend is passed on whole, unless its policy goes by annotations.
	Truncated []string `json:"truncated,omitempty"`
	// Unread are the methods that failed when the lists were read last; what they listed before is served on. tools/list is never among
	// them: when that fails, so does the backend.
	Unread []string `json:"unread,omitempty"`
	// Conflicts are names of prompts, resources and resource templates that this backend and others offer, so that none of them serves
	// them: sorted, at most MaxConflicts, cut to MaxConflictName and made printable. Those of tools are in Tools.
	Conflicts []NameConflict `json:"conflicts,omitempty"`
	// ConflictCount is how many there are, also those that Conflicts has no room for.
	ConflictCount int `json:"conflictCount,omitempty"`
	// Child is set for a stdio backend.
	Child *ChildStatus `json:"child,omitempty"`
}

// ToolVerdict is what became of a backend's tool.
type ToolVerdict string

const (
	// ToolServed is listed and can be called.
	ToolServed ToolVerdict = "Served"
	// ToolDenied is held back by policy.
	ToolDenied ToolVerdict = "Denied"
	// ToolConflict has a name that another backend offers too: neither is served.
	ToolConflict ToolVerdict = "Conflict"
	// ToolMissing is granted or renamed by its whole name, and not in the list that the gateway reads for itself. A lone backend may offer
	// it to a client's session all the same, and there it is served: each replica would know of its own sessions, so nothing is noted of it.
	ToolMissing ToolVerdict = "Missing"
	// ToolInvalid breaks the rules for names or schemas.
	ToolInvalid ToolVerdict = "Invalid"
)

// ToolStatus is one tool of a backend.
type ToolStatus struct {
	// Name is what clients see, Original what the backend says.
	Name     string `json:"name"`
	Original string `json:"original"`
	// Digest is that of its definition as the backend has it, under its original name: the same as in the operator's status of an
	// MCPServer or MCPTool. Empty for one that is ToolInvalid for its definition.
	Digest  string      `json:"digest,omitempty"`
	Verdict ToolVerdict `json:"verdict"`
	// Reason says which rule denied it, what it conflicts with, or what is wrong with it.
	Reason string `json:"reason,omitempty"`
}

// Limits of BackendStatus.Conflicts.
const (
	MaxConflicts        = 32
	MaxConflictName     = 256 // bytes
	MaxConflictBackends = 16
)

// NameConflict is a name that several backends offer.
type NameConflict struct {
	// Kind is "prompt", "resource" or "resourceTemplate".
	Kind string `json:"kind"`
	// Name is what clients would see: of a resource its URI, of a template its text.
	Name string `json:"name"`
	// Backends are the names of all that offer it, in the table's order, at most MaxConflictBackends.
	Backends []string `json:"backends"`
}

// ChildStatus is how the processes of a stdio backend do.
type ChildStatus struct {
	// Running is how many run.
	Running int `json:"running"`
	// Restarts counts starts that followed an unwanted end.
	Restarts int `json:"restarts"`
	// LastExit is how the last one ended: "exit status 1", "signal: killed"; empty if none did.
	LastExit string `json:"lastExit,omitempty"`
	// NoiseLines counts lines on stdout that were not MCP.
	NoiseLines int64 `json:"noiseLines,omitempty"`
}
