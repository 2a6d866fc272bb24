package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestForeignObjectOfAnAgentsChildIsNotTouchedAndAnAgentTakesItsChildrenAlong(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.tool("find-pet", findPet(f.petstore("api"), nil))
	foreign := serviceOf("team-gateway", 80)
	f.create(foreign)
	a := f.agent("team", nil, "find-pet")
	a.await("says that a name is taken", agentSoon,
		says[*agent]("Applied", metav1.ConditionFalse, "", "team-gateway"), says[*agent]("Ready", metav1.ConditionFalse, ""))
	now := &corev1.Service{}
	f.read("team-gateway", now)
	if diff := cmp.Diff(foreign.Spec, now.Spec); diff != "" || now.Labels["mcp.operator/agent"] != "" {
		t.Errorf("the foreign Service was changed:\n%s", diff)
	}
	f.remove(foreign)
	a.await("goes on by itself when the name is free", agentSoon, says[*agent]("Ready", metav1.ConditionTrue, ""), serves("find-pet"))
	a.answers("find-pet", `{"petId": 1}`, "Rex")

	f.kubectl("delete", "mcpagent", "team")
	await(t, "nothing of the agent is left", 2*podStart, func() string {
		left := f.kubectl("get", "deployments,services,configmaps,secrets,serviceaccounts,networkpolicies,poddisruptionbudgets,pods,"+
			"roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io", "--output=name")
		return strings.Join(linesWith(left, "/team"), ", ")
	})
}
