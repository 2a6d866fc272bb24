package schema

import (
	"container/list"
	"crypto/sha256"
	"errors"
	"sync"
)

// cacheBytes is what all compiled schemas of a process take together, those that are in use included.
//
// So the worst that an agent may be granted takes no more. 256 grants are 256 tools of a schema of 8 MiB for input and one for output, or
// 256 documents of 512 such tools, which compiled at once would be 4 GiB, or 2 TiB; a gateway has 256 MiB. It holds 16 MiB of them, those
// that were used last, 60 MiB more for the moment in which two are read (see compiling), and 16 MiB while four are matched by (see matching).
// What else it holds of a tool is its text.
const cacheBytes = 16 << 20

// compiled are the schemas of this process that are compiled.
var compiled = newCache(cacheBytes)

// cache holds compiled schemas by the digest of their text, and never more than its limit: who needs another waits until some of what is in
// use is not any longer, which takes no longer than a check does. The texts, which may be parts of large files, are not held on to.
type cache struct {
	mu    sync.Mutex
	freed sync.Cond
	limit int
	taken int
	byUse *list.List // of *entry, the last used first
	bySum map[[sha256.Size]byte]*list.Element
}

type entry struct {
	sum   [sha256.Size]byte
	bytes int
	users int
	once  sync.Once
	root  *node
	err   error
}

func newCache(limit int) *cache {
	c := &cache{limit: limit, byUse: list.New(), bySum: map[[sha256.Size]byte]*list.Element{}}
	c.freed.L = &c.mu
	return c
}

// use returns what a schema is compiled to. The caller releases it, and uses no other until then.
func (c *cache) use(s *Schema) (root *node, release func(), err error) {
	e := c.take(s)
	defer func() {
		if release == nil { // also when compiling panics
			c.release(e)
		}
	}()
	e.once.Do(func() {
		e.err = errors.New("its schema could not be compiled") // stays if that panics: no value is to pass then
		_, e.root, e.err = compile(s.raw, true)
	})
	if e.err != nil {
		return nil, nil, e.err
	}
	return e.root, func() { c.release(e) }, nil
}

// take finds the entry of a schema, or makes room for a new one.
func (c *cache) take(s *Schema) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if element := c.bySum[s.sum]; element != nil {
			c.byUse.MoveToFront(element)
			e := element.Value.(*entry) //nolint:forcetypeassert // there are no others
			e.users++
			return e
		}
		if c.evict(s.bytes) {
			e := &entry{sum: s.sum, bytes: s.bytes, users: 1}
			c.bySum[s.sum] = c.byUse.PushFront(e)
			c.taken += e.bytes
			return e
		}
		c.freed.Wait()
	}
}

// evict drops what was not used for the longest time until there is room, and says whether there is.
func (c *cache) evict(bytes int) bool {
	for element := c.byUse.Back(); element != nil && c.taken+bytes > c.limit; {
		e, before := element.Value.(*entry), element.Prev() //nolint:forcetypeassert // there are no others
		if e.users == 0 {
			c.byUse.Remove(element)
			delete(c.bySum, e.sum)
			c.taken -= e.bytes
		}
		element = before
	}
	return c.taken+bytes <= c.limit
}

func (c *cache) release(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	c.freed.Broadcast()
}
