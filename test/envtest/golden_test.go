package envtest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// goldenServers returns the servers that the builders of children are tested with, by the name of their file.
func goldenServers(t *testing.T) map[string]*mcpv1alpha1.MCPServer {
	t.Helper()
	files, err := filepath.Glob("../../internal/desired/testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden input: %v", err)
	}
	servers := map[string]*mcpv1alpha1.MCPServer{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		server := &mcpv1alpha1.MCPServer{}
		if err := yaml.UnmarshalStrict(raw, server); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		servers[filepath.Base(file)] = server
	}
	return servers
}

// createReferenced creates the Secrets and ConfigMaps that a server's pods read, each with the keys that are asked for.
func (f *fixture) createReferenced(server *mcpv1alpha1.MCPServer) {
	f.t.Helper()
	secrets, configMaps := map[string][]string{}, map[string][]string{}
	for _, ref := range server.Spec.SecretRefs {
		secrets[ref.Name] = nil
	}
	if config := server.Spec.Config; config != nil && config.ConfigMapRef != nil {
		configMaps[config.ConfigMapRef.Name] = nil
	}
	for _, from := range server.Spec.EnvFrom {
		if from.SecretRef != nil {
			secrets[from.SecretRef.Name] = nil
		}
		if from.ConfigMapRef != nil {
			configMaps[from.ConfigMapRef.Name] = nil
		}
	}
	for _, env := range server.Spec.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			secrets[ref.Name] = append(secrets[ref.Name], ref.Key)
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			configMaps[ref.Name] = append(configMaps[ref.Name], ref.Key)
		}
	}
	for _, mount := range server.Spec.Storage {
		for _, of := range []struct {
			object *mcpv1alpha1.ObjectStorage
			keys   map[string][]string
		}{{mount.Secret, secrets}, {mount.ConfigMap, configMaps}} {
			if of.object == nil {
				continue
			}
			of.keys[of.object.Name] = nil
			for _, item := range of.object.Items {
				of.keys[of.object.Name] = append(of.keys[of.object.Name], item.Key)
			}
		}
	}
	if tls := server.Spec.TLS; tls != nil && tls.CASecretRef != nil {
		f.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: tls.CASecretRef.Name, Namespace: server.Namespace},
			Data:       map[string][]byte{"ca.crt": []byte(mcptest.NewAuthority(f.t, "ca").PEM)},
		})
	}
	for name, keys := range secrets {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: server.Namespace}, Data: map[string][]byte{}}
		for _, key := range keys {
			secret.Data[key] = []byte("x")
		}
		f.create(secret)
	}
	for name, keys := range configMaps {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: server.Namespace}, Data: map[string]string{}}
		for _, key := range keys {
			configMap.Data[key] = "x"
		}
		f.create(configMap)
	}
}

// What is applied must equal what the API server makes of it, defaults and all, for every field that can be asked for:
// where it does not, every pass writes.
func TestEveryGoldenInputCostsNothingAfterARestart(t *testing.T) {
	f := start(t, nil)
	servers := goldenServers(t)
	for _, server := range servers {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "golden-"}}
		f.create(ns)
		f.leaveNoServers(ns.Name)
		server.Namespace = ns.Name
		f.createReferenced(server)
		f.create(server)
	}
	for name, server := range servers {
		f.eventually(name+" is applied", func() error {
			if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(server), server); err != nil {
				return err
			}
			if c := apimeta.FindStatusCondition(server.Status.Conditions, mcpv1alpha1.ConditionApplied); c == nil || c.Status != metav1.ConditionTrue {
				return errors.New("not yet")
			}
			return nil
		})
	}
	f.quiet()
	f.restart(nil, len(servers))
	f.wantWrites("a restart of the operator", map[string]int{}, 0)
}
