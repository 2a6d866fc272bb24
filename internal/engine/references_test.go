package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// referringServer refers to ConfigMaps and Secrets in every way that there is.
func referringServer() *mcpv1alpha1.MCPServer {
	return makeServer(func(server *mcpv1alpha1.MCPServer) {
		object := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
		server.Spec.Config = &mcpv1alpha1.ServerConfig{ConfigMapRef: &mcpv1alpha1.ObjectName{Name: "settings"}}
		server.Spec.SecretRefs = []mcpv1alpha1.SecretMount{
			{ObjectName: mcpv1alpha1.ObjectName{Name: "tls"}},
			{ObjectName: mcpv1alpha1.ObjectName{Name: "extra"}, Optional: true},
		}
		server.Spec.Storage = []mcpv1alpha1.StorageMount{
			{MountPath: "/scratch", EmptyDir: &mcpv1alpha1.EmptyDirStorage{}},
			{MountPath: "/conf", ConfigMap: &mcpv1alpha1.ObjectStorage{
				ObjectName: mcpv1alpha1.ObjectName{Name: "files"}, Items: []mcpv1alpha1.KeyFile{{Key: "a.yaml", Path: "b.yaml"}},
			}},
			{MountPath: "/keys", Secret: &mcpv1alpha1.ObjectStorage{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}, Optional: true}},
			{MountPath: "/data", PersistentVolumeClaim: &mcpv1alpha1.ClaimStorage{ClaimName: "data"}},
		}
		server.Spec.EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: object("env")}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: object("tls"), Optional: new(true)}},
		}
		server.Spec.Env = []corev1.EnvVar{
			{Name: "PLAIN", Value: "x"},
			{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: object("settings"), Key: "level", Optional: new(false),
			}}},
			{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: object("api"), Key: "token"}}},
			{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		}
	})
}

func TestEveryMentionOfAConfigMapOrSecretIsFound(t *testing.T) {
	t.Parallel()
	want := []Reference{
		{Kind: "ConfigMap", Name: "settings", Field: "config.configMapRef"},
		{Kind: "Secret", Name: "tls", Field: "secretRefs"},
		{Kind: "Secret", Name: "extra", Optional: true, Field: "secretRefs"},
		{Kind: "ConfigMap", Name: "files", Field: `storage "/conf"`},
		{Kind: "ConfigMap", Name: "files", Key: "a.yaml", Field: `storage "/conf"`},
		{Kind: "Secret", Name: "keys", Optional: true, Field: `storage "/keys"`},
		{Kind: "ConfigMap", Name: "env", Field: "envFrom[0]"},
		{Kind: "Secret", Name: "tls", Optional: true, Field: "envFrom[1]"},
		{Kind: "ConfigMap", Name: "settings", Key: "level", Field: `env "LEVEL"`},
		{Kind: "Secret", Name: "api", Key: "token", Field: `env "TOKEN"`},
	}
	if diff := cmp.Diff(want, referencesOf(referringServer())); diff != "" {
		t.Errorf("references (-want +got)\n%s", diff)
	}
	if got := referencesOf(makeServer()); got != nil {
		t.Errorf("a server that refers to nothing refers to %v", got)
	}
}

func TestTheNamesThatWatchesAreIndexedByAreDistinctAndSorted(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string][]string{
		"ConfigMap": {"env", "files", "settings"}, "Secret": {"api", "extra", "keys", "tls"}, "Pod": nil,
	} {
		if diff := cmp.Diff(want, namesOf(referencesOf(referringServer()), kind)); diff != "" {
			t.Errorf("names of kind %s (-want +got)\n%s", kind, diff)
		}
	}
}

func secret(name string, data ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: "uid-1"}, Data: map[string][]byte{}}
	for i := 0; i < len(data); i += 2 {
		s.Data[data[i]] = []byte(data[i+1])
	}
	return s
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: "uid-1"}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		c.Data[data[i]] = data[i+1]
	}
	return c
}

// store is a cluster in memory and what was read of it with content.
type store struct {
	client.Client

	t    *testing.T
	refs *references
	read []string
}

func makeStore(t *testing.T, objects ...client.Object) *store {
	t.Helper()
	s := &store{t: t}
	// The client writes a resourceVersion into what it is given, and the cases of a table share their objects.
	own := make([]client.Object, 0, len(objects))
	for _, obj := range objects {
		own = append(own, copyOf(obj))
	}
	s.Client = fake.NewClientBuilder().WithScheme(makeScheme(t)).WithObjects(own...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, metadataOnly := obj.(*metav1.PartialObjectMetadata); !metadataOnly {
				s.read = append(s.read, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	s.refs = newReferences(s.Client, s.Client, []byte("key"))
	return s
}

// hash returns the hash of a server, and what content was read for it.
func (s *store) hash(server *mcpv1alpha1.MCPServer) (sum string, read []string) {
	s.t.Helper()
	s.read = nil
	sum, err := s.refs.hash(s.t.Context(), server, referencesOf(server))
	if err != nil {
		s.t.Fatalf("hash: %v", err)
	}
	return sum, s.read
}

func TestAServerThatRefersToWhatIsMissingIsInvalid(t *testing.T) {
	t.Parallel()
	all := []client.Object{
		configMap("settings", "level", "info"), configMap("env", "A", "1"), secret("tls", "crt", "x"), secret("api", "token", "x"),
		configMap("files", "a.yaml", "x"),
	}
	without := func(name string) []client.Object {
		return slices.DeleteFunc(slices.Clone(all), func(obj client.Object) bool { return obj.GetName() == name })
	}
	tests := map[string]struct {
		objects []client.Object
		want    string
	}{
		"all is there that must be": {all, ""},
		"a ConfigMap is missing": {
			without("env"), "ConfigMap 'env' (envFrom[0]) not found in namespace 'team': create it, and the server goes on by itself",
		},
		"a Secret is missing that is required once and optional once": {
			without("tls"), "Secret 'tls' (secretRefs) not found in namespace 'team': create it, and the server goes on by itself",
		},
		"a key of a ConfigMap is missing": {
			append(without("settings"), configMap("settings")),
			`ConfigMap 'settings' (env "LEVEL") in namespace 'team' has no key 'level': add it, and the server goes on by itself`,
		},
		"a ConfigMap to mount is missing": {
			without("files"), `ConfigMap 'files' (storage "/conf") not found in namespace 'team': create it, and the server goes on by itself`,
		},
		"a key to mount is missing": {
			append(without("files"), configMap("files", "b.yaml", "x")),
			`ConfigMap 'files' (storage "/conf") in namespace 'team' has no key 'a.yaml': add it, and the server goes on by itself`,
		},
		"a key of a Secret is missing": {
			append(without("api"), secret("api", "other", "x")),
			`Secret 'api' (env "TOKEN") in namespace 'team' has no key 'token': add it, and the server goes on by itself`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := makeStore(t, tt.objects...).refs.hash(t.Context(), referringServer(), referencesOf(referringServer()))
			var validation *ValidationError
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && !errors.As(err, &validation):
				t.Errorf("got %v, want a ValidationError", err)
			case tt.want != "":
				if diff := cmp.Diff(&ValidationError{"Invalid", tt.want}, validation); diff != "" {
					t.Errorf("error (-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestAnOptionalKeyMayBeMissing(t *testing.T) {
	t.Parallel()
	server := makeServer(func(server *mcpv1alpha1.MCPServer) {
		server.Spec.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "api"}, Key: "token", Optional: new(true),
		}}}}
	})
	for what, objects := range map[string][]client.Object{"key": {secret("api", "other", "x")}, "Secret": nil} {
		if _, err := makeStore(t, objects...).refs.hash(t.Context(), server, referencesOf(server)); err != nil {
			t.Errorf("the optional %s is missing: %v", what, err)
		}
	}
}

func TestAReferenceThatCannotBeReadIsNoErrorOfTheUser(t *testing.T) {
	t.Parallel()
	broken := fake.NewClientBuilder().WithScheme(makeScheme(t)).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return context.DeadlineExceeded
		},
	}).Build()
	_, err := newReferences(broken, broken, nil).hash(t.Context(), mounting("tls"), referencesOf(mounting("tls")))
	var validation *ValidationError
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &validation) {
		t.Errorf("got %v, want the deadline", err)
	}
	if want := "read Secret team/tls: context deadline exceeded"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// mounting returns a server that mounts Secrets.
func mounting(names ...string) *mcpv1alpha1.MCPServer {
	return makeServer(func(server *mcpv1alpha1.MCPServer) {
		for _, name := range names {
			server.Spec.SecretRefs = append(server.Spec.SecretRefs, mcpv1alpha1.SecretMount{ObjectName: mcpv1alpha1.ObjectName{Name: name}})
		}
	})
}

func TestTheHashFollowsTheContentAndContentIsReadOnceAVersion(t *testing.T) {
	t.Parallel()
	s := makeStore(t, secret("tls", "crt", "one", "key", "two"))
	server := mounting("tls")
	first, read := s.hash(server)
	if diff := cmp.Diff([]string{"tls"}, read); diff != "" {
		t.Errorf("first read (-want +got)\n%s", diff)
	}
	if again, read := s.hash(server); again != first || read != nil {
		t.Errorf("at rest: hash %q, want %q; read %v, want nothing", again, first, read)
	}
	edit := func(change func(*corev1.Secret)) {
		t.Helper()
		live := &corev1.Secret{}
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "tls"}, live); err != nil {
			t.Fatal(err)
		}
		change(live)
		if err := s.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(live *corev1.Secret) { live.Labels = map[string]string{"team": "a"} })
	if got, read := s.hash(server); got != first || len(read) != 1 {
		t.Errorf("other metadata: hash %q, want %q; read %v, want the new version once", got, first, read)
	}
	edit(func(live *corev1.Secret) { live.Data["key"] = []byte("three") })
	second, _ := s.hash(server)
	if second == first {
		t.Error("other content has the same hash")
	}
	edit(func(live *corev1.Secret) { live.Data["key"] = []byte("two") })
	if got, _ := s.hash(server); got != first {
		t.Errorf("the first content again: hash %q, want %q", got, first)
	}
}

func TestAnObjectThatWasMadeAnewIsReadAnew(t *testing.T) {
	t.Parallel()
	s := makeStore(t, secret("tls", "crt", "one"))
	first, _ := s.hash(mounting("tls"))
	if err := s.Delete(t.Context(), secret("tls")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.refs.hash(t.Context(), mounting("tls"), referencesOf(mounting("tls"))); err == nil {
		t.Error("a Secret that is gone is not missed")
	}
	anew := secret("tls", "crt", "two")
	anew.UID = "uid-2"
	if err := s.Create(t.Context(), anew); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.hash(mounting("tls")); got == first {
		t.Error("the hash is that of the Secret that is gone")
	}
}

func TestTheHashTellsDifferentContentsApartAndEqualOnesNot(t *testing.T) {
	t.Parallel()
	sum := func(t *testing.T, server *mcpv1alpha1.MCPServer, objects ...client.Object) string {
		t.Helper()
		hash, _ := makeStore(t, objects...).hash(server)
		return hash
	}
	inline := func(json string) *mcpv1alpha1.MCPServer {
		return makeServer(func(server *mcpv1alpha1.MCPServer) {
			server.Spec.Config = &mcpv1alpha1.ServerConfig{Inline: &apiextensionsv1.JSON{Raw: []byte(json)}}
		})
	}
	optional := mounting("tls")
	optional.Spec.SecretRefs[0].Optional = true
	binary := configMap("settings")
	binary.BinaryData = map[string][]byte{"level": {0xff}}
	configured := makeServer(func(server *mcpv1alpha1.MCPServer) {
		server.Spec.Config = &mcpv1alpha1.ServerConfig{ConfigMapRef: &mcpv1alpha1.ObjectName{Name: "settings"}}
	})

	a, b, ab := mounting("a"), mounting("b"), mounting("a", "b")
	one, two := sum(t, a, secret("a", "k", "1")), sum(t, ab, secret("a", "k", "1"), secret("b", "k", "2"))

	tests := map[string]struct {
		a, b string
		same bool
	}{
		"where a value ends and a key begins counts":    {sum(t, a, secret("a", "k", "v")), sum(t, a, secret("a", "kv", "")), false},
		"what belongs to which object counts":           {two, sum(t, ab, secret("a", "k", "2"), secret("b", "k", "1")), false},
		"the name of an object counts":                  {one, sum(t, b, secret("b", "k", "1")), false},
		"the order of references does not count":        {two, sum(t, mounting("b", "a"), secret("a", "k", "1"), secret("b", "k", "2")), true},
		"the order of keys does not count":              {sum(t, a, secret("a", "k", "1", "l", "2")), sum(t, a, secret("a", "l", "2", "k", "1")), true},
		"an object that is mentioned twice counts once": {one, sum(t, mounting("a", "a"), secret("a", "k", "1")), true},
		"an optional Secret that appears counts":        {sum(t, optional), sum(t, optional, secret("tls")), false},
		"inline configuration counts":                   {sum(t, inline(`{"a":1}`)), sum(t, inline(`{"a":2}`)), false},
		"binary data counts":                            {sum(t, configured, configMap("settings")), sum(t, configured, binary), false},
		"another version of an object does not count":   {one, sum(t, a, versioned(secret("a", "k", "1"))), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if (tt.a == tt.b) != tt.same {
				t.Errorf("hashes %q and %q; want them equal: %t", tt.a, tt.b, tt.same)
			}
		})
	}
	if got := sum(t, makeServer()); got != "" {
		t.Errorf("pods that read nothing have the hash %q", got)
	}
}

func versioned(s *corev1.Secret) *corev1.Secret {
	s.ResourceVersion, s.UID = "77", "uid-2"
	return s
}

func TestTheHashIsKeyedAndTellsNothingOfTheContent(t *testing.T) {
	t.Parallel()
	const content = "correct horse battery staple"
	s := makeStore(t, secret("tls", "password", content))
	hash, _ := s.hash(mounting("tls"))
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(hash) {
		t.Errorf("hash %q, want 32 hexadecimal digits", hash)
	}
	for _, leak := range []string{content, hex.EncodeToString([]byte(content)), base64.StdEncoding.EncodeToString([]byte(content))} {
		if strings.Contains(hash, leak) || strings.Contains(leak, hash) {
			t.Errorf("hash %q holds content", hash)
		}
	}
	for name, d := range s.refs.digests[client.ObjectKeyFromObject(mounting("tls"))] {
		if strings.Contains(string(d.sum), content) || len(d.sum) != 32 {
			t.Errorf("what is kept of %v is %q", name, d.sum)
		}
	}
	kept := s.refs.digests[client.ObjectKeyFromObject(mounting("tls"))]
	s.refs = newReferences(s.Client, s.Client, []byte("another key"))
	if other, _ := s.hash(mounting("tls")); other == hash {
		t.Error("another key makes the same hash: who knows the content could confirm a guess")
	}
	for name, d := range s.refs.digests[client.ObjectKeyFromObject(mounting("tls"))] {
		if bytes.Equal(d.sum, kept[name].sum) {
			t.Errorf("what is kept of %v does not depend on the key", name)
		}
	}
}
