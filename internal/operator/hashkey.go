package operator

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// KeySecretName is the Secret that holds the operator's own key. Without it every server that reads Secrets or
	// ConfigMaps is rolled once.
	KeySecretName = "mcp-operator-key" //nolint:gosec // G101: the name of a Secret, not a credential

	keySecretEntry = "key"
	keyBytes       = 32
)

// hashKey returns the key of the hash over ConfigMaps and Secrets. It is made once, and kept in a Secret.
func hashKey(ctx context.Context, reader client.Reader, writer client.Writer, namespace string) ([]byte, error) {
	name := client.ObjectKey{Namespace: namespace, Name: KeySecretName}
	secret := &corev1.Secret{}
	err := reader.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		key := make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails (crypto/rand)
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name.Name, Namespace: name.Namespace},
			Immutable:  new(true),
			Data:       map[string][]byte{keySecretEntry: key},
		}
		err = writer.Create(ctx, secret, client.DisableReadYourWritesConsistency)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("keep the operator's key in the Secret %s: the namespace does not exist: run kubectl apply -k config/rbac", name)
		}
		if apierrors.IsAlreadyExists(err) { // another replica was faster
			err = reader.Get(ctx, name, secret)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the operator's key from the Secret %s: %w", name, err)
	}
	key := secret.Data[keySecretEntry]
	if len(key) < keyBytes {
		return nil, fmt.Errorf("the Secret %s has no %q of at least %d bytes: delete it, and a new one is made", name, keySecretEntry, keyBytes)
	}
	return key, nil
}
