package table

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// parseURL takes an absolute http or https URL that every reader of it understands alike, so that what was checked is what is
// dialled. Its errors do not quote it: what is wrong may be that it has a password in it.
func parseURL(raw string) (*url.URL, error) {
	switch {
	case raw == "":
		return nil, errors.New("must be given")
	case len(raw) > maxURL || !isVisible(raw):
		return nil, fmt.Errorf("must be at most %d visible ASCII characters", maxURL)
	case strings.ContainsAny(raw, `?#\`):
		return nil, errors.New("must be without query, fragment and backslash")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("is no URL (the host, the port or a percent escape is wrong)")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must begin with http:// or https://")
	case u.User != nil:
		return nil, errors.New("must be without user and password; use credential")
	}
	if err := checkAuthority(u.Host); err != nil {
		return nil, err
	}
	if u.Path != "" && u.Path != "/" && path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") {
		return nil, errors.New("must have a path without '.', '..' and '//', escaped or not")
	}
	return u, checkEscapes(u.EscapedPath())
}

// checkEscapes refuses percent escapes that readers of a path disagree on: of '/', '\', '%' and control characters.
func checkEscapes(escaped string) error {
	for {
		_, after, found := strings.Cut(escaped, "%")
		if !found {
			return nil
		}
		b, err := strconv.ParseUint(after[:min(2, len(after))], 16, 8)
		if err != nil || len(after) < 2 || b < ' ' || b == 0x7f || strings.IndexByte(`/\%`, byte(b)) >= 0 {
			return errors.New("must have no percent escape of '/', '\\', '%' or a control character in its path")
		}
		escaped = after[2:]
	}
}

// checkAuthority takes a host with or without a port.
func checkAuthority(authority string) error {
	host := authority
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
		port := authority[i+1:]
		host = authority[:i]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
			return errors.New("must have a port of 1 to 65535, or none")
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !address.Is6() || address.Zone() != "" || !strings.HasSuffix(host, "]") {
			return errors.New("must have an IPv6 address without zone between the brackets")
		}
		return nil
	}
	return checkHostname(host)
}

// checkHostname takes a DNS name or an IPv4 address in the usual form. A name that ends in a number is an address to some
// readers and a name to others: 0x7f.1, 127.1, 2130706433.
func checkHostname(host string) error {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if !consists(label, 1, 63, letters+digits+"-_") || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return errors.New("must have a DNS name or an IP address as its host")
		}
	}
	last := strings.ToLower(labels[len(labels)-1])
	_, err := netip.ParseAddr(host)
	isNumber := strings.Trim(last, digits) == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], digits+"abcdef") == ""
	if isNumber && err != nil || len(host) > 253 {
		return errors.New("must have a DNS name or an IP address, in the form a.b.c.d, as its host")
	}
	return nil
}

// checkHostPattern takes a host without port, or "*." and a DNS name.
func checkHostPattern(pattern string) error {
	if address, err := netip.ParseAddr(pattern); err == nil && address.Zone() == "" {
		return nil
	}
	name := strings.TrimPrefix(pattern, "*.")
	if err := checkHostname(name); err != nil || name != pattern && !strings.Contains(name, ".") {
		return fmt.Errorf("%s must be a host name or IP address without port, or \"*.\" and a name of two labels or more", clip(pattern))
	}
	return nil
}

// checkOrigin takes an origin as browsers write it: lower case, no path, no wildcard (RFC 6454, section 6.2).
func checkOrigin(origin string) error {
	scheme, authority, ok := strings.Cut(origin, "://")
	isScheme := consists(scheme, 1, 32, "abcdefghijklmnopqrstuvwxyz"+digits+"+-.") && strings.ContainsAny(scheme[:1], letters)
	if !ok || !isScheme || origin != strings.ToLower(origin) || checkAuthority(authority) != nil {
		return fmt.Errorf("%s must be <scheme>://<host>, with a port unless it is the scheme's own, in lower case", clip(origin))
	}
	return nil
}

// checkURLPath takes a path that needs no escapes and has one spelling.
func checkURLPath(s string) error {
	if !consists(s, 1, maxText, toolName+"~/") || !path.IsAbs(s) || path.Clean(s) != s {
		return fmt.Errorf("%s must begin with '/' and have at most %d of A-Z, a-z, 0-9, '_', '-', '.', '~', '/', no '.', '..' or '//', no slash at the end",
			clip(s), maxText)
	}
	if s == "/.well-known" || strings.HasPrefix(s, "/.well-known/") {
		return errors.New("must not lie under /.well-known, where the metadata of RFC 9728 is served")
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
