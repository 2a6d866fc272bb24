package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// TestTheRightsOfTheManifestsSufficeForAgents runs the operator as it is started in a cluster, as its own account with the rights of
// config/rbac alone: to make the Role of a gateway it must hold what that grants. Then with those of config/namespaced.
func TestTheRightsOfTheManifestsSufficeForAgents(t *testing.T) {
	c, err := client.New(apiConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ctx: t.Context(), client: c}
	f.applyManifest("../../config/rbac/operator-rbac.yaml")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "rights-"}}
	f.create(ns)
	const account = "system:serviceaccount:mcp-operator-system:mcp-operator"
	t.Run("in all namespaces", func(t *testing.T) { rightsSuffice(t, c, account, ns.Name) })

	everywhere := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mcp-operator"}} // config/namespaced has a patch for that
	if err := c.Delete(t.Context(), everywhere); err != nil {
		t.Fatal(err)
	}
	f.eventually("the API server knows that the account has no rights everywhere", func() error {
		allowed, err := f.may(account, authorizationv1.ResourceAttributes{Namespace: ns.Name, Group: "mcp.operator", Resource: "mcpservers", Verb: "watch"})
		if allowed {
			return errors.New("it has them")
		}
		return err
	})
	f.applyManifest("../../config/namespaced/rbac.yaml")
	t.Run("in one namespace", func(t *testing.T) { rightsSuffice(t, c, account, "mcp-system") })
}

func rightsSuffice(t *testing.T, c client.Client, account, namespace string) {
	t.Helper()
	f := &fixture{t: t, ctx: t.Context(), client: c, namespace: namespace}
	f.leaveNoServers(namespace)
	t.Cleanup(func() {
		for _, kind := range []client.Object{&mcpv1alpha1.MCPAgent{}, &mcpv1alpha1.MCPTool{}} {
			if err := c.DeleteAllOf(context.WithoutCancel(f.ctx), kind, client.InNamespace(namespace)); err != nil {
				t.Errorf("delete the %T of %s: %v", kind, namespace, err)
			}
		}
	})
	f.awaitRights(account, namespace)
	f.runWhole(t, account)

	f.create(f.server("web"))
	f.create(f.server("mail"))
	agent := f.agent("helper")
	agent.Spec.Tools = []mcpv1alpha1.ObjectName{{Name: "search"}}
	agent.Spec.Runtime = &mcpv1alpha1.AgentRuntime{Image: "registry.example.com/agent:1"}
	agent.Spec.Scaling = &mcpv1alpha1.Scaling{MaxReplicas: 3}
	f.create(agent)
	f.create(&mcpv1alpha1.MCPTool{
		ObjectMeta: metav1.ObjectMeta{Name: "search", Namespace: f.namespace},
		Spec:       mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolHTTP, Endpoint: "https://api.example.com/search", Description: "Searches."},
	})
	f.agentCondition("helper", "Applied", metav1.ConditionTrue, "Applied")
	f.eventually("the tool is in the table", func() error {
		configMap := &corev1.ConfigMap{}
		if err := f.get(configMap, "helper-gateway"); err != nil {
			return err
		}
		if !strings.Contains(configMap.Data["table.json"], `"tool-search"`) {
			return errors.New("it is not: " + configMap.Data["table.json"])
		}
		return nil
	})
	f.edit(agent, "helper", func() {
		agent.Spec.Runtime, agent.Spec.Scaling, agent.Spec.Gateway = nil, nil, &mcpv1alpha1.AgentGateway{Replicas: 1}
	})
	f.agentCondition("helper", "Applied", metav1.ConditionTrue, "Applied")
	f.eventually("what is needless is gone", func() error {
		if err := f.get(&corev1.ServiceAccount{}, "helper"); !apierrors.IsNotFound(err) {
			return errors.New("the account of the own workload is there")
		}
		return nil
	})
}

// awaitRights waits until the API server knows a right of each binding that the account has: it hears of them by a watch.
func (f *fixture) awaitRights(account, namespace string) {
	f.t.Helper()
	for _, right := range []authorizationv1.ResourceAttributes{
		{Namespace: namespace, Group: "mcp.operator", Resource: "mcpservers", Verb: "watch"},
		{Namespace: namespace, Group: "apps", Resource: "deployments", Verb: "create"},
		{Namespace: namespace, Resource: "namespaces", Name: namespace, Verb: "get"},
		{Namespace: operatorNamespace, Resource: "secrets", Verb: "create"},
		{Namespace: "default", Group: "discovery.k8s.io", Resource: "endpointslices", Name: "kubernetes", Verb: "get"},
	} {
		f.eventually(fmt.Sprintf("%s may %s %s in %s", account, right.Verb, right.Resource, right.Namespace), func() error {
			if allowed, err := f.may(account, right); err != nil || !allowed {
				return errors.Join(errors.New("not yet"), err)
			}
			return nil
		})
	}
}

// may asks the API server for a right of an account.
func (f *fixture) may(account string, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: account, Groups: []string{"system:serviceaccounts", "system:authenticated"}, ResourceAttributes: &right,
	}}
	err := f.client.Create(f.ctx, review)
	return review.Status.Allowed, err
}

// applyManifest creates the objects of a file, unless they exist.
func (f *fixture) applyManifest(path string) {
	f.t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			f.t.Fatal(err)
		}
		if err := f.client.Create(f.ctx, obj); len(obj.Object) > 0 && err != nil && !apierrors.IsAlreadyExists(err) {
			f.t.Fatal(err)
		}
	}
}

// runWhole runs the operator's program, as an account. Whatever it may not do fails the test.
func (f *fixture) runWhole(t *testing.T, account string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: apiConfig.Host, CertificateAuthorityData: apiConfig.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: apiConfig.CertData, ClientKeyData: apiConfig.KeyData,
			Impersonate: account, ImpersonateGroups: []string{"system:serviceaccounts", "system:authenticated"},
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	binary := launch.Build(t, filepath.Join(t.TempDir(), "mcp-operator"), "../../cmd/mcp-operator")
	var log bytes.Buffer
	command := exec.CommandContext(context.WithoutCancel(f.ctx), binary, "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--leader-elect=false", "--gateway-image=registry.example.com/mcp-gateway:1", "--watch-namespaces="+f.namespace)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(command.Process.Signal(os.Interrupt), command.Wait())
		if err != nil || strings.Contains(log.String(), "forbidden") {
			t.Errorf("the operator: %v\n%s", err, log.String())
		}
	})
}
