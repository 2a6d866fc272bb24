// Package cel holds the CRDs to what they promise, against a real API server: which objects are accepted, which are
// refused and with what words, what is defaulted, and that every example of the documentation is valid.
//
// It guarantees that no rule of a schema goes untested: TestEveryRuleRefusesSomething fails for a rule, and for a limit,
// that no case provokes.
package cel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

const (
	crdFolder = "../../config/crds"
	sigFolder = "../../config/crds-sig"
	namespace = "default"
)

// api talks to the API server that all tests of this package share. It refuses fields that are not in the schema.
var api client.Client

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run starts one API server, with the CRDs, for all tests. ENVTEST_EMULATED_VERSION, for example 1.34, lets it behave as
// an older Kubernetes.
func run(m *testing.M) (code int, err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return 0, errors.New("KUBEBUILDER_ASSETS is not set: it names the folder with etcd and kube-apiserver; `make test-cel` builds them and sets it")
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     []string{crdFolder, sigFolder},
		ErrorIfCRDPathMissing: true,
		UseExistingCluster:    new(bool),
		// By themselves they wait 20 s and 10 s, which a busy machine may take.
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute, CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: time.Minute},
	}
	if version := os.Getenv("ENVTEST_EMULATED_VERSION"); version != "" {
		env.ControlPlane.GetAPIServer().Configure().Append("emulated-version", version)
	}
	config, err := env.Start()
	if err != nil {
		return 0, fmt.Errorf("start the API server of %s and install the CRDs of %s and %s: %w", assets, crdFolder, sigFolder, errors.Join(err, env.Stop()))
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	config.QPS = -1
	if err := errors.Join(mcpv1alpha1.AddToScheme(scheme.Scheme), sigv1alpha1.AddToScheme(scheme.Scheme)); err != nil {
		return 0, fmt.Errorf("register the types: %w", err)
	}
	plain, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return 0, fmt.Errorf("make a client: %w", err)
	}
	api = client.WithFieldValidation(plain, metav1.FieldValidationStrict)
	if err := prepare(context.Background()); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// subject is the name of an object of each kind that exists, for cases of its status.
const subject = "subject"

// prepare makes what the tests find: the namespace of the samples, and the subjects.
func prepare(ctx context.Context) error {
	samples := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mcp-system"}}
	if err := api.Create(ctx, samples); err != nil {
		return fmt.Errorf("create namespace %q: %w", samples.Name, err)
	}
	server := &mcpv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: subject, Namespace: namespace},
		Spec:       mcpv1alpha1.MCPServerSpec{Image: "registry.example.com/team/server:1.2.3"},
	}
	if err := api.Create(ctx, server); err != nil {
		return fmt.Errorf("create MCPServer %q: %w", subject, err)
	}
	for _, minimal := range []string{minimalTool, minimalAgent} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(minimal), &object.Object); err != nil {
			return err
		}
		object.SetName(subject)
		if err := api.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %q: %w", object.GetKind(), subject, err)
		}
	}
	other := &sigv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: subject, Namespace: namespace},
		Spec: sigv1alpha1.MCPServerSpec{
			Source: sigv1alpha1.Source{
				Type: sigv1alpha1.SourceContainerImage, ContainerImage: &sigv1alpha1.ContainerImage{Ref: "registry.example.com/server:1"},
			},
			Config: sigv1alpha1.Config{Port: 8080},
		},
	}
	if err := api.Create(ctx, other); err != nil {
		return fmt.Errorf("create MCPServer %q of the compatibility API: %w", subject, err)
	}
	return nil
}
