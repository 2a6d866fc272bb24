package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

// pages are the results of one list. They name the entries, which the catalogs hold, and are written when they are asked for.
type pages struct {
	all     []page
	content [sha256.Size]byte // covers the entries whatever their order
	layout  [layoutBytes]byte // covers the order and the pages too
}

// page is one result.
type page struct {
	items []item
	bytes int // of the items as they are written
}

// item is an entry under the name that clients see.
type item struct {
	entry *Entry
	name  string
}

// layoutBytes is enough of a digest to tell views apart.
const layoutBytes = 16

// pageBytes bounds a page beside its number of entries: clients limit what they read at once.
const pageBytes = 1 << 20

// pager makes pages.
type pager struct {
	size int
	all  []page
	sums [][]byte // of each entry under its name, the length of which is told
}

func newPager(size int) *pager { return &pager{size: size, all: make([]page, 1)} }

func (p *pager) add(n *named) {
	length := n.entry.lengthAs(n.name)
	last := &p.all[len(p.all)-1]
	if len(last.items) == p.size || len(last.items) > 0 && last.bytes+length > pageBytes {
		p.all = append(p.all, page{})
		last = &p.all[len(p.all)-1]
	}
	last.items = append(last.items, item{n.entry, n.name})
	last.bytes += length
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
	for _, page := range p.all {
		_, _ = layout.Write(binary.BigEndian.AppendUint32(nil, uint32(len(page.items)))) //nolint:gosec // at most p.size
	}
	out.layout = [layoutBytes]byte(layout.Sum(nil)[:layoutBytes])
	slices.SortFunc(p.sums, bytes.Compare)
	content := sha256.New()
	for _, sum := range p.sums {
		_, _ = content.Write(sum)
	}
	out.content = [sha256.Size]byte(content.Sum(nil))
	for i := range p.all {
		p.all[i].items = append(make([]item, 0, len(p.all[i].items)), p.all[i].items...) // it lives long: no more than it needs
	}
	out.all = p.all
	return out
}

// append appends a page, without what is hidden by its name.
func (p *pages) append(out []byte, k Kind, at int, client backend.Era, isHidden func(name string) bool) []byte {
	const around = 256 // more than what is beside the entries and their commas
	page := &p.all[at]
	if need := len(out) + page.bytes + len(page.items) + around; need > cap(out) {
		out = append(make([]byte, 0, need), out...)
	}
	out = append(out, '{')
	if client == backend.Modern {
		out = append(out, modernMembers...)
	}
	out = append(append(append(out, '"'), lists[k].member...), `":[`...)
	first := len(out)
	for _, item := range page.items {
		if isHidden != nil && isHidden(item.name) {
			continue
		}
		if len(out) > first {
			out = append(out, ',')
		}
		out = item.entry.appendAs(out, item.name)
	}
	out = append(out, ']')
	if at < len(p.all)-1 {
		next := cursor{kind: k, layout: p.layout, page: at + 1}
		out = append(append(append(out, `,"nextCursor":"`...), next.String()...), '"')
	}
	return append(out, '}')
}

// ErrCursor is returned for a cursor that no view of this kind of list ever gave; it is answered with wire.CodeInvalidParams.
var ErrCursor = errors.New("params.cursor is not one that this server gave")

// modernMembers are what a list result begins with for a modern client, who may be shown other tools than the next one.
const modernMembers = `"resultType":"complete","ttlMs":0,"cacheScope":"private",`

// List appends to out the result object of a list request with the cursor given, which is empty for the first page. It has no _meta. With a
// cursor of an older view the client starts over at the first page of this one. Entries of backends that hidden names are left out; nil
// hides none.
func (v *View) List(out []byte, k Kind, from string, client backend.Era, hidden func(backend string) bool) ([]byte, error) {
	p, page := &v.pages[k], 0
	if from != "" {
		c, err := parseCursor(k, from)
		if err != nil {
			return out, err
		}
		if c.layout == p.layout && c.page < len(p.all) {
			page = c.page
		}
	}
	if hidden == nil {
		return p.append(out, k, page, client, nil), nil
	}
	return p.append(out, k, page, client, func(name string) bool { return hidden(v.routes[k][name].Backend) }), nil
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
