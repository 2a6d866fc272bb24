package bench

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// leastOfProxy is how much of a reverse proxy's throughput the gateway reaches at least with short texts. It does more than a
// proxy: it reads every message.
const leastOfProxy = 0.6

// leastOfPeers is how many times the calls of other bridges the gateway carries at least.
const leastOfPeers = 3

var texts = []struct{ name, text string }{{"64 B", strings.Repeat("x", 64)}, {"64 KiB", strings.Repeat("x", 64<<10)}}

// BenchmarkCalls measures tool calls to a server over HTTP: directly, through a reverse proxy, and through the gateway.
func BenchmarkCalls(b *testing.B) {
	server, serverPID := start(b, asEcho)
	plain, plainPID := start(b, asProxy, server)
	backends := []table.Backend{{Name: "echo", URL: server + "/mcp"}}
	g := launch.Serve(b, binary, backends)
	guarded, bearer := serveTokens(b, backends)
	for b.Loop() {
		t := newReport("Tool calls over HTTP")
		for _, version := range []string{legacy, modern} {
			for _, text := range texts {
				for _, clients := range []int{1, 16, 64} {
					subjects := []*subject{
						newSubject(b, "nothing", server+"/mcp", serverPID, clients, version, text.text),
						newSubject(b, "reverse proxy", plain+"/mcp", plainPID, clients, version, text.text),
						newSubject(b, "gateway", g.URL, g.Process.Process.Pid, clients, version, text.text),
					}
					if clients == 16 && len(text.text) == 64 {
						subjects = append(subjects, newSubject(b, "gateway, tokens", guarded.URL, guarded.Process.Process.Pid,
							clients, version, text.text, "Authorization", "Bearer "+bearer))
					}
					measure(b, subjects...)
					for _, s := range subjects {
						t.subject(b, version, text.name, s)
					}
					share := subjects[2].rate() / subjects[1].rate()
					if len(text.text) == 64 && share < leastOfProxy {
						b.Errorf("%s, %d clients: the gateway reaches %.0f %% of a reverse proxy, at least %.0f are agreed on",
							version, clients, 100*share, 100*leastOfProxy)
					}
				}
			}
		}
		_ = t.Flush()
	}
	b.ReportMetric(0, "ns/op")
}

// serveTokens starts a gateway that lets in one ServiceAccount, and returns a token of that as Kubernetes signs it.
func serveTokens(b *testing.B, backends []table.Backend) (g *launch.Gateway, token string) {
	b.Helper()
	const issuer, subject, audience = "https://kubernetes.default.svc.cluster.local", "system:serviceaccount:team:agent", "bench"
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	public := jose.JSONWebKey{Key: key.Public(), KeyID: "k1", Algorithm: string(jose.RS256), Use: "sig"}
	file := filepath.Join(b.TempDir(), "table.json")
	launch.Write(b, file, encode(b, table.Table{
		Version: table.Version, Backends: backends,
		Auth: table.Auth{Type: table.AuthTokens, Audiences: []string{audience}, ServiceAccounts: &table.ServiceAccounts{
			Issuer: issuer, Subjects: []string{subject}, Keys: encode(b, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}}),
		}},
	}))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now().Unix()
	signed, err := signer.Sign(encode(b, map[string]any{
		"iss": issuer, "sub": subject, "aud": []string{audience}, "iat": now, "nbf": now, "exp": now + 3600,
	}))
	if err != nil {
		b.Fatal(err)
	}
	if token, err = signed.CompactSerialize(); err != nil {
		b.Fatal(err)
	}
	return launch.Run(b, binary, "serve", "--table", file, "--ephemeral-session-key"), token
}

func encode(b *testing.B, value any) []byte {
	b.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		b.Fatal(err)
	}
	return content
}

// BenchmarkStdio measures tool calls to a server on stdin and stdout, and beside it the bridges of others if they can be had.
func BenchmarkStdio(b *testing.B) {
	g := launch.Run(b, binary, "stdio", "--max-calls", "200", "--", os.Args[0], asStdio)
	peers := startPeers(b)
	for b.Loop() {
		t := newReport("Tool calls to a server on stdin and stdout")
		for _, version := range []string{legacy, modern} {
			for _, text := range texts {
				for _, clients := range []int{1, 16, 64} {
					subjects := []*subject{newSubject(b, "gateway", g.URL, g.Process.Process.Pid, clients, version, text.text)}
					for _, p := range peers {
						if clients != 16 || version != legacy || len(text.text) != 64 {
							continue
						}
						other := newSubject(b, p.name, p.url, p.pid, clients, version, text.text)
						other.warm(b, 10) // Node compiles what it has run for a while
						subjects = append(subjects, other)
					}
					measure(b, subjects...)
					for _, s := range subjects {
						t.subject(b, version, text.name, s)
					}
					for _, other := range subjects[1:] {
						if times := subjects[0].rate() / other.rate(); times < leastOfPeers {
							b.Errorf("the gateway carries %.1f times the calls of %s, at least %d are agreed on", times, other.name, leastOfPeers)
						}
					}
				}
			}
		}
		_ = t.Flush()
	}
	b.ReportMetric(0, "ns/op")
}

// peer is another bridge that runs.
type peer struct {
	name, url string
	pid       int
}

// startPeers starts the bridges of others; none if npm does not get them within a minute.
func startPeers(b *testing.B) []peer {
	b.Helper()
	dir := b.TempDir()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
		"supergateway@4.0.0", "mcp-proxy@6.7.19")
	if out, err := npm.CombinedOutput(); err != nil {
		b.Logf("other bridges are left out, npm does not get them: %v\n%s", err, out)
		return nil
	}
	command := []string{os.Args[0], asStdio}
	var peers []peer
	for _, p := range []struct {
		name string
		args func(port string) []string
	}{
		{"supergateway", func(port string) []string {
			return []string{"--stdio", strings.Join(command, " "), "--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", port}
		}},
		{"mcp-proxy", func(port string) []string {
			return append([]string{"--host", "127.0.0.1", "--server", "stream", "--port", port, "--"}, command...)
		}},
	} {
		address := launch.FreeAddress(b)
		_, port, _ := strings.Cut(address, ":")
		script, err := filepath.EvalSymlinks(filepath.Join(dir, "node_modules", ".bin", p.name))
		if err != nil {
			b.Fatal(err)
		}
		process := launch.Start(b, "node", append([]string{script}, p.args(port)...)...)
		await(b, address)
		peers = append(peers, peer{name: p.name, url: "http://" + address + "/mcp", pid: process.Process.Pid})
	}
	return peers
}
