package mcpagent

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxContents is how many bytes of keys of ConfigMaps are kept in memory, whoever needs them.
const maxContents = 32 << 20

// contents reads keys of ConfigMaps, which caches hold as metadata only. What was read is kept, once for all agents, by the version of the
// object, so that nothing is read again until it changes. Beyond its limit what was not asked for longest is dropped, and read again if
// it is needed.
type contents struct {
	metadata client.Reader // cached
	content  client.Reader // uncached
	limit    int           // in bytes

	mu   sync.Mutex
	kept map[cell]*list.Element
	used *list.List // of *kept, the last one used first
	size int
}

// cell is a key of a ConfigMap.
type cell struct {
	uid types.UID
	key string
}

// kept is what a cell holds in one version of the ConfigMap.
type kept struct {
	cell

	value

	version string
	exists  bool
}

// value is what a ConfigMap has under a key. A binary one can be mounted, and no environment variable can be made of it.
type value struct {
	text     string
	isBinary bool
}

func (k *kept) size() int { return len(k.uid) + len(k.key) + len(k.version) + len(k.text) }

func newContents(metadata, content client.Reader) *contents {
	return &contents{metadata: metadata, content: content, limit: maxContents, kept: map[cell]*list.Element{}, used: list.New()}
}

// read returns the values of keys of ConfigMaps in a namespace, by name. A ConfigMap that does not exist has no entry, a key that it does
// not have none in that.
func (c *contents) read(ctx context.Context, namespace string, keys map[string][]string) (map[string]map[string]value, error) {
	values := map[string]map[string]value{}
	for name, wanted := range keys {
		found, err := c.readOne(ctx, client.ObjectKey{Namespace: namespace, Name: name}, wanted)
		if err != nil {
			return nil, err
		}
		if found != nil {
			values[name] = found
		}
	}
	return values, nil
}

// readOne returns what a ConfigMap has of the keys that are wanted; nil if it does not exist.
func (c *contents) readOne(ctx context.Context, key client.ObjectKey, wanted []string) (map[string]value, error) {
	meta := partialMetadata("ConfigMap")
	err := c.metadata.Get(ctx, key, meta)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that it does not exist is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	if values, known := c.recall(meta, wanted); known {
		return values, nil
	}
	object := &corev1.ConfigMap{}
	err = c.content.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that it does not exist is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	values := map[string]value{}
	for _, name := range wanted {
		found, exists := valueOf(object, name)
		if exists {
			values[name] = found
		}
		c.keep(&kept{cell{object.UID, name}, found, object.ResourceVersion, exists})
	}
	return values, nil
}

func valueOf(object *corev1.ConfigMap, key string) (found value, exists bool) {
	if text, ok := object.Data[key]; ok {
		return value{text: text}, true
	}
	raw, ok := object.BinaryData[key]
	return value{text: string(raw), isBinary: ok}, ok
}

// recall returns what is kept of a version of a ConfigMap, if that is all that is wanted.
func (c *contents) recall(meta *metav1.PartialObjectMetadata, wanted []string) (values map[string]value, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	values = map[string]value{}
	for _, name := range wanted {
		at := c.kept[cell{meta.UID, name}]
		if at == nil {
			return nil, false
		}
		k := at.Value.(*kept) //nolint:forcetypeassert // the list holds nothing else
		if k.version != meta.ResourceVersion {
			return nil, false
		}
		if k.exists {
			values[name] = k.value
		}
		c.used.MoveToFront(at)
	}
	return values, true
}

// keep keeps what was read, in place of an older version of it.
func (c *contents) keep(k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.kept[k.cell]; at != nil {
		c.drop(at)
	}
	c.kept[k.cell] = c.used.PushFront(k)
	c.size += k.size()
	for c.size > c.limit {
		c.drop(c.used.Back())
	}
}

// drop is called with the lock held.
func (c *contents) drop(at *list.Element) {
	k := c.used.Remove(at).(*kept) //nolint:forcetypeassert // the list holds nothing else
	delete(c.kept, k.cell)
	c.size -= k.size()
}
