package mcptool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// ValidationError says that a specification, or something it refers to, has to be corrected by its author.
type ValidationError struct {
	Message string

	reason string // of Accepted; empty is Invalid
	cause  error  // what Message tells of; nil if it is all there is
}

// Error returns the message.
func (e *ValidationError) Error() string { return e.Message }

// Unwrap returns what the message tells of.
func (e *ValidationError) Unwrap() error { return e.cause }

func invalid(format string, args ...any) error {
	return &ValidationError{Message: fmt.Sprintf(format, args...)}
}

// memory keeps what was made of objects that are watched as metadata, so that they are read only after they changed.
type memory struct {
	mu       sync.Mutex
	known    map[types.NamespacedName]map[string]remembered   // by tool and by what it is for
	unneeded map[types.NamespacedName]map[types.UID]time.Time // since when, by tool and ConfigMap

	// bundles are shared by the tools that verify by them, and go with the last of these. By what they are for and their version.
	bundles map[string]weak.Pointer[authorities]
}

// bundle returns what load makes, unless some tool has that already.
func (m *memory) bundle(version string, load func() (*authorities, error)) (*authorities, error) {
	if known := m.sharedBundle(version); known != nil {
		return known, nil
	}
	made, err := load() // takes a while
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.bundles[version].Value(); known != nil {
		return known, nil // another worker was faster
	}
	m.bundles[version] = weak.Make(made)
	runtime.AddCleanup(made, func(version string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.bundles[version].Value() == nil {
			delete(m.bundles, version)
		}
	}, version)
	return made, nil
}

func (m *memory) sharedBundle(version string) *authorities {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bundles[version].Value()
}

// remembered is what was made of one version of an object.
type remembered struct {
	version string
	value   any
	err     error
}

func newMemory() *memory {
	return &memory{
		known: map[types.NamespacedName]map[string]remembered{}, unneeded: map[types.NamespacedName]map[types.UID]time.Time{},
		bundles: map[string]weak.Pointer[authorities]{},
	}
}

func (m *memory) get(tool types.NamespacedName, purpose, version string) (remembered, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.known[tool][purpose]
	return r, ok && r.version == version
}

func (m *memory) put(tool types.NamespacedName, purpose string, r remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[tool] == nil {
		m.known[tool] = map[string]remembered{}
	}
	m.known[tool][purpose] = r
}

func (m *memory) forget(tool types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, tool)
	delete(m.unneeded, tool)
}

// retire notes which ConfigMaps a tool does not need, and returns since when.
func (m *memory) retire(tool types.NamespacedName, unneeded []types.UID) map[types.UID]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, now := m.unneeded[tool], map[types.UID]time.Time{}
	for _, uid := range unneeded {
		now[uid] = time.Now()
		if since, noted := before[uid]; noted {
			now[uid] = since
		}
	}
	m.unneeded[tool] = now
	return now
}

// recall returns what read makes, for a purpose, of one version of something. It is made again only of another version. That it is invalid
// is remembered as well.
func recall[V any](s *scope, purpose, version string, read func() (V, error)) (V, error) {
	known, ok := s.memory.get(s.key(), purpose, version)
	if !ok {
		value, err := read()
		known = remembered{version: version, value: value, err: err}
		var wrong *ValidationError
		if err == nil || errors.As(err, &wrong) {
			s.memory.put(s.key(), purpose, known)
		}
	}
	value, _ := known.value.(V)
	return value, known.err
}

// reference is a mention of a ConfigMap or Secret.
type reference struct{ kind, name, field string }

func (r reference) String() string { return fmt.Sprintf("%s '%s' (%s)", r.kind, r.name, r.field) }

// metadata returns that of an object, from the cache; a *ValidationError if there is none.
func (s *scope) metadata(ctx context.Context, ref reference) (*metav1.PartialObjectMetadata, error) {
	meta := partialMetadata(ref.kind)
	key := client.ObjectKey{Namespace: s.tool.Namespace, Name: ref.name}
	err := s.Get(ctx, key, meta)
	if apierrors.IsNotFound(err) {
		return nil, s.missing(ref)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", ref.kind, key, err)
	}
	return meta, nil
}

func (s *scope) missing(ref reference) error {
	return invalid("%s not found in namespace '%s': create it, and the tool goes on by itself", ref, s.tool.Namespace)
}

// maxText bounds what is read of a ConfigMap besides documents, in bytes: a schema or a bundle of certificates.
const maxText = 256 << 10

// wanted is a key of a ConfigMap, and what it is read for.
type wanted struct {
	ref            *mcpv1alpha1.KeyRef
	field, purpose string
	also           string // what else it depends on what is made of it
}

// fromConfigMap returns what read makes of a key of a ConfigMap, of which version tells one content from another. It is kept for each tool
// and purpose: it must not be larger than a tool, unless it is shared.
func fromConfigMap[V any](ctx context.Context, s *scope, want wanted, read func(version string, content []byte) (V, error)) (V, error) {
	var none V
	ref := want.ref
	named := reference{"ConfigMap", ref.Name, want.field}
	meta, err := s.metadata(ctx, named)
	if err != nil {
		return none, err
	}
	version := fmt.Sprintf("%s/%s/%s/%s", ref.Key, ref.Name, meta.UID, meta.ResourceVersion)
	return recall(s, want.field+want.purpose, version+"/"+want.also, func() (V, error) {
		configMap := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: s.tool.Namespace, Name: ref.Name}
		err := s.opts.APIReader.Get(ctx, key, configMap)
		if apierrors.IsNotFound(err) {
			return none, s.missing(named)
		}
		if err != nil {
			return none, fmt.Errorf("read ConfigMap %s: %w", key, err)
		}
		content, err := keyOfConfigMap(configMap, named, string(ref.Key), maxText)
		if err != nil {
			return none, err
		}
		return read(version, content)
	})
}

// keyOfConfigMap returns what a ConfigMap has under a key; a *ValidationError if it has none, or more than limit bytes.
func keyOfConfigMap(configMap *corev1.ConfigMap, named reference, key string, limit int) ([]byte, error) {
	content, found := configMap.BinaryData[key]
	if text, ok := configMap.Data[key]; ok {
		content, found = []byte(text), true
	}
	if !found {
		return nil, invalid("%s in namespace '%s' has no key '%s': add it, and the tool goes on by itself", named, configMap.Namespace, key)
	}
	if n := len(content); n > limit {
		return nil, invalid("%s: the key '%s' has %d bytes, the limit is %d", named, key, n, limit)
	}
	return content, nil
}

// allowedHosts returns what the annotation of a Secret lists; given says that it has the annotation.
func (s *scope) allowedHosts(ctx context.Context, ref reference) (hosts string, given bool, err error) {
	meta, err := s.metadata(ctx, ref)
	if err != nil {
		return "", false, err
	}
	hosts, given = meta.Annotations[mcpv1alpha1.AnnotationAllowedHosts]
	return hosts, given, nil
}

func partialMetadata(kind string) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return meta
}
