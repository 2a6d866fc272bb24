package table

import "strings"

// Match says whether the patterns let a backend's tool through, by its original name, and the rule that decided:
// `deny "web_*"`, `allow "search"`, "allow" if it is in no pattern of that list, or "" if there is no list. The conditions
// ReadOnly and DenyDestructive, which need the tool's annotations, are not looked at.
func (t *ToolPolicy) Match(original string) (ok bool, rule string) {
	for _, pattern := range t.Deny {
		if matches(pattern, original) {
			return false, `deny "` + pattern + `"`
		}
	}
	if t.Allow == nil {
		return true, ""
	}
	for _, pattern := range t.Allow {
		if matches(pattern, original) {
			return true, `allow "` + pattern + `"`
		}
	}
	return false, "allow"
}

// matches compares a name with a pattern in which '*' is any run of characters. Taking each literal part at its first
// occurrence is right, since that leaves the most for the parts after it, and needs no going back: the time is linear.
func matches(pattern, name string) bool {
	first, pattern, wild := strings.Cut(pattern, "*")
	if !wild {
		return name == first
	}
	name, ok := strings.CutPrefix(name, first)
	for ok {
		part, rest, more := strings.Cut(pattern, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		_, name, ok = strings.Cut(name, part)
		pattern = rest
	}
	return false
}
