package mcp_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

var lenient = &mcp.Client{Name: "mcp-operator", Version: "v0.0.0-test", Lenient: true}

const serviceHost = "demo.team.svc:8080"

// moved serves at /mcp/ alone, and sends who asks elsewhere to a place.
func moved(status int, to string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp/" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Location", strings.ReplaceAll(to, "HOST", r.Host))
		w.WriteHeader(status)
	})
}

func TestARedirectIsFollowedWithinTheServerAndByALenientClientAlone(t *testing.T) {
	t.Parallel()
	const (
		within    = ", which is never followed. Set spec.path to "
		where     = within + "the path it redirects to."
		elsewhere = " that leads to another server or names no place: it is never followed. " +
			"Check spec.port, and what the server takes for its own address."
	)
	for name, tc := range map[string]struct {
		status  int
		to      string
		follows bool
		told    string // to a client that is not lenient, and where it is not followed to the other
	}{
		"307 to a path":                        {307, "/mcp/", true, within + "/mcp/."},
		"308 to a path":                        {308, "/mcp/", true, within + "/mcp/."},
		"to a relative path":                   {307, "mcp/", true, within + "/mcp/."},
		"to the name that it was called by":    {307, "http://HOST/mcp/", true, within + "/mcp/."},
		"with a query":                         {307, "/mcp/?a=b", true, where},
		"by a status that loses what was sent": {302, "/mcp/", false, within + "/mcp/."},
		"to another scheme":                    {307, "https://HOST/mcp/", false, elsewhere},
		"to another port":                      {307, "http://demo.team.svc:8081/mcp/", false, elsewhere},
		"to another host":                      {307, "http://" + mcptest.Canary + ".example/mcp/", false, elsewhere},
		"to another host, without a scheme":    {307, "//" + mcptest.Canary + ".example/mcp/", false, elsewhere},
		"to somebody":                          {307, "http://me:secret@HOST/mcp/", false, elsewhere},
		"to nowhere":                           {307, "", false, elsewhere},
		"to what spec.path does not take":      {307, "/a%20b//", false, where},
		"to itself":                            {307, "/mcp", false, where},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.Pipe(t, moved(tc.status, tc.to, mcptest.Legacy(nil)))
			probe := func(client *mcp.Client) (*mcp.Result, error) {
				return client.Probe(t.Context(), mcp.Target{URL: server.URL, Host: serviceHost, Transport: server.Transport()})
			}
			_, err := probe(client)
			want := fmt.Sprintf("The server answers server/discover with a redirect (HTTP %d)%s", tc.status, tc.told)
			if mcp.ReasonOf(err) != mcp.Redirected || err.Error() != want {
				t.Errorf("of a strict client: %v", err)
			}
			server.Forget()
			result, err := probe(lenient)
			if tc.follows != (err == nil) || !tc.follows && mcp.ReasonOf(err) != mcp.Redirected {
				t.Fatalf("%v", err)
			}
			if !tc.follows {
				if tc.told != where && err.Error() != want { // of a place within, it was followed for a while
					t.Errorf("of a lenient client: %v", err)
				}
				return
			}
			if result.Server.Name != "script" || len(result.Tools) != 1 {
				t.Errorf("result: %+v", result)
			}
			// Redirected once: the rest is asked where it was found, the end of the session too.
			calls := []string{"server/discover", "server/discover", "initialize", "notifications/initialized", "tools/list", "DELETE"}
			if diff := cmp.Diff(calls, server.Calls()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARedirectOfWhatIsPostedToAnEventStreamBlamesNoPath(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, &mcptest.SSE{Post: func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Location", "/messages/")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return false
	}})
	_, err := client.Probe(t.Context(), mcp.Target{URL: server.URL, SSE: true})
	const want = "The server answers initialize with a redirect (HTTP 307) from the place that its event stream names, " +
		"which is never followed: it has to name the place where it takes messages."
	if mcp.ReasonOf(err) != mcp.Redirected || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestRedirectsWithoutEndAreGivenUp(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
	}))
	_, err := lenient.Probe(t.Context(), target(server))
	const want = "The server answers server/discover with one redirect after another (HTTP 307). Set spec.path to the path where they end."
	if mcp.ReasonOf(err) != mcp.Redirected || err.Error() != want {
		t.Errorf("%v", err)
	}
	if calls := server.Calls(); len(calls) != 6 {
		t.Errorf("%d requests: %q", len(calls), calls)
	}
}

// packed compresses whatever is answered.
func packed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain := httptest.NewRecorder()
		next.ServeHTTP(plain, r)
		var body bytes.Buffer
		z := gzip.NewWriter(&body)
		_, _ = z.Write(plain.Body.Bytes()) // a bytes.Buffer does not fail
		_ = z.Close()
		maps.Copy(w.Header(), plain.Header())
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(plain.Code)
		_, _ = w.Write(body.Bytes())
	})
}

func TestCompressedAnswersAreReadByALenientClientAlone(t *testing.T) {
	t.Parallel()
	initialized := `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	garbage := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		mcptest.Raw(w, http.StatusOK, jsonType, mcptest.Canary+strings.Repeat(" ", 20))
	})
	for name, tc := range map[string]struct {
		server http.Handler
		limits mcp.Limits
		want   mcp.Reason
	}{
		"JSON":                       {server: packed(mcptest.Legacy(nil))},
		"events":                     {server: packed(initializeAnswers(eventType, "data: "+initialized+"\n\n"))},
		"a bomb":                     {server: initializeIs(mcptest.GzipBomb(16 << 20)), want: mcp.TooLarge},
		"a bomb, by the total":       {server: initializeIs(mcptest.GzipBomb(16 << 20)), limits: mcp.Limits{TotalBytes: 1 << 20}, want: mcp.TooLarge},
		"not compressed after all":   {server: initializeIs(garbage), want: mcp.ConnectionFailed},
		"in a way nobody asked for":  {server: initializeIs(encoded("br")), want: mcp.ProtocolError},
		"as gzip of something older": {server: initializeIs(encoded("x-gzip")), want: mcp.ProtocolError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.Serve(t, tc.server)
			asked := *lenient
			asked.Limits = tc.limits
			if _, err := asked.Probe(t.Context(), target(server)); mcp.ReasonOf(err) != tc.want {
				t.Errorf("%v", err)
			}
			if _, err := client.Probe(t.Context(), target(server)); mcp.ReasonOf(err) != mcp.ProtocolError {
				t.Errorf("of a strict client: %v", err)
			}
		})
	}
}

func encoded(by string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", by)
		mcptest.Raw(w, http.StatusOK, jsonType, "{}")
	})
}
