package schema

import (
	"slices"
	"strings"
)

// path leads to a part of a schema. It is written out only for an error: keys may be long, and many parts are below one.
type path struct {
	above *path // nil for the schema as a whole
	key   string
}

func (p *path) under(key string) *path { return &path{above: p, key: key} }

var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
)

// pathOf is the path of a JSON pointer.
func pathOf(pointer string) *path {
	if pointer == "" {
		return nil
	}
	return (*path)(nil).under(rawPointer + pointer[1:])
}

// rawPointer marks a key that is a JSON pointer already. No member's name begins with half of a character.
const rawPointer = "\xff"

// String is the path as a JSON pointer in a URI fragment, with what is long in it cut.
func (p *path) String() string {
	const limit = 1024
	var keys []string
	for ; p != nil; p = p.above {
		key, isPointer := strings.CutPrefix(p.key, rawPointer)
		if key = clip(key); !isPointer {
			key = escapeToken.Replace(key)
		}
		keys = append(keys, key)
	}
	keys = append(keys, "#")
	slices.Reverse(keys)
	whole := strings.Join(keys, "/")
	if len(whole) > limit {
		whole = strings.ToValidUTF8(whole[:limit], "") + "…"
	}
	return whole
}
