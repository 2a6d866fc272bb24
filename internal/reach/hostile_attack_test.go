package reach

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// TestANameOfAnAddressThatIsDeniedIsNeitherReachedNorFetchedFrom: the operator looks at what a name stands for when it connects.
func TestANameOfAnAddressThatIsDeniedIsNeitherReachedNorFetchedFrom(t *testing.T) {
	listener, port := mcptest.Everywhere(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was reached", r.Host) }))
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	stand := mcptest.Names(t)
	for _, allowPrivate := range []bool{false, true} {
		checker := NewChecker(CheckerOptions{AllowPrivate: allowPrivate})
		fetcher := NewFetcher(FetcherOptions[string]{AllowPrivate: allowPrivate, MaxBytes: 10, Use: func(context.Context, Document, []byte) (string, error) {
			return "", nil
		}})
		denied := []string{"127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "::ffff:127.0.0.1", "0.0.0.0", "fe80::1"}
		if !allowPrivate { // addresses of Pods, Services and nodes
			denied = append(denied, "10.96.0.1", "172.18.0.2", "192.168.1.1", "100.64.0.1", "fd12::1")
		}
		for _, address := range denied {
			stand(address)
			for _, host := range []string{"api.example.com", "kubernetes.default.svc", "metadata.google.internal"} {
				verdict, ok := checker.attempt(t.Context(), Endpoint{Host: host, Port: port, Security: Plain}, Verdict{})
				if verdict.Reason != "AddressDenied" || ok {
					t.Errorf("%s at %s: %s: %s", host, address, verdict.Reason, verdict.Message)
				}
				fetched, ok := fetcher.attempt(t.Context(), Document{URL: "http://" + host + ":" + port + "/"}, Fetched[string]{})
				if ok || !strings.Contains(fetched.Problem, "address") {
					t.Errorf("a document of %s at %s: %+v", host, address, fetched)
				}
			}
		}
	}
}

// TestADocumentWithoutEndCostsLittle: neither in its header nor in its body, and it is not unpacked.
func TestADocumentWithoutEndCostsLittle(t *testing.T) {
	x := strings.Repeat("x", 32<<10)
	for name, tc := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"a body":               {mcptest.Endless("application/json", `{"openapi":"`, x), "it has more than 1048576 bytes, which is the limit"},
		"a header":             {mcptest.HugeHeader(1 << 20), "docs.example.com gives no HTTP response"},
		"a bomb":               {mcptest.GzipBomb(48 << 20), "it is packed"},
		"redirects":            {mcptest.Redirect("/again"), "docs.example.com redirects to another host, or too often: name the document's own address"},
		"a redirect inside":    {mcptest.Redirect("http://169.254.169.254/latest/meta-data/"), "docs.example.com redirects to another host"},
		"a redirect to a file": {mcptest.Redirect("file:///var/run/secrets/kubernetes.io/serviceaccount/token"), "docs.example.com redirects to another host"},
		"another port":         {mcptest.Redirect("http://docs.example.com:10250/pods"), "docs.example.com redirects to another host"},
		"words of its own":     {mcptest.Status(http.StatusTeapot), "docs.example.com answers with the HTTP status 418 (I'm a teapot)"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			t.Cleanup(server.CloseClientConnections)
			use := func(_ context.Context, _ Document, content []byte) (string, error) {
				if strings.HasPrefix(string(content), "\x1f\x8b") {
					return "", errors.New("it is packed")
				}
				return "used", nil
			}
			f := NewFetcher(FetcherOptions[string]{Dial: leadTo(server), MaxBytes: 1 << 20, Use: use})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, ok := f.attempt(t.Context(), Document{Subject: demo, URL: "http://docs.example.com/openapi.json"}, Fetched[string]{})
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
				t.Errorf("%d bytes were allocated", grown)
			}
			if ok || !strings.HasPrefix(got.Problem, tc.want) || strings.Contains(got.Problem, mcptest.Canary) {
				t.Errorf("%+v, want the problem %q", got, tc.want)
			}
		})
	}
}

// TestADocumentThatComesByDropsIsGivenUpAfterAMinute: the time is that of all of it.
func TestADocumentThatComesByDropsIsGivenUpAfterAMinute(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{"its body": "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", "its header": "HTTP/1.1 200 OK\r\nX-A: "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := makeFetcher(func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go func() {
					_, _ = server.Read(make([]byte, 4096))
					_, err := io.WriteString(server, head)
					for err == nil {
						<-time.After(5 * time.Second)
						_, err = io.WriteString(server, "x")
					}
				}()
				return client, nil
			})
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				got, ok := f.attempt(t.Context(), Document{URL: "http://docs.example.com/"}, Fetched[string]{})
				if took := time.Since(begun); ok || got.Problem == "" || took > time.Minute {
					t.Errorf("%+v after %s", got, took)
				}
				<-time.After(10 * time.Second) // the writer sees that nobody reads
			})
		})
	}
}

// TestNoProxyIsAskedForADocument, whatever the environment of the operator says.
func TestNoProxyIsAskedForADocument(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it was asked for %s", r.RequestURI) }))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "new") }))
	t.Cleanup(server.Close)
	for _, url := range []string{"http://docs.example.com/", "http://docs.example.com:8080/"} {
		if got, ok := makeFetcher(leadTo(server)).attempt(t.Context(), Document{URL: url}, Fetched[string]{}); !ok {
			t.Errorf("%s: %s", url, got.Problem)
		}
	}
}
