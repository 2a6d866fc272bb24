package table

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultPath is the URL path of an endpoint that names none.
const DefaultPath = "/mcp"

// Limits of a table.
const (
	maxBackends     = 256
	maxListItems    = 512
	maxRevision     = 128
	maxName         = 128
	maxBackendName  = 63
	maxInstructions = 16 << 10
	maxText         = 512
	maxURL          = 2048
	maxPath         = 1024
	maxPrefix       = 64
	maxArgument     = 128<<10 - 1 // Linux passes no longer ones on (MAX_ARG_STRLEN, which counts the NUL behind it)
	maxSeconds      = 3600
)

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
	// toolName is what a tool name consists of (2025-11-25, server/tools, "Tool Names").
	toolName = letters + digits + "_-."
)

// Validate says everything that is wrong with a table, in an *InvalidError. Empty fields stand for their defaults. It refuses
// above all what a slip of the pen could open, so the operator calls it before it writes a table and the gateway after it
// read one.
func (t *Table) Validate() error {
	var p problems
	if t.Version != Version {
		p.add("version", "%d is not known; this build reads version %d", t.Version, Version)
	}
	if len(t.Revision) > maxRevision || !isVisible(t.Revision) {
		p.add("revision", "must be at most %d visible ASCII characters", maxRevision)
	}
	t.Endpoint.validate(&p)
	t.Auth.validate(&p, t.Endpoint.PublicURL != "")
	if len(t.Backends) > maxBackends {
		p.add("backends", "are %d, the limit is %d", len(t.Backends), maxBackends)
	}
	first := map[string]int{}
	for i := range t.Backends {
		b, path := &t.Backends[i], index("backends", i)
		b.validate(&p, path)
		if j, taken := first[b.Name]; taken {
			p.add(path+".name", "%s is the name of backends[%d] too", clip(b.Name), j)
			continue
		}
		first[b.Name] = i
	}
	return p.err()
}

func (e *Endpoint) validate(p *problems) {
	if utf8.RuneCountInString(e.Name) > maxName || !isPrintable(e.Name, "") {
		p.add("endpoint.name", "must be at most %d printable characters", maxName)
	}
	if len(e.Instructions) > maxInstructions || !isPrintable(e.Instructions, "\n\t") {
		p.add("endpoint.instructions", "must be at most %d bytes of printable text", maxInstructions)
	}
	if e.Path != "" {
		if err := checkURLPath(e.Path); err != nil {
			p.add("endpoint.path", "%v", err)
		}
	}
	if e.PublicURL != "" {
		if _, err := parseURL(e.PublicURL); err != nil {
			p.add("endpoint.publicURL", "%v", err)
		}
	}
	list(p, "endpoint.allowedHosts", e.AllowedHosts, checkHostPattern)
	list(p, "endpoint.allowedOrigins", e.AllowedOrigins, checkOrigin)
}

// list checks the number of a list's values, each of them, and that none occurs twice.
func list(p *problems, path string, values []string, check func(string) error) {
	if len(values) > maxListItems {
		p.add(path, "has %d entries, the limit is %d", len(values), maxListItems)
		return
	}
	first := map[string]int{}
	for i, value := range values {
		if err := check(value); err != nil {
			p.add(index(path, i), "%v", err)
		}
		if j, taken := first[value]; taken {
			p.add(index(path, i), "is the same as %s", index(path, j))
			continue
		}
		first[value] = i
	}
}

// unwanted adds a problem for each field that is set though it has no effect there: a field that is not enforced is a promise
// that is not kept.
func unwanted(p *problems, path, why string, fields ...field) {
	for _, f := range fields {
		if f.set {
			p.add(path+"."+f.name, "must not be given %s", why)
		}
	}
}

type field struct {
	name string
	set  bool
}

// consists tells whether s is least to most bytes of the set.
func consists(s string, least, most int, set string) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, set) == "" // what Trim leaves begins with another byte
}

// isVisible tells whether s has only ASCII that can be seen: no space, no control character.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isPrintable tells whether s has only characters that can be seen, spaces, and those of extra: nothing that hides or
// reorders text.
func isPrintable(s, extra string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) && !strings.ContainsRune(extra, r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// checkText is for values that are compared byte for byte, such as audiences.
func checkText(s string) error {
	if s == "" || len(s) > maxText || !isVisible(s) {
		return fmt.Errorf("must be 1 to %d visible ASCII characters", maxText)
	}
	return nil
}
