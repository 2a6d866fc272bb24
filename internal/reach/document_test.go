package reach

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// leadTo returns a dialer that leads every address to a server.
func leadTo(server *httptest.Server) dialFunc {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
}

// makeFetcher returns a fetcher that takes documents of ten bytes, and makes text of them.
func makeFetcher(dial dialFunc) *Fetcher[string] {
	return NewFetcher(FetcherOptions[string]{
		Dial: dial, MaxBytes: 10,
		Use: func(_ context.Context, _ Document, content []byte) (string, error) {
			if string(content) == "bad" {
				return "", errors.New("it is bad")
			}
			return "made of " + string(content), nil
		},
	})
}

func TestAnAttemptToFetchTellsWhatItBrought(t *testing.T) {
	t.Parallel()
	const old = "5d3d24b6a3a8b0c0"
	before := Fetched[string]{Known: true, Found: true, Value: "made of old", Digest: old, etag: `"old"`}
	answer := func(content string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/there" {
				_, _ = io.WriteString(w, "moved")
				return
			}
			http.Redirect(w, r, to, http.StatusFound)
		}
	}
	found := func(value, digest string) Fetched[string] {
		return Fetched[string]{Known: true, Found: true, Value: value, Digest: digest}
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		dial    dialFunc // in place of handler
		last    Fetched[string]
		want    Fetched[string]
	}{
		"a document": {
			handler: answer("new"), want: found("made of new", "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"),
		},
		"one as large as it may be": {
			handler: answer("0123456789"), want: found("made of 0123456789", "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"),
		},
		"one that is too large and says so": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(5000))
				_, _ = w.Write(make([]byte, 5000))
			},
			want: Fetched[string]{Known: true, Problem: "it has 5000 bytes, the limit is 10"},
		},
		"one that is too large": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush() //nolint:forcetypeassert // a server's is one
				_, _ = w.Write(make([]byte, 5000))
			},
			want: Fetched[string]{Known: true, Problem: "it has more than 10 bytes, which is the limit"},
		},
		"one that cannot be used": {handler: answer("bad"), want: Fetched[string]{Known: true, Problem: "it is bad"}},
		"one that cannot be used, after one that could": {
			handler: answer("bad"), last: before,
			want: Fetched[string]{Known: true, Problem: "it is bad", Found: true, Value: "made of old", Digest: old},
		},
		"nothing new": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("If-None-Match") == `"old"` {
					w.WriteHeader(http.StatusNotModified)
				}
			},
			last: before, want: found("made of old", old),
		},
		"nothing new, though nothing is known": {
			handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
			want:    Fetched[string]{Known: true, Problem: "docs.example.com answers with the HTTP status 304 (Not Modified)"},
		},
		"no such document": {
			handler: http.NotFound, want: Fetched[string]{Known: true, Problem: "docs.example.com answers with the HTTP status 404 (Not Found)"},
		},
		"a redirect on the same host": {
			handler: redirect("/there"), want: found("made of moved", "5edd1832df25e2f1a72585c0ee55c1e585e7f4902eb1d15f7abf1c71c1b296ae"),
		},
		"a redirect to another host": {
			handler: redirect("http://evil.example.com/there"),
			want: Fetched[string]{
				Known: true, Problem: "docs.example.com redirects to another host, or too often: name the document's own address",
			},
		},
		"a redirect to another scheme": {
			handler: redirect("https://docs.example.com/there"),
			want: Fetched[string]{
				Known: true, Problem: "docs.example.com redirects to another host, or too often: name the document's own address",
			},
		},
		"redirects without end": {
			handler: redirect("/round"),
			want: Fetched[string]{
				Known: true, Problem: "docs.example.com redirects to another host, or too often: name the document's own address",
			},
		},
		"a transfer that breaks off": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "9")
				_, _ = io.WriteString(w, "x")
			},
			want: Fetched[string]{Known: true, Problem: "docs.example.com broke the transfer off"},
		},
		"nobody there": {
			dial: fails(errBroken), want: Fetched[string]{Known: true, Problem: "docs.example.com:80 cannot be connected to"},
		},
		"no HTTP": {
			dial: listen(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "220 ready\r\n") }),
			want: Fetched[string]{Known: true, Problem: "docs.example.com gives no HTTP response"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dial := tt.dial
			if tt.handler != nil {
				server := httptest.NewServer(tt.handler)
				t.Cleanup(server.Close)
				dial = leadTo(server)
			}
			got, ok := makeFetcher(dial).attempt(t.Context(), Document{Subject: demo, URL: "http://docs.example.com/openapi.json"}, tt.last)
			got.etag, got.modified, got.refused, got.refusal = "", "", "", ""
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Fetched[string]{})); diff != "" {
				t.Errorf("fetched (-want +got)\n%s", diff)
			}
			if ok != (tt.want.Problem == "") {
				t.Errorf("went well: %t", ok)
			}
		})
	}
}

func TestADocumentsServerIsVerified(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "new") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	f := makeFetcher(leadTo(server))
	for bundle, remedy := range map[Bundle]string{
		NoBundle:   "name the authority's certificate in caBundle",
		ReadBundle: "the certificates in caBundle are none of that authority's, so put its own there",
		UnreadBundle: "the operator, which connects there itself, does not read Secrets: " +
			"put the authority's certificate into a ConfigMap (caBundle.configMapRef)",
	} {
		strange, _ := f.attempt(t.Context(), Document{URL: "https://example.com/", Trust: Trust{Bundle: bundle}}, Fetched[string]{})
		if want := "example.com:443 has a certificate by an authority that is not trusted: " + remedy; strange.Problem != want {
			t.Errorf("problem: %s\nwant:    %s", strange.Problem, want)
		}
	}
	trusted, _ := f.attempt(t.Context(), Document{URL: "https://example.com/", Trust: Trust{Roots: pool}}, Fetched[string]{})
	if trusted.Value != "made of new" {
		t.Errorf("with its certificate: %+v", trusted)
	}
}

func TestNoCredentialIsSentAndTheVersionIsAskedFor(t *testing.T) {
	t.Parallel()
	var asked http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Clone()
		w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 08:00:00 GMT")
		_, _ = io.WriteString(w, "new")
	}))
	t.Cleanup(server.Close)
	f := makeFetcher(leadTo(server))
	first, _ := f.attempt(t.Context(), Document{URL: "http://docs.example.com/"}, Fetched[string]{})
	f.attempt(t.Context(), Document{URL: "http://docs.example.com/"}, first)
	want := http.Header{
		"Accept":            {"application/json, application/yaml, application/vnd.oai.openapi+json, text/yaml, */*;q=0.1"},
		"User-Agent":        {"mcp-operator"},
		"If-Modified-Since": {"Mon, 30 Nov 2026 08:00:00 GMT"},
		"Connection":        {"close"},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("headers (-want +got)\n%s", diff)
	}
}

func TestWhatWasFetchedIsNotMadeUseOfAgainWhenItIsNotWhatIsThereNow(t *testing.T) {
	t.Parallel()
	content := "new"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"`+content+`"`)
		if r.Header.Get("If-None-Match") == `"`+content+`"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(server.Close)
	f := makeFetcher(leadTo(server))
	d := Document{Subject: demo, URL: "http://docs.example.com/"}
	known := Fetched[string]{}
	for _, content = range []string{"new", "bad", "new"} { // it was bad for a short while
		known, _ = f.attempt(t.Context(), d, known)
	}
	if known.Value != "made of new" || known.Problem != "" {
		t.Fatalf("in the end: %+v", known)
	}
	d.Purpose = "another"
	if got, ok := f.attempt(t.Context(), d, Fetched[string]{}); !ok || got.Value != "made of new" {
		t.Errorf("for another purpose: %+v", got)
	}
}

func TestADocumentIsFetchedAgainAfterTenMinutesAndNotForAnotherPurpose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		answering := func(ctx context.Context, network, address string) (net.Conn, error) {
			if _, err := s.dial(ctx, network, address); err != nil {
				return nil, err
			}
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				_, _ = server.Read(make([]byte, 4096))
				_, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nnew")
			}()
			return client, nil
		}
		f := makeFetcher(answering)
		f.notify = func(context.Context, types.NamespacedName) {}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Start(ctx) }()
		d := Document{Subject: demo, URL: "http://docs.example.com/"}
		f.Observe(d)
		<-time.After(35 * time.Minute)
		if n := len(s.take("docs.example.com:80")); n != 4 {
			t.Errorf("fetched %d times in 35 minutes, want 4", n)
		}
		d.Purpose = "another"
		if got := f.Observe(d); got.Known {
			t.Errorf("known for another purpose: %+v", got)
		}
		<-time.After(time.Second)
		if got := f.Observe(d); !strings.HasPrefix(got.Value, "made of") {
			t.Errorf("after a second: %+v", got)
		}
		if got := s.take("docs.example.com:80"); got != nil {
			t.Errorf("what was fetched is fetched again, at %v", got)
		}
		d.Trust.Identity = "another"
		f.Observe(d)
		<-time.After(time.Second)
		if got := s.take("docs.example.com:80"); len(got) != 1 {
			t.Errorf("with other authorities it is fetched at %v", got)
		}
		<-time.After(time.Hour)
		s.set("docs.example.com:80", errBroken)
		<-time.After(20 * time.Minute)
		d.Purpose = "a third"
		f.Observe(d)
		<-time.After(time.Second)
		if got := f.Observe(d); got.Found || got.Problem == "" {
			t.Errorf("of what was fetched long ago: %+v", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
