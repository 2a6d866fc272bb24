package rbac

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/operator"
)

// find returns the object of a kind and name in a manifest.
func find[T any](t *testing.T, path, kind, name string) T {
	t.Helper()
	objects := decode(t, path)
	i := slices.IndexFunc(objects, func(obj unstructured.Unstructured) bool { return obj.GetKind() == kind && obj.GetName() == name })
	if i < 0 {
		t.Fatalf("%s has no %s %s", path, kind, name)
	}
	return as[T](t, objects[i])
}

func operatorDeployment(t *testing.T) appsv1.Deployment {
	t.Helper()
	return find[appsv1.Deployment](t, "../../config/manager/manager.yaml", "Deployment", "mcp-operator")
}

func TestOperatorMeetsThePodSecurityStandardRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := operatorDeployment(t).Spec.Template
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		t.Error(result.ForbiddenDetail())
	}
	container := pod.Spec.Containers[0]
	if readOnly := container.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("the operator's root file system can be written")
	}
	if len(container.Resources.Requests) < 2 || container.Resources.Limits.Memory().IsZero() {
		t.Errorf("the operator's resources are not bounded: %v", container.Resources)
	}
}

func TestNamespacesEnforceThePodSecurityStandardRestricted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{operatorNamespace, "mcp-system"} {
		namespace := find[corev1.Namespace](t, operatorRBAC, "Namespace", name)
		if got := namespace.Labels[podsecurity.EnforceLevelLabel]; got != string(podsecurity.LevelRestricted) {
			t.Errorf("namespace %s enforces %q", name, got)
		}
	}
}

// NetworkPolicies of MCP servers let the operator in by its labels, so its pods must carry them.
func TestOperatorCarriesTheLabelsThatNetworkPoliciesLetIn(t *testing.T) {
	t.Parallel()
	deployment := operatorDeployment(t)
	labels := deployment.Spec.Template.Labels
	for key, value := range desired.OperatorLabels() {
		if labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, labels[key], value)
		}
	}
	if deployment.Namespace != operatorNamespace || deployment.Spec.Template.Spec.ServiceAccountName != operatorAccount {
		t.Errorf("the operator runs in %q as %q", deployment.Namespace, deployment.Spec.Template.Spec.ServiceAccountName)
	}
	for key, value := range deployment.Spec.Selector.MatchLabels {
		if labels[key] != value {
			t.Errorf("the selector wants %s=%s, the pods carry %v", key, value, labels)
		}
	}
}

// The addresses that the operator serves on by default are those that the manifests name.
func TestPortsOfTheManifestsAreThoseOfTheOperator(t *testing.T) {
	t.Parallel()
	manager := operatorDeployment(t).Spec.Template.Spec.Containers[0]
	var environment []string
	for _, variable := range manager.Env {
		environment = append(environment, variable.Name+"="+variable.Value)
	}
	options, err := operator.Parse(manager.Args, environment, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"metrics": options.MetricsAddress, "health": options.HealthAddress}
	got := map[string]string{}
	for _, port := range manager.Ports {
		got[port.Name] = fmt.Sprintf(":%d", port.ContainerPort)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if options.Namespace != operatorNamespace {
		t.Errorf("the operator takes %q for its namespace", options.Namespace)
	}
	policy := find[networkingv1.NetworkPolicy](t, "../../config/manager/networkpolicy.yaml", "NetworkPolicy", "mcp-operator")
	for _, port := range policy.Spec.Ingress[0].Ports {
		if _, named := got[port.Port.StrVal]; !named {
			t.Errorf("the NetworkPolicy opens port %s, which the operator does not have", port.Port)
		}
	}
}

func TestLeaseOfTheRoleIsThatOfTheOperator(t *testing.T) {
	t.Parallel()
	role := find[rbacv1.Role](t, operatorRBAC, "Role", "mcp-operator")
	for _, rule := range role.Rules {
		if rule.Resources[0] == "leases" && len(rule.ResourceNames) > 0 {
			if diff := cmp.Diff([]string{operator.LeaseName}, rule.ResourceNames); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			return
		}
	}
	t.Error("the Role names no lease")
}

// A file that no kustomization names is not applied, however good it looks.
// TestInOneNamespaceTheOperatorReadsNoSecretOfAnother holds the rights that config/namespaced gives for the whole cluster.
func TestInOneNamespaceTheOperatorReadsNoSecretOfAnother(t *testing.T) {
	t.Parallel()
	role := find[rbacv1.ClusterRole](t, "../../config/namespaced/rbac.yaml", "ClusterRole", "mcp-operator-namespaced")
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			if !slices.Contains([]string{"namespaces", "customresourcedefinitions", "leases", "tokenreviews", "subjectaccessreviews"}, resource) {
				t.Errorf("the whole cluster's %s may be read or written", resource)
			}
		}
	}
	settings := find[appsv1.Deployment](t, "../../config/namespaced/manager-patch.yaml", "Deployment", "mcp-operator").Spec.Template.Spec.Containers[0].Env
	binding := find[rbacv1.RoleBinding](t, "../../config/namespaced/rbac.yaml", "RoleBinding", "mcp-operator")
	want := []corev1.EnvVar{{Name: "MCP_OPERATOR_WATCH_NAMESPACES", Value: binding.Namespace}}
	if diff := cmp.Diff(want, settings); diff != "" {
		t.Errorf("where the operator acts, and where it has rights (-want +got):\n%s", diff)
	}
}

func TestEveryManifestIsListedInItsKustomization(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../config/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "kustomization.yaml"))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var kustomization unstructured.Unstructured
		if err := yaml.Unmarshal(raw, &kustomization.Object); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		resources, _, err := unstructured.NestedStringSlice(kustomization.Object, "resources")
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		patches, _, err := unstructured.NestedSlice(kustomization.Object, "patches")
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, patch := range patches {
			if fields, ok := patch.(map[string]any); ok {
				resources = append(resources, fmt.Sprint(fields["path"]))
			}
		}
		if !slices.Contains(resources, filepath.Base(file)) {
			t.Errorf("%s is not among the resources and patches of its kustomization: %v", file, resources)
		}
	}
}
