package mcpagent

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contents reads keys of ConfigMaps, which caches hold as metadata only. What is kept is the keys that an agent needs, by the version
// of the object, so that nothing is read again until it changes.
type contents struct {
	metadata client.Reader // cached
	content  client.Reader // uncached

	mu   sync.Mutex
	kept map[types.NamespacedName]map[string]kept // by agent and name of the ConfigMap
}

// kept is what is kept of one version of a ConfigMap.
type kept struct {
	version string // UID and resource version
	values  map[string]string
}

func newContents(metadata, content client.Reader) *contents {
	return &contents{metadata: metadata, content: content, kept: map[types.NamespacedName]map[string]kept{}}
}

// read returns the values of keys of ConfigMaps in an agent's namespace, by name. A ConfigMap that does not exist has no entry, a key
// that it does not have none in that.
func (c *contents) read(ctx context.Context, agent types.NamespacedName, keys map[string][]string) (map[string]map[string]string, error) {
	c.mu.Lock()
	known := c.kept[agent]
	c.mu.Unlock()
	used, values := map[string]kept{}, map[string]map[string]string{}
	for name, wanted := range keys {
		found, err := c.readOne(ctx, client.ObjectKey{Namespace: agent.Namespace, Name: name}, wanted, known[name])
		if err != nil {
			return nil, err
		}
		if found != nil {
			used[name], values[name] = *found, found.values
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(used) > 0 {
		c.kept[agent] = used
	} else {
		delete(c.kept, agent)
	}
	return values, nil
}

func (c *contents) readOne(ctx context.Context, key client.ObjectKey, wanted []string, known kept) (*kept, error) {
	meta := partialMetadata("ConfigMap")
	err := c.metadata.Get(ctx, key, meta)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that it does not exist is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	// Which keys are wanted is part of the version: a specification may ask for another one.
	version := fmt.Sprintf("%s/%s/%q", meta.UID, meta.ResourceVersion, wanted)
	if known.version == version {
		return &known, nil
	}
	object := &corev1.ConfigMap{}
	err = c.content.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that it does not exist is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	found := kept{version: fmt.Sprintf("%s/%s/%q", object.UID, object.ResourceVersion, wanted), values: map[string]string{}}
	for _, name := range wanted {
		if value, ok := object.Data[name]; ok {
			found.values[name] = value
		}
	}
	return &found, nil
}

// forget drops what is kept for an agent that is gone.
func (c *contents) forget(agent types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, agent)
}
