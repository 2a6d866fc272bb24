package operator

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// keySecret is the Secret of the key with these entries.
func keySecret(entries map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: KeySecretName}, Data: entries}
}

func TestKeyIsMadeOnceAndReadAgain(t *testing.T) {
	t.Parallel()
	c := fake.NewClientBuilder().Build()
	made, err := hashKey(t.Context(), c, c, "own")
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 32 || bytes.Equal(made, make([]byte, 32)) {
		t.Errorf("the key is %x", made)
	}
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(keySecret(nil)), secret); err != nil {
		t.Fatal(err)
	}
	if secret.Immutable == nil || !*secret.Immutable {
		t.Error("the Secret can be changed")
	}
	again, err := hashKey(t.Context(), c, interceptor.NewClient(c, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("written a second time")
		},
	}), "own")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, again); diff != "" {
		t.Errorf("read again (-made +again)\n%s", diff)
	}
}

func TestKeysOfTwoClustersDiffer(t *testing.T) {
	t.Parallel()
	var keys [2][]byte
	for i := range keys {
		c := fake.NewClientBuilder().Build()
		var err error
		if keys[i], err = hashKey(t.Context(), c, c, "own"); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(keys[0], keys[1]) {
		t.Error("two clusters have the same key")
	}
}

func TestKeyOfTheFasterReplicaIsUsed(t *testing.T) {
	t.Parallel()
	theirs := bytes.Repeat([]byte("k"), 32)
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := c.Create(ctx, keySecret(map[string][]byte{"key": theirs})); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...) // refused: it exists
		},
	})
	got, err := hashKey(t.Context(), c, c, "own")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, theirs) {
		t.Errorf("the key is %x, want that of the replica that was faster", got)
	}
}

func TestKeyThatCannotBeHadIsExplained(t *testing.T) {
	t.Parallel()
	secrets := schema.GroupResource{Resource: "secrets"}
	refuse := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err }}
	}
	tests := map[string]struct {
		stored *corev1.Secret
		funcs  interceptor.Funcs
		want   string
	}{
		"too short": {
			stored: keySecret(map[string][]byte{"key": make([]byte, 31)}),
			want:   `the Secret own/mcp-operator-key has no "key" of at least 32 bytes: delete it, and a new one is made`,
		},
		"another entry": {
			stored: keySecret(map[string][]byte{"other": make([]byte, 32)}),
			want:   `the Secret own/mcp-operator-key has no "key" of at least 32 bytes: delete it, and a new one is made`,
		},
		"no namespace": {
			funcs: refuse(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "own")),
			want:  "keep the operator's key in the Secret own/mcp-operator-key: the namespace does not exist: run kubectl apply -k config/rbac",
		},
		"not allowed to write": {
			funcs: refuse(apierrors.NewForbidden(secrets, KeySecretName, errors.New("no"))),
			want:  `read the operator's key from the Secret own/mcp-operator-key: secrets "mcp-operator-key" is forbidden: no`,
		},
		"not allowed to read": {
			funcs: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return apierrors.NewForbidden(secrets, KeySecretName, errors.New("no"))
			}},
			want: `read the operator's key from the Secret own/mcp-operator-key: secrets "mcp-operator-key" is forbidden: no`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			builder := fake.NewClientBuilder().WithInterceptorFuncs(tt.funcs)
			if tt.stored != nil {
				builder = builder.WithObjects(tt.stored)
			}
			c := builder.Build()
			_, err := hashKey(t.Context(), c, c, "own")
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
		})
	}
}
