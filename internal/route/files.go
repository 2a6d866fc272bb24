package route

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// files are the keys of Secrets and ConfigMaps that a table names as files.
type files map[mounted]map[string]bool

// mounted is an object that is mounted.
type mounted struct {
	kind desired.MountKind
	name string
}

// add returns the path that a key is mounted at. A name that Kubernetes would refuse in a pod is refused here, since it would keep
// every pod of the gateway from being made.
func (f files) add(kind desired.MountKind, name, key string) (string, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", invalid("'%s' is no name of a %s", line(name, maxQuoted), kind)
	}
	if len(validation.IsConfigMapKey(key)) > 0 {
		return "", invalid("'%s' is no key of a %s: at most 253 letters, digits, '-', '_' and '.', and not '..' at its beginning", line(key, maxQuoted), kind)
	}
	f.insert(mounted{kind, name}, key)
	return desired.Mount{Kind: kind, Name: name}.File(key), nil
}

func (f files) insert(object mounted, key string) {
	if f[object] == nil {
		f[object] = map[string]bool{}
	}
	f[object][key] = true
}

func (f files) addAll(more files) {
	for object, keys := range more {
		for key := range keys {
			f.insert(object, key)
		}
	}
}

// among are those that are mounted.
func (f files) among(mounts []desired.Mount) files {
	return f.without(f.without(allOf(mounts)))
}

// allOf are the files of all mounts.
func allOf(mounts []desired.Mount) files {
	out := files{}
	for _, m := range mounts {
		for _, key := range m.Keys {
			out.insert(mounted{m.Kind, m.Name}, key)
		}
	}
	return out
}

// without are those that are none of others.
func (f files) without(others files) files {
	out := files{}
	for object, keys := range f {
		for key := range keys {
			if !others[object][key] {
				out.insert(object, key)
			}
		}
	}
	return out
}

// at is the one file that is mounted at a path, if it is.
func at(file string, mounts []desired.Mount) files {
	out := files{}
	for _, m := range mounts {
		for _, key := range m.Keys {
			if m.File(key) == file {
				out.insert(mounted{m.Kind, m.Name}, key)
			}
		}
	}
	return out
}

// bundle returns the path of certificates, empty if there are none.
func (f files) bundle(source *mcpv1alpha1.CABundleSource) (string, error) {
	switch {
	case source == nil:
		return "", nil
	case source.SecretRef != nil && source.ConfigMapRef == nil:
		return f.add(desired.MountSecret, source.SecretRef.Name, string(source.SecretRef.Key))
	case source.ConfigMapRef != nil && source.SecretRef == nil:
		return f.add(desired.MountConfigMap, source.ConfigMapRef.Name, string(source.ConfigMapRef.Key))
	}
	return "", invalid("it must have exactly one of configMapRef and secretRef")
}

// mounts are sorted by kind and name, with sorted keys.
func (f files) mounts() []desired.Mount {
	out := make([]desired.Mount, 0, len(f))
	for object, keys := range f {
		out = append(out, desired.Mount{Kind: object.kind, Name: object.name, Keys: slices.Sorted(maps.Keys(keys))})
	}
	slices.SortFunc(out, func(a, b desired.Mount) int {
		if a.Kind != b.Kind {
			return strings.Compare(string(a.Kind), string(b.Kind))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}
