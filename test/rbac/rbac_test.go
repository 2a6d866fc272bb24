// Package rbac holds the operator to the rights that it is meant to have: whoever adds one sees it in the golden file and
// has to say why.
package rbac

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	operatorRBAC      = "../../config/rbac/operator-rbac.yaml"
	operatorNamespace = "mcp-operator-system"
	operatorAccount   = "mcp-operator"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// right is one verb on one resource.
type right struct {
	resource string // group/resource, with the names in brackets if only those are meant
	verb     string
	scope    string // cluster, or the namespace
}

func TestOperatorHasTheRightsOfTheGoldenFileAndNoOther(t *testing.T) {
	t.Parallel()
	const golden = "testdata/operator.golden"
	verbs := map[string][]string{}
	for _, r := range operatorRights(t) {
		line := fmt.Sprintf("%s (%s)", r.resource, r.scope)
		verbs[line] = append(verbs[line], r.verb)
	}
	var lines []string
	for line, list := range verbs {
		resource, scope, _ := strings.Cut(line, " ")
		slices.Sort(list)
		lines = append(lines, fmt.Sprintf("%s: %s %s\n", resource, strings.Join(slices.Compact(list), " "), scope))
	}
	slices.Sort(lines)
	got := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the operator's rights differ from %s (-want +got); give a new one a reason in %s, then -update:\n%s", golden, operatorRBAC, diff)
	}
}

func TestOperatorHasNoRightThatLeadsToOthers(t *testing.T) {
	t.Parallel()
	for _, r := range operatorRights(t) {
		if problem := judge(r); problem != "" {
			t.Errorf("%s %s (%s): %s", r.verb, r.resource, r.scope, problem)
		}
	}
}

// judge says why a right is too much; empty if it is not.
func judge(r right) string {
	group, resource, _ := strings.Cut(r.resource, "/")
	resource, _, named := strings.Cut(resource, "[")
	switch {
	case strings.Contains(group+resource+r.verb, "*"):
		return "a wildcard grants what nobody has thought of"
	case slices.Contains([]string{"escalate", "bind", "impersonate"}, r.verb):
		return "it leads to every other right"
	case group == "rbac.authorization.k8s.io" && (resource != "roles" && resource != "rolebindings" || !slices.Contains(written, r.verb)):
		return "the operator hands out no rights but those of the gateways of agents"
	case group == "admissionregistration.k8s.io":
		return "a webhook configuration sees and changes every object"
	case strings.HasPrefix(resource, "pods/"):
		return "it leads into pods, past every NetworkPolicy"
	case resource == "serviceaccounts/token":
		return "it leads to every other account"
	case resource == "nodes" || strings.HasPrefix(resource, "nodes/"):
		return "the operator needs no node"
	case r.verb == "deletecollection", r.verb == "delete" && !slices.Contains(removed, resource):
		return "children go with their owner; only what an edit makes needless is deleted"
	case resource == "secrets" && !named && r.scope == "cluster" && !slices.Contains(written, r.verb):
		return "the operator deletes no Secret, and updates none past the check of who owns its fields"
	}
	return ""
}

// written are the verbs on what the operator writes and does not delete, removed are the kinds of children that an edit may make needless.
var (
	written = []string{"get", "list", "watch", "create", "patch"}
	removed = []string{
		"configmaps", "deployments", "services", "serviceaccounts", "networkpolicies", "horizontalpodautoscalers", "poddisruptionbudgets",
	}
)

func TestJudgeRefusesWhatLeadsToOtherRights(t *testing.T) {
	t.Parallel()
	refused := []right{
		{"*/*", "get", "cluster"},
		{"apps/*", "get", "cluster"},
		{"apps/deployments", "*", "cluster"},
		{"rbac.authorization.k8s.io/clusterroles", "escalate", "cluster"},
		{"rbac.authorization.k8s.io/clusterroles", "get", "cluster"},
		{"rbac.authorization.k8s.io/clusterrolebindings", "create", "cluster"},
		{"rbac.authorization.k8s.io/roles", "bind", "cluster"},
		{"rbac.authorization.k8s.io/roles", "escalate", "cluster"},
		{"rbac.authorization.k8s.io/rolebindings", "delete", "cluster"},
		{"core/users", "impersonate", "cluster"},
		{"core/pods/exec", "create", "cluster"},
		{"core/pods/portforward", "create", operatorNamespace},
		{"core/serviceaccounts/token", "create", operatorNamespace},
		{"core/nodes/proxy", "get", "cluster"},
		{"admissionregistration.k8s.io/validatingwebhookconfigurations", "patch", "cluster"},
		{"apps/statefulsets", "delete", "cluster"},
		{"mcp.operator/mcpagents", "delete", "cluster"},
		{"core/configmaps", "deletecollection", "cluster"},
		{"core/secrets", "update", "cluster"},
		{"core/secrets", "delete", "cluster"},
	}
	for _, r := range refused {
		if judge(r) == "" {
			t.Errorf("%v is let through", r)
		}
	}
	for _, r := range []right{
		{"core/configmaps", "delete", "cluster"},
		{"core/secrets", "get", "cluster"},
		{"core/secrets", "create", operatorNamespace},
		{"core/secrets", "patch", "cluster"},
		{"apps/deployments", "delete", "cluster"},
		{"rbac.authorization.k8s.io/roles", "create", "cluster"},
	} {
		if problem := judge(r); problem != "" {
			t.Errorf("%v is refused: %s", r, problem)
		}
	}
}

// operatorRights follows the bindings of the operator's account to their roles.
func operatorRights(t *testing.T) []right {
	t.Helper()
	objects := decode(t, operatorRBAC)
	var list []right
	for _, obj := range objects {
		switch obj.GetKind() {
		case "ClusterRoleBinding":
			binding := as[rbacv1.ClusterRoleBinding](t, obj)
			list = append(list, granted(t, objects, binding.Subjects, binding.RoleRef, "cluster")...)
		case "RoleBinding":
			binding := as[rbacv1.RoleBinding](t, obj)
			list = append(list, granted(t, objects, binding.Subjects, binding.RoleRef, binding.Namespace)...)
		case "ClusterRole", "Role", "ServiceAccount", "Namespace":
		default:
			t.Errorf("%s has a %s, which this test does not know", operatorRBAC, obj.GetKind())
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s grants nothing", operatorRBAC)
	}
	return list
}

// granted returns the rights of one binding, which has to be to the operator's account alone.
func granted(t *testing.T, objects []unstructured.Unstructured, subjects []rbacv1.Subject, ref rbacv1.RoleRef, scope string) []right {
	t.Helper()
	account := []rbacv1.Subject{{Kind: "ServiceAccount", Name: operatorAccount, Namespace: operatorNamespace}}
	if diff := cmp.Diff(account, subjects); diff != "" {
		t.Errorf("%s %s is bound to others than the operator (-want +got)\n%s", ref.Kind, ref.Name, diff)
	}
	for _, obj := range objects {
		if obj.GetKind() != ref.Kind || obj.GetName() != ref.Name || ref.Kind == "Role" && obj.GetNamespace() != scope {
			continue
		}
		role := as[rbacv1.ClusterRole](t, obj) // a Role has the same rules
		if role.AggregationRule != nil {
			t.Errorf("%s %s aggregates rights from elsewhere", ref.Kind, ref.Name)
		}
		return flatten(role.Rules, scope)
	}
	t.Errorf("%s %s is bound, and is not in %s", ref.Kind, ref.Name, operatorRBAC)
	return nil
}

func flatten(rules []rbacv1.PolicyRule, scope string) []right {
	var list []right
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				list = append(list, right{resource: url, verb: verb, scope: scope})
			}
			for _, group := range rule.APIGroups {
				if group == "" {
					group = "core"
				}
				for _, resource := range rule.Resources {
					name := group + "/" + resource
					if len(rule.ResourceNames) > 0 {
						name += "[" + strings.Join(rule.ResourceNames, ",") + "]"
					}
					list = append(list, right{resource: name, verb: verb, scope: scope})
				}
			}
		}
	}
	return list
}

// decode returns the objects of a manifest.
func decode(t *testing.T, path string) []unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		var obj unstructured.Unstructured
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
}

// as returns an object as its Go type; a field that the type does not have is an error.
func as[T any](t *testing.T, obj unstructured.Unstructured) T {
	t.Helper()
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, &typed, true); err != nil {
		t.Fatalf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
	return typed
}
