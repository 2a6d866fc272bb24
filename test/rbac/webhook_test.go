package rbac

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/operator"
	"github.com/mcp-operator/mcp-operator/internal/webhook"
)

func TestTheWebhookAsksAboutEveryKindWhereTheOperatorAnswers(t *testing.T) {
	t.Parallel()
	config := find[admissionregistrationv1.ValidatingWebhookConfiguration](
		t, "../../config/webhook/validating-webhook.yaml", "ValidatingWebhookConfiguration", "mcp-operator")
	service := find[corev1.Service](t, "../../config/webhook/service.yaml", "Service", "mcp-operator-webhook")
	want := map[string]string{
		"vmcpserver.mcp.operator": mcpv1alpha1.GroupVersion.String() + webhook.Path,
		"vmcpagent.mcp.operator":  mcpv1alpha1.GroupVersion.String() + webhook.AgentPath,
		"vmcpserver.mcp.x-k8s.io": sigv1alpha1.GroupVersion.String() + webhook.CompatibilityPath,
	}
	got := map[string]string{}
	for _, hook := range config.Webhooks {
		rule, to := hook.Rules[0], hook.ClientConfig.Service
		got[hook.Name] = rule.APIGroups[0] + "/" + rule.APIVersions[0] + *to.Path
		if to.Name != service.Name || to.Namespace != service.Namespace || service.Spec.Ports[0].Port != 443 {
			t.Errorf("%s asks Service %s/%s, not %s/%s, port 443", hook.Name, to.Namespace, to.Name, service.Namespace, service.Name)
		}
		if diff := cmp.Diff([]admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, rule.Operations); diff != "" {
			t.Errorf("%s (-want +got)\n%s", hook.Name, diff)
		}
		if *hook.FailurePolicy != admissionregistrationv1.Fail || *hook.SideEffects != admissionregistrationv1.SideEffectClassNone {
			t.Errorf("%s: failure policy %s, side effects %s", hook.Name, *hook.FailurePolicy, *hook.SideEffects)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheOverlayOfTheWebhookStartsTheOperatorWithIt(t *testing.T) {
	t.Parallel()
	pod := find[appsv1.Deployment](t, "../../config/webhook/manager-patch.yaml", "Deployment", "mcp-operator").Spec.Template.Spec
	manager := pod.Containers[0]
	mount := manager.VolumeMounts[0]
	dir := t.TempDir() // in place of what is mounted
	for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := slices.Clone(manager.Args)
	for i := range args {
		args[i] = strings.Replace(args[i], mount.MountPath, dir, 1)
	}
	options, err := operator.Parse(args, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !options.EnableWebhook || options.WebhookCert.Dir != dir || mount.Name != pod.Volumes[0].Name {
		t.Errorf("the certificate is looked for in %q, and mounted as %v", options.WebhookCert.Dir, mount)
	}
	service := find[corev1.Service](t, "../../config/webhook/service.yaml", "Service", "mcp-operator-webhook")
	port := manager.Ports[0]
	if port.ContainerPort != int32(ctrlwebhook.DefaultPort) || service.Spec.Ports[0].TargetPort.StrVal != port.Name {
		t.Errorf("the Service leads to %s, the container's port is %s %d", &service.Spec.Ports[0].TargetPort, port.Name, port.ContainerPort)
	}
	raw, err := os.ReadFile("../../config/certmanager/certificate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"secretName: " + pod.Volumes[0].Secret.SecretName, fmt.Sprintf("- %s.%s.svc\n", service.Name, service.Namespace)} {
		if !strings.Contains(string(raw), line) {
			t.Errorf("the Certificate does not say %q", line)
		}
	}
}

func TestWhoMayEditOrViewANamespaceMayDoSoWithOurKindsThere(t *testing.T) {
	t.Parallel()
	const roles = "../../config/rbac/user-roles.yaml"
	all := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	tests := map[string]struct{ verbs, aggregated []string }{
		"mcp-operator-edit": {all, []string{"admin", "edit"}},
		"mcp-operator-view": {[]string{"get", "list", "watch"}, []string{"view"}},
	}
	for name, tt := range tests {
		role := find[rbacv1.ClusterRole](t, roles, "ClusterRole", name)
		for _, to := range tt.aggregated {
			if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+to] != "true" {
				t.Errorf("%s is not aggregated to %s", name, to)
			}
		}
		verbs := map[string][]string{}
		for _, r := range flatten(role.Rules, "cluster") {
			verbs[r.resource] = append(verbs[r.resource], r.verb)
		}
		for _, resource := range []string{
			mcpv1alpha1.GroupVersion.Group + "/mcpservers", mcpv1alpha1.GroupVersion.Group + "/mcptools", mcpv1alpha1.GroupVersion.Group + "/mcpagents",
			sigv1alpha1.GroupVersion.Group + "/mcpservers",
		} {
			got := verbs[resource]
			slices.Sort(got)
			if diff := cmp.Diff(tt.verbs, got); diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", name, resource, diff)
			}
			if diff := cmp.Diff([]string{"get"}, verbs[resource+"/status"]); diff != "" {
				t.Errorf("%s: the status of %s (-want +got)\n%s", name, resource, diff)
			}
		}
	}
}

// Dashboards and selectors that were written for the operator of Kubernetes SIG Apps look at these.
func TestTheOperatorCarriesTheLabelsByWhichControllersAreFound(t *testing.T) {
	t.Parallel()
	const key, value = "control-plane", "controller-manager"
	deployment := operatorDeployment(t)
	metrics := find[corev1.Service](t, "../../config/manager/manager.yaml", "Service", "mcp-operator-metrics")
	for what, labels := range map[string]map[string]string{
		"Deployment": deployment.Labels, "pod": deployment.Spec.Template.Labels, "metrics Service": metrics.Labels,
	} {
		if labels[key] != value {
			t.Errorf("%s: label %s is %q", what, key, labels[key])
		}
	}
	if port := metrics.Spec.Ports[0]; port.Name != "https" || port.Port != 8443 {
		t.Errorf("the metrics are at port %s %d", port.Name, port.Port)
	}
}
