package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// bench is what a run needs: the suites, the gateway's binary, and the server behind it.
type bench struct {
	node, modules string
	binary        string
	// everything is the Go SDK's server that does what the suites ask for; on its standard input and output it speaks every
	// protocol version.
	everything string
	// fixture is the URL of such a server that speaks every version over HTTP.
	fixture string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{}
	b.node, b.modules = install(t)
	bin := t.TempDir()
	b.binary = launch.Build(t, filepath.Join(bin, "mcp-gateway"), "github.com/mcp-operator/mcp-operator/cmd/mcp-gateway")
	b.everything = launch.Build(t, filepath.Join(bin, "everything-server"), "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	b.fixture = startFixture(t, buildFixture(t, bin))
	return b
}

// install brings the suites and Node to the versions of npm/package-lock.json. With nothing to do it needs no network.
func install(t *testing.T) (node, modules string) {
	t.Helper()
	dir := cacheFolder(t)
	modules = filepath.Join(dir, "node_modules")
	architecture := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	node = filepath.Join(modules, "node-linux-"+architecture, "bin", "node")
	lock := contentOf(t, "npm/package-lock.json")
	sum := sha256.Sum256(lock)
	want := hex.EncodeToString(sum[:])
	stamp := filepath.Join(dir, "installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return node, modules
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	launch.Write(t, filepath.Join(dir, "package.json"), contentOf(t, "npm/package.json"))
	launch.Write(t, filepath.Join(dir, "package-lock.json"), lock)
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=5")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in %s (check the network and `npm config get registry`): %v\n%s", dir, err, out)
	}
	launch.Write(t, stamp, []byte(want))
	return node, modules
}

func contentOf(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// buildFixture builds the SDK's program with one call in it replaced, so that it serves every version over HTTP.
func buildFixture(t *testing.T, bin string) string {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/modelcontextprotocol/go-sdk").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := contentOf(t, filepath.Join(strings.TrimSpace(string(module)), "conformance", "everything-server", "main.go"))
	const call = "handler := mcp.NewStreamableHTTPHandler("
	if bytes.Count(program, []byte(call)) != 1 {
		t.Fatalf("the SDK's server has changed: %q is not in it once", call)
	}
	dir := t.TempDir()
	sources := []string{filepath.Join(dir, "main.go"), filepath.Join(dir, "both.go")}
	launch.Write(t, sources[0], bytes.Replace(program, []byte(call), []byte("handler := bothVersions("), 1))
	launch.Write(t, sources[1], contentOf(t, "testdata/both.go"))
	return launch.Build(t, filepath.Join(bin, "fixture"), sources...)
}

// startFixture starts a server over HTTP.
func startFixture(t *testing.T, program string) (url string) {
	t.Helper()
	address := launch.FreeAddress(t)
	launch.Start(t, program, "-http", address)
	launch.Await(t, func() error {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	return "http://" + address + "/mcp"
}

// startOther starts a server that has nothing the fixture has.
func startOther(t *testing.T) (url string) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "other", Version: "1"}, nil)
	nothing := func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "nothing", Description: "Does nothing."}, nothing)
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}

const fixtureName, otherName = "fixture", "other"

// start starts a gateway in front of these backends, whose URLs are filled in.
func (b *bench) start(t *testing.T, backends []table.Backend) (url string) {
	t.Helper()
	if backends == nil {
		return launch.Run(t, b.binary, "stdio", "--", b.everything).URL
	}
	backends = slices.Clone(backends)
	for i := range backends {
		backends[i].URL = b.fixture
		if backends[i].Transport == table.TransportSSE {
			backends[i].URL = strings.TrimSuffix(b.fixture, "/mcp") + "/sse"
		}
		if backends[i].Name == otherName {
			backends[i].URL = startOther(t)
		}
	}
	return launch.Serve(t, b.binary, backends).URL
}
