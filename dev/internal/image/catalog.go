package image

// Kind is how an image comes to be.
type Kind string

const (
	// Dev is a main package of this module, or one that it names as a tool.
	Dev Kind = "dev"
	// Project is a main package of the repository's root module.
	Project Kind = "project"
	// Go is a main package of another Go module, at the version in images/go.mod.
	Go Kind = "go"
	// NPM is a package of the npm registry on top of Node, at the versions in images/npm/NAME/package-lock.json.
	NPM Kind = "npm"
	// NPMBinary is a static binary that an npm package carries, pinned in the same way.
	NPMBinary Kind = "npm-binary"
	// PostgreSQL is the database, out of the npm package that carries it, started by a main package of this module.
	PostgreSQL Kind = "postgresql"
)

// Definition is one image, named mcp-operator/NAME:dev.
type Definition struct {
	Name string
	Kind Kind
	// Source is, by kind: the main package's path; for NPM the script in node_modules that node runs;
	// for NPMBinary the binary in node_modules.
	Source string
	// Cmd are the default arguments, which a pod's args replace.
	Cmd []string
	Env []string
	// Port is what the default arguments make it listen on.
	Port int
	// Data is a file in the node_modules of images/npm/NAME, which a Dev image finds in its folder /data.
	Data string
	// OnlyFor is the one architecture (GOARCH) it is made for; empty is any.
	OnlyFor string
	// About is shown by `devcluster images --list`.
	About string
}

// Catalog is every image that `devcluster images` can make. An MCP server listens on port 8080, path /mcp.
var Catalog = []Definition{
	{
		Name: "mcp-operator", Kind: Project, Source: "./cmd/mcp-operator",
		About: "the operator",
	},
	{
		Name: "mcp-gateway", Kind: Project, Source: "./cmd/mcp-gateway",
		About: "the gateway: the data plane, and what runs servers of standard input and output",
	},
	{
		Name: "echo", Kind: Dev, Source: "./cmd/echo", Cmd: []string{"serve"}, Port: 8080,
		About: "a plain HTTP server that speaks no MCP, and a client for tests",
	},
	{
		Name: "everything", Kind: Go, Source: "github.com/modelcontextprotocol/go-sdk/conformance/everything-server",
		Cmd: []string{"-http", "0.0.0.0:8080"}, Port: 8080,
		About: "the conformance server of the MCP Go SDK (stateless, protocol version 2026-07-28)",
	},
	{
		Name: "mcp-grafana", Kind: Go, Source: "github.com/grafana/mcp-grafana/cmd/mcp-grafana",
		Cmd: []string{"-t", "streamable-http", "-address", "0.0.0.0:8080"}, Port: 8080,
		About: "Grafana's server: 81 tools, refuses any Host header but localhost:8080 and 127.0.0.1:8080",
	},
	{
		Name: "server-everything", Kind: NPM, Source: "@modelcontextprotocol/server-everything/dist/index.js",
		Cmd: []string{"streamableHttp"}, Env: []string{"PORT=8080"}, Port: 8080,
		About: "the reference server in TypeScript (sessions, protocol version 2025-11-25)",
	},
	{
		Name: "kubernetes-mcp-server", Kind: NPMBinary, Source: "kubernetes-mcp-server-linux-amd64/bin/kubernetes-mcp-server-linux-amd64", OnlyFor: "amd64",
		Cmd: []string{"--port", "8080"}, Port: 8080,
		About: "a server for Kubernetes itself (sessions); its pod needs the token of a ServiceAccount",
	},
	{
		Name: "petstore", Kind: Dev, Source: "./cmd/petstore", Cmd: []string{"--document", "/data/petstore.json"}, Port: 8080,
		Data:  "@readme/oas-examples/3.0/json/petstore.json",
		About: "an HTTP API that serves a public OpenAPI document, Swagger's Petstore, and tells what it was asked",
	},
	{
		Name: "postgres", Kind: PostgreSQL, Source: "./cmd/postgres", OnlyFor: "amd64", Port: 5432,
		About: "PostgreSQL 18, set up at its start as the official image is: POSTGRES_PASSWORD, /docker-entrypoint-initdb.d",
	},
	{
		Name: "metrics-server", Kind: Dev, Source: "sigs.k8s.io/metrics-server/cmd/metrics-server", Port: 10250,
		About: "the CPU and memory of pods, for autoscalers: dev/metrics-server.yaml runs it",
	},
}

// Ref is the image's name.
func (d Definition) Ref() string { return "mcp-operator/" + d.Name + ":dev" }

// Find returns the definition of that name.
func Find(name string) (Definition, bool) {
	for _, d := range Catalog {
		if d.Name == name {
			return d, true
		}
	}
	return Definition{}, false
}
