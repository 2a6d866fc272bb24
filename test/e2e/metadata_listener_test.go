package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

const (
	// metadataAddress is where most clouds offer a node's credentials to whoever asks.
	metadataAddress = "169.254.169.254"

	// listenerAddress is the environment variable that makes this program listen there and do nothing else: tests start
	// it again in the network of a node.
	listenerAddress = "E2E_LISTEN_ON"

	// listening is what it prints when it does.
	listening = "listening"
)

// listen answers every HTTP request at address until standard input ends, which is when the test does.
func listen(address string) int {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "credentials\n") }))
	}()
	_, _ = fmt.Fprintln(os.Stdout, listening)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// metadataNode is held by the test that plays the metadata service: there is one such address on the node.
var metadataNode sync.Mutex

// listenOnMetadataAddress plays the metadata service of a cloud on one node of the local cluster, whose network is a
// namespace of this machine, until the test ends. It returns the node's name.
func (f *fixture) listenOnMetadataAddress() string {
	f.t.Helper()
	const node = "node1"
	network := "mcpdev-" + node
	if _, err := os.Stat(filepath.Join("/run/netns", network)); err != nil {
		f.t.Skipf("only the local cluster has nodes whose network is a namespace of this machine: %v", err)
	}
	metadataNode.Lock()
	f.t.Cleanup(metadataNode.Unlock) // runs last, after the address was taken away
	inNode := func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", network}, args...)...)
	}
	ip := func(ctx context.Context, verb string) error {
		out, err := inNode(ctx, "ip", "address", verb, metadataAddress+"/32", "dev", "lo").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s the address of a metadata service in %s: %w: %s", verb, network, err, out)
		}
		return nil
	}
	if err := ip(f.t.Context(), "replace"); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := ip(context.Background(), "del"); err != nil {
			f.t.Error(err)
		}
	})
	listener := inNode(context.Background(), os.Args[0])
	listener.Env = append(os.Environ(), listenerAddress+"="+metadataAddress+":80")
	listener.Stderr = os.Stderr
	stdin, err := listener.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	stdout, err := listener.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := listener.Start(); err != nil {
		f.t.Fatalf("listen in the network of %s: %v", node, err)
	}
	f.t.Cleanup(func() {
		_ = stdin.Close()
		if err := listener.Wait(); err != nil {
			f.t.Errorf("the listener in the network of %s: %v", node, err)
		}
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); strings.TrimSpace(line) != listening {
		f.t.Fatalf("the listener in the network of %s says %q: %v", node, line, err)
	}
	return node
}
