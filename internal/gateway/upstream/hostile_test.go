package upstream

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// canary is in everything a hostile server writes.
const canary = "canary-7f3a"

func asJSON(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func asStream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = io.WriteString(w, e)
		}
	}
}

func event(data string) string { return "event: message\ndata: " + data + "\n\n" }

func asStatus(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// endless writes the head and then the same again and again, until nobody reads it.
func endless(mediaType, head, again string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, err := io.WriteString(w, head)
		for err == nil {
			_, err = io.WriteString(w, again)
		}
	}
}

// silent writes a part of a response, and no more.
func silent(mediaType, part string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// cut ends the connection after a part of a response.
func cut(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, part)
	}
}

// cutIn does so in the middle of a body.
func cutIn(mediaType, part string) http.HandlerFunc {
	return cut("HTTP/1.1 200 OK\r\nContent-Type: " + mediaType + "\r\nContent-Length: 900000\r\n\r\n" + part)
}

const (
	mediaOfJSON   = "application/json"
	mediaOfStream = "text/event-stream"
	result1       = `{"jsonrpc":"2.0","id":1,"result":{"text":"` + canary + `"}}`
	failed1       = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"` + canary + `"}}`
	notification  = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + canary + `"}}`
)

// hostileServers are what a server may do wrong, and the class of the error that has to come of it.
func hostileServers() map[string]struct {
	serve http.HandlerFunc
	class string
} {
	x64k := strings.Repeat("x", 64<<10)
	return map[string]struct {
		serve http.HandlerFunc
		class string
	}{
		"an endless object":   {endless(mediaOfJSON, `{"jsonrpc":"2.0","id":1,"result":"`, x64k), "TooLarge"},
		"endless white space": {endless(mediaOfJSON, ``, strings.Repeat(" ", 4096)), "NotMCP"},
		"a length over the limit": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaOfJSON)
			w.Header().Set("Content-Length", "99999999999")
			w.WriteHeader(http.StatusOK)
		}, "TooLarge"},
		"endless events":                  {endless(mediaOfStream, ``, event(notification)), "TooLarge"},
		"endless comments":                {endless(mediaOfStream, ``, ": "+canary+"\n"), "TooLarge"},
		"an endless line":                 {endless(mediaOfStream, `data: {"jsonrpc":"2.0","method":"`, x64k), "TooLarge"},
		"an event of endless lines":       {endless(mediaOfStream, ``, "data: "+x64k+"\n"), "TooLarge"},
		"an endless response in an event": {endless(mediaOfStream, `data: {"jsonrpc":"2.0","id":1,"result":"`, x64k), "TooLarge"},
		"silence in an object":            {silent(mediaOfJSON, `{"jsonrpc":"2.0",`), "Timeout"},
		"silence in a stream":             {silent(mediaOfStream, ``), "Timeout"},
		"silence in an event":             {silent(mediaOfStream, `data: {"jsonrpc":`), "Timeout"},
		"silence in a long response":      {silent(mediaOfStream, `data: {"jsonrpc":"2.0","id":1,"result":"`+x64k+x64k), "Timeout"},
		"headers without end": {func(w http.ResponseWriter, r *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat(canary, 10))
			}
			asJSON(result1)(w, r)
		}, "TooLarge"},
		"another media type": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>"+canary)
		}, "NotMCP"},
		"no media type": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, result1)
		}, "NotMCP"},
		"compression that nobody asked for": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			asJSON(result1)(w, r)
		}, "NotMCP"},
		"nothing":                          {asJSON(""), "NotMCP"},
		"an empty success":                 {asStatus(http.StatusAccepted, ""), "NotMCP"},
		"no JSON":                          {asJSON(canary), "NotMCP"},
		"half an object":                   {asJSON(result1[:30]), "NotMCP"},
		"a long text that is no object":    {endless(mediaOfJSON, `"`, x64k), "NotMCP"},
		"an object twice":                  {asJSON(result1 + result1), "NotMCP"},
		"a key twice":                      {asJSON(`{"jsonrpc":"2.0","id":1,"result":{},"id":2}`), "NotMCP"},
		"a batch":                          {asJSON("[" + result1 + "]"), "NotMCP"},
		"the response to another request":  {asJSON(strings.Replace(result1, `"id":1`, `"id":2`, 1)), "NotMCP"},
		"that in a stream":                 {asStream(event(strings.Replace(result1, `"id":1`, `"id":"1"`, 1))), "NotMCP"},
		"a request in place of a response": {asJSON(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), "NotMCP"},
		"a notification for a response":    {asJSON(notification), "NotMCP"},
		"no JSON in a stream":              {asStream(event(canary)), "NotMCP"},
		"a stream without the response":    {asStream(event(notification)), "ServerError"},
		"a stream that breaks off":         {cutIn(mediaOfStream, event(notification)), "ServerError"},
		"an object that breaks off":        {cutIn(mediaOfJSON, "{"), "ServerError"},
		"a long object that breaks off":    {cutIn(mediaOfJSON, `{"id":1,"result":"`+x64k+x64k), "ServerError"},
		"a connection that breaks off":     {cut(""), "ServerError"},
		"another protocol":                 {cut("SSH-2.0-" + canary + "\r\n\r\n"), "NotMCP"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/"+canary, http.StatusTemporaryRedirect)
		}, "NotMCP"},
		"no credential":                    {asStatus(http.StatusUnauthorized, failed1), "Unauthorized"},
		"no right":                         {asStatus(http.StatusForbidden, failed1), "Forbidden"},
		"nothing at the path":              {asStatus(http.StatusNotFound, canary), "NotFound"},
		"a failure, with a JSON-RPC error": {asStatus(http.StatusInternalServerError, failed1), "ServerError"},
		"a mesh without a server": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			asStatus(http.StatusServiceUnavailable, canary)(w, r)
		}, "ServerError"},
		"another method": {asStatus(http.StatusMethodNotAllowed, canary), "NotMCP"},
	}
}

func TestAHostileServerEndsInAClassWithinLimits(t *testing.T) {
	t.Parallel()
	for name, c := range hostileServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := &recorder{Handler: c.serve}
			b := open(t, serve(t, served).URL, func(_ *table.Backend, o *Options) {
				o.Limits.Response, o.Limits.StreamBytes = 1<<20, 1<<20
				if c.class == "Timeout" { // the others would fail by it on a machine that pauses
					o.Limits.StreamIdle = time.Second
				}
			})
			for way, channel := range ways(b) {
				var s sink
				before := len(served.with("tools/call"))
				err := channel.Call(testContext(t), toolCall(`1`, "echo", "", channel.Era()), &s)
				if err == nil {
					t.Fatalf("%s: the call was answered: %.200s", way, s.response)
				}
				if errors.Is(err, backend.ErrSession) && way == "legacy" && c.class == "NotFound" {
					continue // in a session, 404 says that it is lost
				}
				failure := classOf(t, err)
				if failure.Class != c.class || !failure.Sent {
					t.Errorf("%s: class %s, sent %t, want %s, sent: %v", way, failure.Class, failure.Sent, c.class, err)
				}
				if n := len(served.with("tools/call")) - before; n != 1 {
					t.Errorf("%s: the call was sent %d times", way, n)
				}
				if strings.Contains(err.Error(), canary) {
					t.Errorf("%s: the server's text is in the error: %v", way, err)
				}
			}
		})
	}
}

func TestOnlyTheFirstResponseCounts(t *testing.T) {
	second := strings.Replace(result1, canary, "second", 1)
	for name, handler := range map[string]http.HandlerFunc{
		"two responses":          asStream(event(result1), event(second)),
		"a message after it":     asStream(event(result1), event(notification), event("garbage")),
		"an endless stream then": endless(mediaOfStream, event(result1), event(second)),
		"silence then":           silent(mediaOfStream, event(result1)),
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, handler).URL)
			for way, channel := range ways(b) {
				var s sink
				if err := channel.Call(testContext(t), toolCall(`1`, "echo", "", channel.Era()), &s); err != nil {
					t.Fatalf("%s: %v", way, err)
				}
				if s.responses != 1 || s.response != result1 || len(s.messages) != 0 {
					t.Errorf("%s: %d responses, the last %s; messages %q", way, s.responses, s.response, s.messages)
				}
			}
		})
	}
}

func TestASlowServerIsEndedByItsCaller(t *testing.T) {
	called := make(chan struct{}, 2)
	drip := func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(body), "tools/call") {
			called <- struct{}{}
		}
		w.Header().Set("Content-Type", mediaOfJSON)
		for {
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
	}
	b := open(t, serve(t, http.HandlerFunc(drip)).URL)
	for way, channel := range ways(b) {
		ctx, end := context.WithCancelCause(testContext(t))
		go func() {
			<-called
			end(context.DeadlineExceeded) // as one of its own would, once the server has the call
		}()
		err := channel.Call(ctx, toolCall(`1`, "echo", "", channel.Era()), &sink{})
		if failure := classOf(t, err); failure.Class != "Timeout" || !failure.Sent || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v (%+v)", way, err, failure)
		}
	}
}

// TestNothingIsSentElsewhere has a server point at another one in every way it can. That one must see no request at all (B4, B6).
func TestNothingIsSentElsewhere(t *testing.T) {
	var elsewhere recorder
	elsewhere.Handler = asJSON(result1)
	other := serve(t, &elsewhere)
	t.Setenv("HTTP_PROXY", other.URL)
	t.Setenv("http_proxy", other.URL)
	for name, handler := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/mcp", http.StatusPermanentRedirect)
		},
		"an endpoint elsewhere": asStream("event: endpoint\ndata: " + other.URL + "/messages\n\n"),
		"an endpoint with user": asStream("event: endpoint\ndata: //" + strings.Replace(other.URL, "http://", "127.0.0.1@", 1) + "/messages\n\n"),
		"another scheme":        asStream("event: endpoint\ndata: https://127.0.0.1/messages\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, transport := range []table.Transport{"", table.TransportSSE} {
				b := open(t, serve(t, handler).URL, func(c *table.Backend, o *Options) {
					c.Transport, o.Credential = transport, fixedCredential{}
				})
				if d, err := b.Describe(testContext(t)); err == nil {
					t.Errorf("it was described as %+v", d)
				}
				for _, channel := range ways(b) {
					if channel.Call(testContext(t), toolCall(`1`, "echo", "", channel.Era()), &sink{}) == nil {
						t.Error("the call was answered")
					}
				}
			}
		})
	}
	if n := len(elsewhere.with("")); n != 0 {
		t.Errorf("the other server got %d requests", n)
	}
}

// pair writes a certificate of nobody and its key, and returns the paths.
func pair(t *testing.T) *table.ClientCertificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(77), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &table.ClientCertificate{
		CertFile: filePEM(t, "CERTIFICATE", der), KeyFile: filePEM(t, "PRIVATE KEY", private),
	}
}

func filePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheGatewayShowsItsOwnCertificateToWhoAsksForOne(t *testing.T) {
	shown := make(chan int64, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown <- r.TLS.PeerCertificates[0].SerialNumber.Int64()
		asJSON(result1)(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	ca, own := filePEM(t, "CERTIFICATE", s.Certificate().Raw), pair(t)
	for name, own := range map[string]*table.ClientCertificate{"with one": own, "without": nil} {
		b := open(t, s.URL, func(b *table.Backend, _ *Options) { b.CAFile, b.ClientCertificate = ca, own })
		err := ways(b)["modern"].Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
		if (err == nil) != (own != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(shown) != 1 || <-shown != 77 {
		t.Error("it was not the table's")
	}
}

func TestACertificateIsDemanded(t *testing.T) {
	s := httptest.NewTLSServer(asJSON(result1))
	t.Cleanup(s.Close)
	b := open(t, s.URL)
	err := ways(b)["modern"].Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
	if failure := classOf(t, err); failure.Class != "TLS" || failure.Sent {
		t.Errorf("%v (%+v)", err, failure)
	}
	plain := open(t, strings.Replace(serve(t, asJSON(result1)).URL, "http://", "https://", 1))
	err = ways(plain)["modern"].Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
	if failure := classOf(t, err); failure.Class != "TLS" || failure.Sent {
		t.Errorf("%v (%+v)", err, failure)
	}
}
