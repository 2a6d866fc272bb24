package envtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// built returns the objects of a folder of config, as kubectl builds them.
func built(t *testing.T, folder string) []string {
	t.Helper()
	kubectl := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize", "../../config/"+folder)
	var problem strings.Builder
	kubectl.Stderr = &problem
	out, err := kubectl.Output()
	if err != nil {
		t.Fatalf("config/%s: %v: %s", folder, err, problem.String())
	}
	return strings.Split(string(out), "\n---\n")
}

func TestEveryFolderThatUsersApplyCanBeBuilt(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{
		"crds", "crds-sig", "rbac", "manager", "default", "default-with-webhook", "namespaced", "certmanager", "prometheus", "samples",
	} {
		for _, object := range built(t, folder) {
			if !strings.Contains(object, "\nkind: ") {
				t.Errorf("config/%s has an object without a kind:\n%s", folder, object)
			}
		}
	}
}

func TestTheWebhookIsAddedToTheOperatorAndTakesNothingAway(t *testing.T) {
	t.Parallel()
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	var ports []string
	for _, object := range built(t, "default-with-webhook") {
		if strings.Contains(object, "\nkind: ValidatingWebhookConfiguration\n") &&
			!strings.Contains(object, "cert-manager.io/inject-ca-from: mcp-operator-system/mcp-operator-webhook\n") {
			t.Errorf("cert-manager does not fill in the authority of\n%s", object)
		}
		if !strings.Contains(object, "\nkind: Deployment\n") {
			continue
		}
		decoded, _, err := decoder.Decode([]byte(object), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		deployment, _ := decoded.(*appsv1.Deployment)
		for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
			ports = append(ports, port.Name)
		}
	}
	if got := strings.Join(ports, " "); got != "webhook metrics health" {
		t.Errorf("the operator's ports are %q", got)
	}
}
