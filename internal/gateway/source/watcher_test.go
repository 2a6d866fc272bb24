package source

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAConfigMapIsListedAndThenWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		k := start(t, Options{ConfigMap: s.configMap()})
		s.list(t, "10", configMapOf("7", "a"))
		w := s.watch(t, "10")
		k.since(t, "a")

		w.send(t, "MODIFIED", configMapOf("11", "b"))
		k.since(t, "b")

		relabelled := configMapOf("12", "b")
		w.send(t, "MODIFIED", relabelled)
		k.since(t)

		other := configMapOf("13", "x")
		other.Metadata.Name = "other"
		w.send(t, "MODIFIED", other)
		k.since(t)

		w.send(t, "DELETED", configMapOf("14", "b"))
		k.since(t, "refused: ConfigMap team-a/gateway: does not exist")
		w.send(t, "ADDED", configMapOf("15", "b"))
		k.since(t, "b")

		empty := configMapOf("16", "")
		empty.Data = map[string]string{"tables.json": tableOf("c")}
		w.send(t, "MODIFIED", empty)
		k.since(t, `refused: ConfigMap team-a/gateway: has no key "table.json"`)

		broken := configMapOf("17", "")
		broken.Data["table.json"] = `{"version":3}`
		w.send(t, "MODIFIED", broken)
		k.since(t, `refused: ConfigMap team-a/gateway: the table is refused: version: "3" is not known; this build reads version 1`)
	})
}

func TestAnotherKeyCanBeTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		c := s.configMap()
		c.Key = "gateway.json"
		k := start(t, Options{ConfigMap: c})
		o := configMapOf("1", "a")
		o.Data["gateway.json"] = tableOf("b")
		s.list(t, "1", o)
		k.since(t, "b")
	})
}

func TestAMissingConfigMapIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		k := start(t, Options{ConfigMap: s.configMap()})
		s.list(t, "1")
		w := s.watch(t, "1")
		k.since(t, "refused: ConfigMap team-a/gateway: does not exist")
		w.send(t, "ADDED", configMapOf("2", "a"))
		k.since(t, "a")
	})
}

func TestAWatchThatEndsGoesOnWhereItWas(t *testing.T) {
	bookmark := object{}
	bookmark.Metadata.ResourceVersion = "40"
	for name, tc := range map[string]struct {
		kind   string
		object object
		half   bool
		from   string
	}{
		"after nothing":     {from: "10"},
		"after an event":    {kind: "MODIFIED", object: configMapOf("30", "a"), from: "30"},
		"after a bookmark":  {kind: "BOOKMARK", object: bookmark, from: "40"},
		"after half a line": {half: true, from: "10"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t)
				k := start(t, Options{ConfigMap: s.configMap()})
				s.list(t, "10", configMapOf("7", "a"))
				w := s.watch(t, "10")
				if tc.kind != "" {
					w.send(t, tc.kind, tc.object)
				}
				if tc.half {
					w.half(t)
				}
				close(w.done)
				w = s.watch(t, tc.from)
				w.send(t, "MODIFIED", configMapOf("50", "b"))
				k.since(t, "a", "b")
			})
		})
	}
}

// half sends what is no whole event.
func (e *exchange) half(t *testing.T) {
	t.Helper()
	if _, err := fmt.Fprint(e.w, `{"type":"MODIFIED","object":{"metadata":{"name":"gateway"`); err != nil {
		t.Fatal(err)
	}
	e.flush()
}

func TestAVersionThatIsForgottenIsListedAgain(t *testing.T) {
	for name, byEvent := range map[string]bool{"by status": false, "by event": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t)
				k := start(t, Options{ConfigMap: s.configMap()})
				s.list(t, "10", configMapOf("7", "a"))
				if byEvent {
					w := s.watch(t, "10")
					w.send(t, "ERROR", object{Code: http.StatusGone})
					close(w.done)
				} else {
					s.status(t, http.StatusGone)
				}
				s.list(t, "90", configMapOf("80", "b"))
				s.watch(t, "90")
				k.since(t, "a", "b")
			})
		})
	}
}

func TestTheAPIServerMayBeAwayAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	write(t, path, tableOf("a"))
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		s.set(true)
		k := start(t, Options{File: path, ConfigMap: s.configMap()})
		k.since(t, "a")
		pass(time.Hour)
		write(t, path, tableOf("b"))
		pass(time.Second)
		k.since(t, "b")

		s.set(false)
		s.list(t, "1", configMapOf("1", "c"))
		s.watch(t, "1")
		k.since(t, "c")
	})
}

func TestAFileThatLagsBehindIsIgnoredUntilTheWatchIsLostForAMinute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	write(t, path, tableOf("a"))
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		k := start(t, Options{File: path, ConfigMap: s.configMap()})
		s.list(t, "1", configMapOf("1", "b"))
		s.watch(t, "1")
		pass(10 * time.Second)
		k.since(t, "a", "b")

		s.set(true)
		pass(2 * time.Minute)
		k.since(t)

		write(t, path, tableOf("c"))
		pass(time.Second)
		k.since(t, "c")

		s.set(false)
		w := s.watch(t, "1")
		w.send(t, "MODIFIED", configMapOf("2", "c"))
		k.since(t)
		write(t, path, tableOf("d"))
		pass(2 * time.Minute)
		k.since(t)
	})
}

func TestTroubleIsLoggedOnceAndSoIsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		s := newAPIServer(t)
		s.set(true)
		start(t, Options{ConfigMap: s.configMap(), Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		pass(10 * time.Minute)
		s.set(false)
		s.status(t, http.StatusForbidden)
		s.status(t, http.StatusForbidden)
		s.list(t, "1", configMapOf("1", "a"))
		s.watch(t, "1")
		synctest.Wait()
		var got []string
		for line := range strings.Lines(logged.String()) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), " ") // Without the time.
			got = append(got, line)
		}
		const lost = `level=WARN msg="The watch of the ConfigMap is lost; the table in force goes on, and the watch is tried again" ` +
			`configMap=team-a/gateway error=`
		want := []string{
			lost + `"ask the API server at https://127.0.0.1:443: dial tcp: connection refused"`,
			lost + `"the service account lacks get, list and watch on ConfigMap team-a/gateway (403)"`,
			`level=INFO msg="The ConfigMap is watched again" configMap=team-a/gateway`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("logged:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestTokenAndCAAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		write(t, filepath.Join(s.folder, "ca.crt"), "no certificate")
		k := start(t, Options{ConfigMap: s.configMap()})
		synctest.Wait()
		write(t, filepath.Join(s.folder, "ca.crt"), otherCertificate)
		pass(time.Minute)
		write(t, filepath.Join(s.folder, "ca.crt"), s.certificate())
		e := s.next(t)
		if got := e.Header.Get("Authorization"); got != "Bearer token-1" {
			t.Errorf("the first request bears %q", got)
		}
		write(t, filepath.Join(s.folder, "token"), "token-2")
		e.w.WriteHeader(http.StatusUnauthorized)
		close(e.done)
		e = s.next(t)
		if got := e.Header.Get("Authorization"); got != "Bearer token-2" {
			t.Errorf("the second request bears %q", got)
		}
		close(e.done)
		s.list(t, "1", configMapOf("1", "a"))
		k.since(t, "a")
	})
}

func TestTheTokenGoesToNobodyElse(t *testing.T) {
	t.Run("by a redirect", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newAPIServer(t)
			start(t, Options{ConfigMap: s.configMap()})
			e := s.next(t)
			e.w.Header().Set("Location", "https://127.0.0.1:444/elsewhere")
			e.w.WriteHeader(http.StatusTemporaryRedirect)
			close(e.done)
			s.next(t) // It is for the list again, not for /elsewhere.
		})
	})
	t.Run("by a proxy", func(t *testing.T) {
		w, err := newWatcher(ConfigMap{Namespace: "a", Name: "b", Server: "https://c", CAFile: caFile(t)}, slog.Default(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.trust(); err != nil {
			t.Fatal(err)
		}
		if transport, ok := w.client.Transport.(*http.Transport); !ok || transport.Proxy != nil {
			t.Error("the environment's proxy is used")
		}
	})
	t.Run("by a certificate of another CA", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newAPIServer(t)
			write(t, filepath.Join(s.folder, "ca.crt"), otherCertificate)
			start(t, Options{ConfigMap: s.configMap()})
			select {
			case <-s.requests:
				t.Error("the request was sent")
			case <-time.After(time.Minute):
			}
		})
	})
}

// caFile is a CA file that need not fit anybody.
func caFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	write(t, path, otherCertificate)
	return path
}

func TestAnEventWithoutEndIsNotReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		k := start(t, Options{ConfigMap: s.configMap()})
		s.list(t, "1", configMapOf("1", "a"))
		w := s.watch(t, "1")
		w.half(t)
		sent := 0
		for chunk := bytes.Repeat([]byte(" "), 64<<10); sent < 64<<20; sent += len(chunk) {
			if _, err := w.w.Write(chunk); err != nil {
				break
			}
		}
		if sent > maxEvent+4<<20 {
			t.Errorf("%d bytes of one event were taken", sent)
		}
		w = s.watch(t, "1")
		w.send(t, "MODIFIED", configMapOf("2", "b"))
		k.since(t, "a", "b")
	})
}

func TestManyEventsAreMoreThanOneMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		k := start(t, Options{ConfigMap: s.configMap()})
		s.list(t, "1", configMapOf("1", "a"))
		w := s.watch(t, "1")
		big := configMapOf("2", "b")
		big.Data["other"] = strings.Repeat("x", 1<<20)
		for range 12 {
			w.send(t, "MODIFIED", big)
		}
		k.since(t, "a", "b")
	})
}

func TestHTTP2IsSpokenWithARealServer(t *testing.T) {
	protocol := make(chan string, 1)
	s := &apiServer{folder: t.TempDir()}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case protocol <- r.Proto:
		default:
		}
	}))
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	write(t, filepath.Join(s.folder, "token"), "token-1")
	write(t, filepath.Join(s.folder, "ca.crt"), s.certificate())
	c := s.configMap()
	c.Server, c.dial = s.server.URL, nil
	start(t, Options{ConfigMap: c})
	if got := <-protocol; got != "HTTP/2.0" {
		t.Errorf("it speaks %s, so that a dead connection is not noticed", got)
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	good := ConfigMap{Namespace: "a", Name: "b", Server: "https://c:443"}
	for want, change := range map[string]func(*ConfigMap){
		`the API server's URL "http://c" must be https://<host>:<port>`:            func(c *ConfigMap) { c.Server = "http://c" },
		`the API server's URL "https://u@c" must be https://<host>:<port>`:         func(c *ConfigMap) { c.Server = "https://u@c" },
		`"b/../c" in namespace "a" cannot be the name of a ConfigMap`:              func(c *ConfigMap) { c.Name = "b/../c" },
		`"b" in namespace "A" cannot be the name of a ConfigMap`:                   func(c *ConfigMap) { c.Namespace = "A" },
		`"a/b" cannot be a key of a ConfigMap`:                                     func(c *ConfigMap) { c.Key = "a/b" },
		"find the API server: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT": func(c *ConfigMap) { c.Server = "" },
		"find the pod's namespace":                                                 func(c *ConfigMap) { c.Namespace = "" },
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		c := good
		change(&c)
		if err := Run(t.Context(), Options{ConfigMap: &c}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if err := Run(t.Context(), Options{}); err == nil {
		t.Error("nothing to read is no error")
	}
}

func TestTheAPIServerIsFoundAsInAPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	a, err := newAPI(ConfigMap{Namespace: "a", Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://[fd00::1]:6443/api/v1/namespaces/a/configmaps"; a.url != want {
		t.Errorf("asks at %s, want %s", a.url, want)
	}
	if a.Key != "table.json" || a.TokenFile != serviceAccountFolder+"token" || a.CAFile != serviceAccountFolder+"ca.crt" {
		t.Errorf("reads key %s, token %s, CA %s", a.Key, a.TokenFile, a.CAFile)
	}
}
