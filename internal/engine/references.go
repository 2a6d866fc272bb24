package engine

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// Reference is one mention of a ConfigMap or Secret.
type Reference struct {
	// Kind is ConfigMap or Secret.
	Kind, Name string

	// Key is an entry that must exist; empty: none.
	Key string

	// Optional says that nothing of it need exist.
	Optional bool

	// Field is where it is mentioned, for people.
	Field string

	// Subject is how a message about it begins. Empty: kind, name and field.
	Subject string
}

func (r Reference) subject() string {
	return cmp.Or(r.Subject, fmt.Sprintf("%s '%s' (%s)", r.Kind, r.Name, r.Field))
}

// referencesOf lists every mention of a ConfigMap or Secret that the pods read, in the order of the specification.
func referencesOf(server *mcpv1alpha1.MCPServer) []Reference {
	var list []Reference
	add := func(kind, name, key string, optional *bool, field string) {
		list = append(list, Reference{Kind: kind, Name: name, Key: key, Optional: optional != nil && *optional, Field: field})
	}
	spec := &server.Spec
	if spec.Config != nil && spec.Config.ConfigMapRef != nil {
		add("ConfigMap", spec.Config.ConfigMapRef.Name, "", nil, "config.configMapRef")
	}
	for _, ref := range spec.SecretRefs {
		add("Secret", ref.Name, "", &ref.Optional, "secretRefs")
	}
	for _, mount := range spec.Storage {
		field := fmt.Sprintf("storage %q", mount.MountPath)
		for kind, object := range map[string]*mcpv1alpha1.ObjectStorage{"ConfigMap": mount.ConfigMap, "Secret": mount.Secret} {
			if object == nil {
				continue // exactly one of them is given
			}
			add(kind, object.Name, "", &object.Optional, field)
			for _, item := range object.Items {
				add(kind, object.Name, item.Key, &object.Optional, field)
			}
		}
	}
	for i, from := range spec.EnvFrom {
		field := fmt.Sprintf("envFrom[%d]", i)
		if from.ConfigMapRef != nil {
			add("ConfigMap", from.ConfigMapRef.Name, "", from.ConfigMapRef.Optional, field)
		}
		if from.SecretRef != nil {
			add("Secret", from.SecretRef.Name, "", from.SecretRef.Optional, field)
		}
	}
	for _, env := range spec.Env {
		field := fmt.Sprintf("env %q", env.Name)
		if env.ValueFrom != nil && env.ValueFrom.ConfigMapKeyRef != nil {
			ref := env.ValueFrom.ConfigMapKeyRef
			add("ConfigMap", ref.Name, ref.Key, ref.Optional, field)
		}
		if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
			ref := env.ValueFrom.SecretKeyRef
			add("Secret", ref.Name, ref.Key, ref.Optional, field)
		}
	}
	return list
}

// namesOf returns the distinct names of one kind among references, sorted: what the watches are indexed by.
func namesOf(refs []Reference, kind string) []string {
	names := map[string]struct{}{}
	for _, ref := range refs {
		if ref.Kind == kind {
			names[ref.Name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// references reads ConfigMaps and Secrets for two purposes: a keyed hash over their content, and the certificates of the
// authorities that a server's certificate is verified with. Other content is never kept; what is kept is a digest per object
// version, so that nothing is read again until it changes.
type references struct {
	metadata client.Reader // cached, metadata only
	content  client.Reader // uncached
	key      []byte

	mu      sync.Mutex
	digests map[types.NamespacedName]map[objectName]digest // by server
	trusted map[types.NamespacedName]authorities           // by server
}

type objectName struct{ kind, name string }

// digest is what is kept of one version of an object.
type digest struct {
	version string // UID and resource version
	sum     []byte
	keys    []string // sorted
}

func newReferences(metadata, content client.Reader, key []byte) *references {
	return &references{
		metadata: metadata, content: content, key: key,
		digests: map[types.NamespacedName]map[objectName]digest{}, trusted: map[types.NamespacedName]authorities{},
	}
}

// hash returns a keyed hash over everything that the server's pods read from ConfigMaps and Secrets; empty if they read
// nothing. It returns a *ValidationError when something required is missing.
func (r *references) hash(ctx context.Context, server *mcpv1alpha1.MCPServer, refs []Reference) (string, error) {
	mac := hmac.New(sha256.New, r.key)
	if config := server.Spec.Config; config != nil && config.Inline != nil {
		write(mac, []byte("inline"), config.Inline.Raw)
	} else if len(refs) == 0 {
		return "", nil
	}
	key := client.ObjectKeyFromObject(server)
	r.mu.Lock()
	known := r.digests[key]
	r.mu.Unlock()
	used := map[objectName]digest{}
	defer func() {
		r.mu.Lock()
		r.digests[key] = used
		r.mu.Unlock()
	}()
	sums := map[string][]byte{} // by kind and name
	for _, ref := range refs {
		name := objectName{ref.Kind, ref.Name}
		d, found, err := r.digest(ctx, server.Namespace, name, known[name])
		if err != nil {
			return "", err
		}
		if !found && !ref.Optional {
			return "", &ValidationError{mcpv1alpha1.ReasonInvalid, fmt.Sprintf(
				"%s not found in namespace '%s': create it, and the server goes on by itself", ref.subject(), server.Namespace)}
		}
		if found && !ref.Optional && ref.Key != "" && !slices.Contains(d.keys, ref.Key) {
			return "", &ValidationError{mcpv1alpha1.ReasonInvalid, fmt.Sprintf(
				"%s in namespace '%s' has no key '%s': add it, and the server goes on by itself", ref.subject(), server.Namespace, ref.Key)}
		}
		if found {
			used[name] = d
			sums[ref.Kind+"/"+ref.Name] = d.sum
		}
	}
	if inline := server.Spec.Config != nil && server.Spec.Config.Inline != nil; !inline && len(sums) == 0 {
		return "", nil // all of it is optional, and not there
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		write(mac, []byte(name), sums[name])
	}
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

// digest returns the digest of an object; known is that of the version that was seen last.
func (r *references) digest(ctx context.Context, namespace string, name objectName, known digest) (digest, bool, error) {
	meta := partialMetadata(name.kind)
	key := client.ObjectKey{Namespace: namespace, Name: name.name}
	err := r.metadata.Get(ctx, key, meta)
	if apierrors.IsNotFound(err) {
		return digest{}, false, nil
	}
	if err != nil {
		return digest{}, false, fmt.Errorf("read %s %s: %w", name.kind, key, err)
	}
	if known.version == string(meta.UID)+"/"+meta.ResourceVersion {
		return known, true, nil
	}
	content, version, err := r.read(ctx, name.kind, key)
	if apierrors.IsNotFound(err) {
		return digest{}, false, nil
	}
	if err != nil {
		return digest{}, false, fmt.Errorf("read %s %s: %w", name.kind, key, err)
	}
	mac := hmac.New(sha256.New, r.key)
	d := digest{version: version, keys: slices.Sorted(maps.Keys(content))}
	for _, k := range d.keys {
		write(mac, []byte(k), content[k])
	}
	d.sum = mac.Sum(nil)
	return d, true, nil
}

// forget drops what is kept for a server that is gone.
func (r *references) forget(server types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.digests, server)
	delete(r.trusted, server)
}

func (r *references) read(ctx context.Context, kind string, key client.ObjectKey) (map[string][]byte, string, error) {
	if kind == "Secret" {
		secret := &corev1.Secret{}
		err := r.content.Get(ctx, key, secret)
		return secret.Data, string(secret.UID) + "/" + secret.ResourceVersion, err
	}
	configMap := &corev1.ConfigMap{}
	err := r.content.Get(ctx, key, configMap)
	content := map[string][]byte{}
	for k, v := range configMap.Data {
		content[k] = []byte(v)
	}
	maps.Copy(content, configMap.BinaryData)
	return content, string(configMap.UID) + "/" + configMap.ResourceVersion, err
}

// write adds fields to a hash, each with its length, so that no two lists of fields look alike.
func write(h hash.Hash, fields ...[]byte) {
	for _, field := range fields {
		_ = binary.Write(h, binary.BigEndian, uint64(len(field))) // a hash never fails
		h.Write(field)
	}
}

func partialMetadata(kind string) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return meta
}
