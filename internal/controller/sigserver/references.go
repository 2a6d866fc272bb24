package sigserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
)

// referencesOf lists every mention of a ConfigMap or Secret: storage, envFrom, env. How messages begin is known to scripts.
func referencesOf(server *sigv1alpha1.MCPServer) []engine.Reference {
	config := &server.Spec.Config
	list := storageReferences(config.Storage)
	add := func(kind, name, key string, optional *bool, format string, args ...any) {
		list = append(list, engine.Reference{
			Kind: kind, Name: name, Key: key, Optional: optional != nil && *optional,
			Subject: fmt.Sprintf("%s '%s' ", kind, name) + fmt.Sprintf(format, args...),
		})
	}
	for i, from := range config.EnvFrom {
		if ref := from.ConfigMapRef; ref != nil {
			add("ConfigMap", ref.Name, "", ref.Optional, "(envFrom index %d)", i)
		}
		if ref := from.SecretRef; ref != nil {
			add("Secret", ref.Name, "", ref.Optional, "(envFrom index %d)", i)
		}
	}
	for i, env := range config.Env {
		if env.ValueFrom == nil {
			continue
		}
		const told = "referenced by env var '%s' (env index %d)"
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			add("ConfigMap", ref.Name, ref.Key, ref.Optional, told, env.Name, i)
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			add("Secret", ref.Name, ref.Key, ref.Optional, told, env.Name, i)
		}
	}
	return list
}

// storageReferences lists the mentions in storage: each object, and each key that is to be a file.
func storageReferences(storage []sigv1alpha1.StorageMount) []engine.Reference {
	var list []engine.Reference
	add := func(kind, name string, optional *bool, items []corev1.KeyToPath) {
		ref := engine.Reference{Kind: kind, Name: name, Optional: optional != nil && *optional, Subject: fmt.Sprintf("%s '%s'", kind, name)}
		list = append(list, ref)
		for _, item := range items {
			ref.Key = item.Key
			list = append(list, ref)
		}
	}
	for _, mount := range storage {
		if ref := mount.Source.ConfigMap; ref != nil {
			add("ConfigMap", ref.Name, ref.Optional, ref.Items)
		}
		if ref := mount.Source.Secret; ref != nil {
			add("Secret", ref.SecretName, ref.Optional, ref.Items)
		}
	}
	return list
}
