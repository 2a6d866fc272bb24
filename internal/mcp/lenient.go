package mcp

import (
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// maxRedirects is how many redirects are followed in one Probe or Check.
const maxRedirects = 5

// follows reports whether a redirect within the server is followed: those that
// keep the method and the body.
func (p *prober) follows(status int) bool {
	keeps := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
	return p.lenient && keeps && p.followed < maxRedirects
}

// redirect is where a Location leads to a request that was sent with the given
// Host header; nil if that is elsewhere.
func (p *prober) redirect(location, host string) *url.URL {
	to, err := p.within(location, cmp.Or(host, p.target.Host))
	if location == "" || err != nil {
		return nil
	}
	return to
}

// nameablePath is what spec.path takes, of a length that is read.
var nameablePath = regexp.MustCompile(`^/[A-Za-z0-9._~/-]{0,252}$`)

// pathOf is the path of a redirect, for messages; empty where it is not told by
// the path alone, or is the one that was asked.
func (p *prober) pathOf(redirect *url.URL) string {
	if redirect == nil || redirect.RawQuery != "" || redirect.Path == p.target.Path {
		return ""
	}
	if path := redirect.EscapedPath(); nameablePath.MatchString(path) && !strings.Contains(path, "//") {
		return path
	}
	return ""
}

// plain returns a body as it was before it was compressed, and its length, -1
// if that is unknown.
func (p *prober) plain(resp *http.Response) (io.Reader, int64, error) {
	encoding := resp.Header.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return resp.Body, resp.ContentLength, nil
	}
	if !p.lenient || !strings.EqualFold(encoding, "gzip") {
		return nil, 0, errEncoded
	}
	inflated, err := gzip.NewReader(resp.Body)
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // that of the connection is looked at
	}
	return inflatedBody{in: inflated, transport: p.transport}, -1, nil
}

// inflatedBody counts what comes of a compressed body as if it had been sent.
type inflatedBody struct {
	in        io.Reader
	transport *transport
}

func (b inflatedBody) Read(buf []byte) (int, error) {
	n, err := b.in.Read(buf)
	if !b.transport.count(n) {
		return 0, errTotalBytes
	}
	return n, err //nolint:wrapcheck // an io.Reader
}
