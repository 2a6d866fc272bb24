package table

import (
	"strings"
	"testing"
)

func TestURLsHaveOneMeaning(t *testing.T) {
	for _, raw := range []string{
		"http://a", "https://a.example.com", "https://a.example.com./mcp/", "http://10.0.0.1:8080/mcp", "http://[fd00::1]:80/mcp",
		"http://[::ffff:10.0.0.1]/", "https://a/%20b/@c/d:e;f", "HTTPS://A.example.com:65535/", "http://my_service/",
		"http://10.example.com", "https://a/..b/.c",
	} {
		if _, err := parseURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for raw, reason := range map[string]string{
		"":                            "given",
		"a.example.com":               "begin with",
		"//a.example.com/mcp":         "begin with",
		"/mcp":                        "begin with",
		"file:///etc/passwd":          "begin with",
		"unix:///var/run/docker.sock": "begin with",
		"gopher://a/":                 "begin with",
		"ftp://a/":                    "begin with",
		"javascript:alert(1)":         "begin with",
		"http:a":                      "host",
		"http://":                     "host",
		"http:///mcp":                 "host",
		"http://user@a/":              "user and password",
		"http://user:secret@a/":       "user and password",
		"http://@a/":                  "user and password",
		"http://a/?x=1":               "query",
		"http://a/?":                  "query",
		"http://a/#x":                 "query",
		"http://a/#":                  "query",
		`http://a\@b/`:                "query",
		"http://a/mcp/../admin":       "path without",
		"http://a/..":                 "path without",
		"http://a/./b":                "path without",
		"http://a/%2e%2e/admin":       "path without",
		"http://a/%2E./admin":         "path without",
		"http://a//b":                 "path without",
		"http://a/b//":                "path without",
		"http://a/b%2fc":              "escape",
		"http://a/b%5cc":              "escape",
		"http://a/b%252e":             "escape",
		"http://a/b%0d%0aX:y":         "escape",
		"http://a/%00":                "escape",
		"http://a/%zz":                "is no URL",
		"http://a/%":                  "is no URL",
		"http://a%2fb/":               "is no URL",
		"http://a b/":                 "visible ASCII",
		"http://a/b\n":                "visible ASCII",
		"http://аpple.example/":       "visible ASCII", // a Cyrillic letter
		"http://a:0/":                 "port",
		"http://a:/":                  "port",
		"http://a:65536/":             "port",
		"http://a:080/":               "port",
		"http://a:b/":                 "is no URL",
		"http://-a/":                  "DNS name",
		"http://a-/":                  "DNS name",
		"http://a..b/":                "DNS name",
		"http://./":                   "DNS name",
		"http://a*/":                  "DNS name",
		"http://a,b/":                 "DNS name",
		"http://2130706433/":          "a.b.c.d",
		"http://0x7f000001/":          "a.b.c.d",
		"http://0x7f.1/":              "a.b.c.d",
		"http://127.1/":               "a.b.c.d",
		"http://127.0.0.0x1/":         "a.b.c.d",
		"http://0177.0.0.1/":          "a.b.c.d",
		"http://127.0.0.1./":          "a.b.c.d",
		"http://256.1.1.1/":           "a.b.c.d",
		"http://[fe80::1%25eth0]/":    "IPv6",
		"http://[10.0.0.1]/":          "is no URL",
		"http://[::1":                 "is no URL",
		"http://::1/":                 "is no URL",
		"http://" + strings.Repeat("a.", 127) + "bc/":  "a.b.c.d",
		"http://a/" + strings.Repeat("a", 2048):        "visible ASCII",
		"http://" + strings.Repeat("a", 64) + ".com/":  "DNS name",
		"http://kubernetes.default.svc:443:80/":        "is no URL",
		"http://169.254.169.254.:80/latest/meta-data/": "a.b.c.d",
	} {
		_, err := parseURL(raw)
		if err == nil {
			t.Errorf("%s is taken", raw)
			continue
		}
		if !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v; want a word of %q", raw, err, reason)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func TestTheEndpointsPathHasOneSpelling(t *testing.T) {
	for _, path := range []string{"/", "/mcp", "/a/b-c_d.e~f"} {
		if err := checkURLPath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{
		"mcp", "/mcp/", "//mcp", "/a/../b", "/a/./b", "/a%2fb", "/{x}", "/a b", "/ä", "/a?b", "/a#b", "/.well-known",
		"/.well-known/oauth-protected-resource", strings.Repeat("/a", 257),
	} {
		if checkURLPath(path) == nil {
			t.Errorf("%q is taken", path)
		}
	}
}

func TestHostsAndOriginsAreNamedExactly(t *testing.T) {
	for _, host := range []string{"a", "a.example.com", "*.example.com", "10.0.0.1", "::1", "fd00::1"} {
		if err := checkHostPattern(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{
		"", "*", "*.", "*.com", "a.*", "*a.example.com", "*.*.example.com", "a:80", "[::1]", "https://a", "a/b", "fe80::1%eth0", "127.1",
	} {
		if checkHostPattern(host) == nil {
			t.Errorf("host %q is taken", host)
		}
	}
	for _, origin := range []string{"https://a.example.com", "http://localhost:6274", "http://[::1]:80", "vscode-webview://abc"} {
		if err := checkOrigin(origin); err != nil {
			t.Errorf("%s: %v", origin, err)
		}
	}
	for _, origin := range []string{
		"", "*", "null", "a.example.com", "https://", "https://*.example.com", "https://a/", "https://a/b", "https://A",
		"https://u@a", "https://a:0", "://a", "1://", "https://a?b", "file:///",
	} {
		if checkOrigin(origin) == nil {
			t.Errorf("origin %q is taken", origin)
		}
	}
}
