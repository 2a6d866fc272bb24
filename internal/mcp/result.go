package mcp

// Result is what a full probe learned. All text in it comes from the server,
// but is valid UTF-8 without control, bidirectional or invisible characters,
// and bounded.
type Result struct {
	// Server is how the server names itself; empty where it does not.
	Server ServerInfo
	// ProtocolVersion is the revision spoken with the server. It is empty if
	// the server asked for credentials before the handshake.
	ProtocolVersion string
	// ProtocolVersions are all revisions the server says it speaks, newest
	// first; at least ProtocolVersion.
	ProtocolVersions []string
	// Instructions is the server's advice for using it, at most
	// Limits.InstructionsBytes.
	Instructions string
	// Capabilities are what the server offers.
	Capabilities Capabilities
	// Stateful says that the server handed out an Mcp-Session-Id.
	Stateful bool

	// AuthRequired says that the server answered 401 with a Bearer challenge:
	// it is reachable and an MCP resource server, its lists were not read.
	AuthRequired bool
	// ResourceMetadata is the address named by that challenge, only to be
	// shown, never to be dialled.
	ResourceMetadata string

	// Tools are the tools sorted by name, at most Limits.Tools.
	Tools []Tool
	// ToolCount is the number of tools with a valid and distinct name, also
	// of those that Tools had no room for. Nil: the server offers no tools.
	ToolCount *int32
	// ToolsTruncated says that Tools lacks some that ToolCount counts.
	ToolsTruncated bool
	// ToolsDigest is "sha256:" and a hexadecimal SHA-256 over the names and
	// digests of all tools that ToolCount counts, whatever order the server
	// lists them in. Empty: the tools were not read.
	ToolsDigest string
	// DroppedTools counts tools that no client can use: those whose name is
	// not 1-128 characters of A-Z a-z 0-9 _ - . or was listed before, and those
	// whose definition is not a JSON object or has a key twice.
	DroppedTools int32

	// PromptCount is the number of prompts. Nil: not offered, or unread.
	PromptCount *int32
	// ResourceCount is the number of resources. Nil: not offered, or unread.
	ResourceCount *int32
	// ResourceTemplateCount is the number of resource templates. Nil: not
	// offered, or unread.
	ResourceTemplateCount *int32
	// Unread names the lists (such as "prompts/list") that the server offers
	// but that could not be read to their end. tools/list is never among them:
	// without it the probe fails.
	Unread []string
}

// ServerInfo is how a server names itself.
type ServerInfo struct {
	// Name is the server's name for programs.
	Name string
	// Title is the server's name for people.
	Title string
	// Version is the server's own version.
	Version string
}

// Capabilities are what a server says it offers.
type Capabilities struct {
	// Tools, Resources and Prompts can be listed.
	Tools, Resources, Prompts bool
	// Logging and Completions are offered.
	Logging, Completions bool
	// ToolsListChanged, ResourcesListChanged and PromptsListChanged say that
	// the server announces changes of that list.
	ToolsListChanged, ResourcesListChanged, PromptsListChanged bool
}

// Tool is one tool of a server.
type Tool struct {
	// Name is the tool's name: 1-128 characters of A-Z a-z 0-9 _ - .
	Name string
	// Digest is "sha256:" and the hexadecimal SHA-256 of the canonical JSON of
	// the members name, title, description, inputSchema, outputSchema and
	// annotations that the tool has: keys sorted by their UTF-8 bytes, no white
	// space, strings with the fewest escapes, numbers as written.
	Digest string
}
