// Package gateway tests the gateway's binary between clients and servers as people have them: of the Go SDK and of a second
// implementation, in every protocol version and over every transport.
package gateway

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// binary is the gateway's.
var binary string

// asServer makes this program the server that the tests put behind the gateway, on its standard input and output.
const asServer = "serve-on-stdio"

// programs are what this one can be besides the tests, by its first argument.
var programs = map[string]func(args []string) error{
	asServer:  func([]string) error { return newServer("stdio").Run(context.Background(), &mcp.StdioTransport{}) },
	asPod:     servePod,
	asReplica: serveReplica,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		if err := programs[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "mcp-gateway")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "../../cmd/mcp-gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the gateway: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// maxBinary is how large the gateway may be: it is copied into the pods of servers, and pulled at their start.
const maxBinary = 12 << 20

func TestTheBinaryIsSmall(t *testing.T) {
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxBinary {
		t.Errorf("the stripped binary has %d bytes, at most %d are agreed on", info.Size(), maxBinary)
	}
}
