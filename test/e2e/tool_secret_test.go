package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestSecretIsSentToTheHostsThatItAllowsAloneAndAMissingOneIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := start(t)
	api := f.petstore("api", "top-secret")
	guarded := f.tool("find-pet", findPet(api, bearer()))
	a := f.agent("team", nil, "find-pet")
	guarded.await("waits for its Secret", agentSoon, says[*tool]("Accepted", metav1.ConditionFalse, "Invalid", "key"))
	a.await("says so", agentSoon, judged("find-pet", mcpv1alpha1.VerdictInvalid, "key"))

	credential := secret("key", "token", "top-secret")
	credential.Annotations = map[string]string{mcpv1alpha1.AnnotationAllowedHosts: "api.example.com, *.elsewhere.svc.cluster.local"}
	f.create(credential)
	guarded.await("may not send its Secret there", agentSoon, says[*tool]("Accepted", metav1.ConditionFalse, "SecretNotAllowed", api.host))
	a.fails("find-pet", `{"petId": 1}`, "error -32602")
	if sent := api.requests("/"); len(sent) > 0 {
		t.Errorf("the API was asked: %+v", sent)
	}
	// While it was missing, it was to be mounted.
	await(t, "a Secret that may not be sent is mounted nowhere", 2*agentSoon, func() string {
		for _, pod := range a.podsOf("gateway") {
			for _, volume := range pod.Spec.Volumes {
				if volume.Secret != nil && volume.Secret.SecretName == "key" {
					return "it is, in " + pod.Name
				}
			}
		}
		return ""
	})

	held := &corev1.Secret{}
	f.patch("key", held, func() {
		held.Annotations[mcpv1alpha1.AnnotationAllowedHosts] = "*." + f.namespace + ".svc.cluster.local"
	})
	a.await("serves the tool when its Secret may be sent there", 2*agentSoon, serves("find-pet"), says[*agent]("Ready", metav1.ConditionTrue, ""))
	a.answers("find-pet", `{"petId": 1}`, "Rex")
}
