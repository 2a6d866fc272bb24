package openapi

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

// baseURL is where the operations are: what is asked for, else the document's first server.
func (c *compiler) baseURL() (string, error) {
	if c.opts.Endpoint != "" {
		return strings.TrimSuffix(c.opts.Endpoint, "/"), nil
	}
	base, err := c.server(c.doc.root["servers"])
	if err != nil {
		return "", fmt.Errorf("%w; give the address in the tool's endpoint", err)
	}
	return base, nil
}

// server is the URL of the first of a list of servers, with the default values of its variables. Without one it is "/".
func (c *compiler) server(value any) (string, error) {
	template := "/"
	servers, err := elements(value, "its servers")
	if err != nil {
		return "", err
	}
	if len(servers) > 0 {
		server, err := c.doc.object(servers[0], "its first server")
		if err != nil {
			return "", err
		}
		template = text(server["url"])
		variables := members(server["variables"])
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			template = strings.ReplaceAll(template, "{"+name+"}", text(members(variables[name])["default"]))
		}
	}
	at, err := url.Parse(template)
	if err != nil || strings.ContainsAny(template, "{}") {
		return "", fmt.Errorf("its server %s is no URL", quote(template))
	}
	if !at.IsAbs() {
		from, err := url.Parse(c.opts.DocumentURL)
		if err != nil || !from.IsAbs() {
			return "", errors.New("it names no server by an absolute URL")
		}
		at = from.ResolveReference(at)
	}
	switch {
	case at.Scheme != "http" && at.Scheme != "https" || at.Host == "":
		return "", fmt.Errorf("its server %s is not at an http or https URL", quote(template))
	case at.User != nil || at.RawQuery != "" || at.ForceQuery || at.Fragment != "":
		return "", fmt.Errorf("its server %s has a user, a query or a fragment", quote(at.Redacted()))
	case at.Path != "" && at.Path != "/" && path.Clean(at.Path) != strings.TrimSuffix(at.Path, "/"):
		return "", fmt.Errorf("its server %s has '.', '..' or '//' in its path", quote(template))
	}
	return strings.TrimSuffix(at.String(), "/"), nil
}

// elsewhere says why an operation cannot be sent to the base URL: it, or its path, has servers of its own.
func (c *compiler) elsewhere(op operation) error {
	for _, owner := range []map[string]any{op.object, op.item} {
		servers, err := elements(owner["servers"], "its servers")
		switch {
		case c.opts.Endpoint != "" || err == nil && len(servers) == 0:
			continue
		case err != nil:
			return err
		}
		own, err := c.server(servers)
		if err != nil {
			return err
		}
		if own != c.base {
			return fmt.Errorf("it is at another server (%s): give the address in the tool's endpoint, or make it a tool of its own", quote(own))
		}
		return nil
	}
	return nil
}
