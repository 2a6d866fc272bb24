package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

// pages are the results of one list, ready to be sent.
type pages struct {
	results [][]byte          // as legacy clients get them
	content [sha256.Size]byte // covers the entries whatever their order
	layout  [layoutBytes]byte // covers the order and the pages too
}

// layoutBytes is enough of a digest to tell views apart.
const layoutBytes = 16

// pageBytes bounds a page beside its number of entries: clients limit what they read at once.
const pageBytes = 1 << 20

// pager makes pages.
type pager struct {
	kind    Kind
	size    int
	entries [][]json.RawMessage // of each page
	bytes   []int               // of the entries of each page
	sums    [][]byte            // of each entry under its name, the length of which is told
}

func newPager(k Kind, size int) *pager {
	return &pager{kind: k, size: size, entries: make([][]json.RawMessage, 1), bytes: make([]int, 1)}
}

func (p *pager) add(n *named) {
	raw := n.entry.renamed(p.kind, n.name)
	last := len(p.entries) - 1
	if len(p.entries[last]) == p.size || len(p.entries[last]) > 0 && p.bytes[last]+len(raw) > pageBytes {
		p.entries, p.bytes = append(p.entries, nil), append(p.bytes, 0)
		last++
	}
	p.entries[last] = append(p.entries[last], raw)
	p.bytes[last] += len(raw)
	sum := make([]byte, 0, 4+len(n.name)+sha256.Size)
	sum = binary.BigEndian.AppendUint32(sum, uint32(len(n.name))) //nolint:gosec // a name is short
	p.sums = append(p.sums, append(append(sum, n.name...), n.entry.sum[:]...))
}

func (p *pager) finish() pages {
	var out pages
	layout := sha256.New()
	for _, sum := range p.sums {
		_, _ = layout.Write(sum)
	}
	for _, entries := range p.entries {
		_, _ = layout.Write(binary.BigEndian.AppendUint32(nil, uint32(len(entries)))) //nolint:gosec // at most p.size
	}
	out.layout = [layoutBytes]byte(layout.Sum(nil)[:layoutBytes])
	slices.SortFunc(p.sums, bytes.Compare)
	content := sha256.New()
	for _, sum := range p.sums {
		_, _ = content.Write(sum)
	}
	out.content = [sha256.Size]byte(content.Sum(nil))
	for i := range p.entries {
		out.results = append(out.results, p.page(i, out.layout))
	}
	return out
}

// page writes one page into memory of its size.
func (p *pager) page(i int, layout [layoutBytes]byte) []byte {
	const around = 128 // more than what is beside the entries and their commas
	page := make([]byte, 0, p.bytes[i]+len(p.entries[i])+around)
	page = append(append(append(page, `{"`...), lists[p.kind].member...), `":[`...)
	for j, raw := range p.entries[i] {
		if j > 0 {
			page = append(page, ',')
		}
		page = append(page, raw...)
	}
	page = append(page, ']')
	if i < len(p.entries)-1 {
		next := cursor{kind: p.kind, layout: layout, page: i + 1}
		page = append(append(append(page, `,"nextCursor":"`...), next.String()...), '"')
	}
	return append(page, '}')
}

// ErrCursor is returned for a cursor that no view of this kind of list ever gave; it is answered with wire.CodeInvalidParams.
var ErrCursor = errors.New("params.cursor is not one that this server gave")

// modernMembers are what a list result begins with for a modern client, who may be shown other tools than the next one.
const modernMembers = `{"resultType":"complete","ttlMs":0,"cacheScope":"private",`

// List returns the result object of a list request with the cursor given, which is empty for the first page. With a cursor of an
// older view the client starts over at the first page of this one. What is returned is not to be changed.
func (v *View) List(k Kind, from string, client backend.Era) (json.RawMessage, error) {
	page := 0
	if from != "" {
		c, err := parseCursor(k, from)
		if err != nil {
			return nil, err
		}
		if c.layout == v.pages[k].layout && c.page < len(v.pages[k].results) {
			page = c.page
		}
	}
	result := v.pages[k].results[page]
	if client == backend.Legacy {
		return result, nil
	}
	return append(append(make([]byte, 0, len(modernMembers)+len(result)), modernMembers...), result[1:]...), nil
}

// cursor names a page of a list.
type cursor struct {
	kind   Kind
	layout [layoutBytes]byte
	page   int
}

// cursorBytes are one of the kind, those of the layout, 4 of the page and 4 of a checksum. The checksum tells a cursor of an older
// view, with which one starts over, from what never was one. Whoever forges one gets another page of what is listed to them.
const cursorBytes = 1 + layoutBytes + 4 + 4

func (c cursor) String() string {
	raw := append([]byte{byte(c.kind)}, c.layout[:]...)      //nolint:gosec // one of four
	raw = binary.BigEndian.AppendUint32(raw, uint32(c.page)) //nolint:gosec // a number of pages
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(raw, crc32.ChecksumIEEE(raw)))
}

func parseCursor(k Kind, s string) (cursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != cursorBytes || len(s) != base64.RawURLEncoding.EncodedLen(cursorBytes) || Kind(raw[0]) != k ||
		crc32.ChecksumIEEE(raw[:cursorBytes-4]) != binary.BigEndian.Uint32(raw[cursorBytes-4:]) {
		return cursor{}, ErrCursor
	}
	layout := [layoutBytes]byte(raw[1 : 1+layoutBytes])
	return cursor{kind: k, layout: layout, page: int(binary.BigEndian.Uint32(raw[1+layoutBytes:]))}, nil
}
