package envtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// TestNothingOfSomebodyElsesIsAdoptedReadOrDeleted: whatever its name, labels and owner references say. A controller of another UID is
// another one, though it bears the agent's name in another group.
func TestNothingOfSomebodyElsesIsAdoptedReadOrDeleted(t *testing.T) {
	forged := []metav1.OwnerReference{{APIVersion: "evil.example/v1", Kind: "MCPAgent", Name: "victim", UID: "forged", Controller: new(true)}}
	meta := func(f *fixture, name string, owners []metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: f.namespace, OwnerReferences: owners, Labels: map[string]string{
			"mcp.operator/agent": "victim", "mcp.operator/component": "gateway", "app.kubernetes.io/managed-by": "mcp-operator",
		}}
	}
	for name, made := range map[string]func(f *fixture, owners []metav1.OwnerReference) client.Object{
		"the Secret of sessions": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &corev1.Secret{ObjectMeta: meta(f, "victim-session", owners), StringData: map[string]string{"k1": "theirs"}}
		},
		"the table": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &corev1.ConfigMap{ObjectMeta: meta(f, "victim-gateway", owners), Data: map[string]string{"table.json": "{}"}}
		},
		"the account": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &corev1.ServiceAccount{ObjectMeta: meta(f, "victim-gateway", owners)}
		},
		"the policy": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &networkingv1.NetworkPolicy{ObjectMeta: meta(f, "victim-gateway", owners)}
		},
		"the Service": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &corev1.Service{ObjectMeta: meta(f, "victim-gateway", owners), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		},
	} {
		for whose, owners := range map[string][]metav1.OwnerReference{"nobody's": nil, "another's": forged} {
			t.Run(name+", "+whose, func(t *testing.T) {
				f, _ := startAgents(t, "victim")
				theirs := made(f, owners)
				f.create(theirs)
				version := theirs.GetResourceVersion()
				f.create(f.agent("victim"))
				f.agentCondition("victim", "Applied", metav1.ConditionFalse, "OwnershipConflict")
				if err := f.client.Delete(f.ctx, f.agent("victim")); err != nil {
					t.Fatal(err)
				}
				f.quiet()
				if err := f.get(theirs, theirs.GetName()); err != nil || theirs.GetResourceVersion() != version {
					t.Errorf("it was touched: %v", err)
				}
			})
		}
	}
}

// TestAChildThatSomebodyMakesMorePowerfulIsPutBack at once: its pods' privileges, its rights, and who may connect.
func TestAChildThatSomebodyMakesMorePowerfulIsPutBack(t *testing.T) {
	f, _ := startAgents(t, "guarded")
	f.create(f.agent("guarded"))
	f.agentCondition("guarded", "Applied", metav1.ConditionTrue, "Applied")
	f.quiet()
	deployment, role, policy, table := &appsv1.Deployment{}, &rbacv1.Role{}, &networkingv1.NetworkPolicy{}, &corev1.ConfigMap{}
	rules, open := 0, 0
	f.edit(role, "guarded-gateway", func() {
		rules = len(role.Rules)
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
	})
	f.edit(policy, "guarded-gateway", func() {
		open = len(policy.Spec.Ingress)
		policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
	})
	f.edit(deployment, "guarded-gateway", func() {
		deployment.Spec.Template.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(false)}
		deployment.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			Privileged: new(true), AllowPrivilegeEscalation: new(true), ReadOnlyRootFilesystem: new(false),
		}
		deployment.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "id"}
		deployment.Spec.Template.Spec.AutomountServiceAccountToken = new(true)
		deployment.Spec.Template.Spec.ServiceAccountName = "default"
		deployment.Spec.Template.Spec.Containers[0].Image = "evil:1"
	})
	f.edit(table, "guarded-gateway", func() { table.Data["table.json"] = `{"version":1,"auth":{"type":"None"}}` })
	f.eventually("all of it is put back", func() error {
		if err := errors.Join(f.get(role, "guarded-gateway"), f.get(policy, "guarded-gateway"), f.get(deployment, "guarded-gateway"),
			f.get(table, "guarded-gateway")); err != nil {
			return err
		}
		pod := deployment.Spec.Template.Spec
		container := pod.Containers[0]
		switch s := container.SecurityContext; {
		case len(role.Rules) != rules:
			return fmt.Errorf("rights %+v", role.Rules)
		case len(policy.Spec.Ingress) != open:
			return fmt.Errorf("let in %+v", policy.Spec.Ingress)
		case container.Image != f.gatewayImage:
			return errors.New("the image is " + container.Image)
		case strings.Contains(table.Data["table.json"], `"None"`):
			return errors.New("the table is " + table.Data["table.json"])
		case s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0:
			return fmt.Errorf("security contexts %+v, %+v", s, pod.SecurityContext)
		case container.Command[0] != "/mcp-gateway" || pod.ServiceAccountName != "guarded-gateway" || *pod.AutomountServiceAccountToken:
			return fmt.Errorf("it runs %v as %s", container.Command, pod.ServiceAccountName)
		}
		return nil
	})
	f.hasEvents("guarded", "Warning DriftCorrected RolePutBack", "Warning DriftCorrected NetworkPolicyPutBack",
		"Warning DriftCorrected DeploymentPutBack", "Warning DriftCorrected ConfigMapPutBack")
}

// TestWhatADocumentSaysCannotDisguiseAStatus: a document is somebody else's text. Of what it names, status, conditions and events have
// nothing that moves a cursor, breaks a line or hides, and not more than a little.
func TestWhatADocumentSaysCannotDisguiseAStatus(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	f := startTools(t, server)
	const evil = `\u001b[31mReady\u0007\u202e\u200b\r\nAccepted: True\u2028`
	operation := func(id string) string {
		return `{"get": {"operationId": "` + id + `", "summary": "` + evil + `", "description": "` + strings.Repeat(evil, 500) + `",
			"parameters": [{"name": "` + evil + `", "in": "header", "schema": {"$ref": "` + evil + `"}}]}}`
	}
	for name, document := range map[string]string{
		"operations": `{"openapi": "3.1.0", "servers": [{"url": "http://pets.example.com/v1"}], "paths": {"/a": ` + operation(evil) +
			`, "/b": ` + operation(strings.Repeat("b", 50_000)) + `, "/` + evil + `": ` + operation("c") + `, "/d": {"get": {"operationId": "d"}}}}`,
		"version": `{"openapi": "` + evil + `", "paths": {}}`,
		"server":  `{"openapi": "3.1.0", "servers": [{"url": "http://` + evil + `/"}], "paths": {"/a": {"get": {}}}}`,
		"key":     `{"openapi": "3.1.0", "` + evil + `": 1, "paths": {"/a": {"` + evil + `": {}}}}`,
		"syntax":  evil + strings.Repeat("x", 100_000),
	} {
		f.create(f.configMap("document-"+name, map[string]string{"a": document}))
		f.create(f.makeTool(name, mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolOpenAPI, OpenAPI: &mcpv1alpha1.OpenAPITool{
			Document: mcpv1alpha1.OpenAPIDocument{ConfigMapRef: &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: "document-" + name}, Key: "a"}},
		}}))
		tool := &mcpv1alpha1.MCPTool{}
		f.eventually("the document of "+name+" is judged", func() error {
			if err := f.get(tool, name); err != nil {
				return err
			}
			if accepted := apimeta.FindStatusCondition(tool.Status.Conditions, "Accepted"); accepted == nil || accepted.Status == metav1.ConditionUnknown {
				return errors.New("not yet")
			}
			return nil
		})
		for _, c := range tool.Status.Conditions {
			expectPlain(t, name+": "+c.Type, c.Message, 4<<10)
		}
		for _, one := range tool.Status.Tools {
			expectPlain(t, name+": a tool", one.Name, 128)
		}
	}
	events := &corev1.EventList{}
	f.eventually("events are told", func() error {
		if err := f.client.List(f.ctx, events, client.InNamespace(f.namespace)); err != nil || len(events.Items) < 5 {
			return fmt.Errorf("%d events (%w)", len(events.Items), err)
		}
		return nil
	})
	for _, event := range events.Items {
		expectPlain(t, "an event", event.Message, 1<<10)
	}
}

func expectPlain(t *testing.T, what, text string, most int) {
	t.Helper()
	if len(text) > most {
		t.Errorf("%s has %d bytes, at most %d are wanted", what, len(text), most)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			t.Errorf("%s has %q in it: %.300q", what, r, text)
			return
		}
	}
}

// TestObjectsAreGoneThoughNobodyOperates: what is deleted waits for no operator, no gateway and no backend.
func TestObjectsAreGoneThoughNobodyOperates(t *testing.T) {
	f, _ := startAgents(t, "brief")
	f.create(f.agent("brief"))
	f.agentCondition("brief", "Applied", metav1.ConditionTrue, "Applied")
	f.quiet()
	f.stop()
	tool := f.makeTool("brief", mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolHTTP, Endpoint: "https://gone.example.com"})
	f.create(tool)
	begun := time.Now()
	for _, obj := range []client.Object{f.agent("brief"), tool, f.server("web")} {
		if err := f.client.Delete(f.ctx, obj); err != nil {
			t.Fatal(err)
		}
		if err := f.get(obj, obj.GetName()); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%T is still there after %s: %v, finalizers %v", obj, time.Since(begun), err, obj.GetFinalizers())
		}
	}
}
