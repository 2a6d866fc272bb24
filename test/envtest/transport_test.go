package envtest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

func TestAServerWithHTTPSIsVerifiedByItsAuthorityAndARotationRollsNoPod(t *testing.T) {
	first, second := mcptest.NewAuthority(t, "first"), mcptest.NewAuthority(t, "second")
	pods := dialTo("127.0.0.1:1")
	f := start(t, pods)
	config := &tls.Config{Certificates: []tls.Certificate{first.Certificate("secure-svc." + f.namespace + ".svc.cluster.local")}, MinVersion: tls.VersionTLS12}
	listening := mcptest.ServeTLSAs(t, config, mcptest.Modern(nil))
	pods.address.Store(new(listening.Address()))

	server := f.server("secure")
	server.Spec.TLS = &mcpv1alpha1.ServerTLS{CASecretRef: &mcpv1alpha1.SecretKey{ObjectName: mcpv1alpha1.ObjectName{Name: "authority"}}}
	f.create(server)
	invalid := f.condition("secure", "Accepted", metav1.ConditionFalse, "Invalid")
	if message := messageOf(invalid, "Accepted"); !strings.HasPrefix(message, "Secret 'authority' (tls.caSecretRef) not found") {
		t.Errorf("Accepted says %q", message)
	}
	authority := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "authority", Namespace: f.namespace}, Data: map[string][]byte{"ca.crt": []byte(second.PEM)},
	}
	f.create(authority)
	f.condition("secure", "Accepted", metav1.ConditionTrue, "Valid")
	f.readyPod("secure", "secure-a")
	f.rolledOut("secure", 1)
	f.condition("secure", "Verified", metav1.ConditionFalse, "TLSFailed")
	template := f.podTemplate("secure")

	f.edit(authority, "authority", func() { authority.Data["ca.crt"] = []byte(second.PEM + first.PEM) })
	ready := f.condition("secure", "Ready", metav1.ConditionTrue, "Available")
	if want := fmt.Sprintf("https://secure-svc.%s.svc.cluster.local:8080/mcp", f.namespace); ready.Status.Endpoint != want {
		t.Errorf("endpoint %q, want %q", ready.Status.Endpoint, want)
	}
	f.edit(authority, "authority", func() { authority.Data["ca.crt"] = []byte(second.PEM) })
	f.condition("secure", "Verified", metav1.ConditionFalse, "TLSFailed")
	if got := f.podTemplate("secure"); got != template {
		t.Errorf("a rotation of the authority changed the pods:\n%s\n%s", template, got)
	}
}

// podTemplate is what the pods of a server are asked to be, as one text.
func (f *fixture) podTemplate(name string) string {
	f.t.Helper()
	d := &appsv1.Deployment{}
	if err := f.get(d, name); err != nil {
		f.t.Fatal(err)
	}
	return d.Spec.Template.String()
}

func messageOf(server *mcpv1alpha1.MCPServer, conditionType string) string {
	for _, c := range server.Status.Conditions {
		if c.Type == conditionType {
			return c.Message
		}
	}
	return ""
}

func TestAServerWhoseCertificateIsNotVerifiedWorksAndWarns(t *testing.T) {
	listening := mcptest.ServeTLS(t, mcptest.Modern(nil))
	f := start(t, dialTo(listening.Address()))
	server := f.server("careless")
	server.Spec.TLS = &mcpv1alpha1.ServerTLS{InsecureSkipVerify: true}
	f.create(server)
	f.condition("careless", "Applied", metav1.ConditionTrue, "Applied")
	f.readyPod("careless", "careless-a")
	f.rolledOut("careless", 1)
	verified := f.condition("careless", "Verified", metav1.ConditionTrue, "Verified")
	for _, conditionType := range []string{"Accepted", "Verified"} {
		if message := messageOf(verified, conditionType); !strings.HasSuffix(message, "is not verified (insecureSkipVerify)") {
			t.Errorf("%s says %q", conditionType, message)
		}
	}
	f.eventually("a warning is told", func() error {
		events := &eventsv1.EventList{}
		if err := f.client.List(f.ctx, events, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "InsecureTLS" && e.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return errors.New("not yet")
	})
}

func TestAServerWithSSEIsVerifiedAtItsEventStream(t *testing.T) {
	listening := mcptest.NewSSEServer(t, "echo")
	f := start(t, dialTo(listening.Address()))
	server := f.server("events")
	server.Spec.Transport = mcpv1alpha1.TransportSSE
	f.create(server)
	f.condition("events", "Applied", metav1.ConditionTrue, "Applied")
	f.readyPod("events", "events-a")
	f.rolledOut("events", 1)
	ready := f.condition("events", "Ready", metav1.ConditionTrue, "Available")
	if want := fmt.Sprintf("http://events-svc.%s.svc.cluster.local:8080/sse", f.namespace); ready.Status.Endpoint != want {
		t.Errorf("endpoint %q, want %q", ready.Status.Endpoint, want)
	}
	if len(ready.Status.Tools) != 1 || ready.Status.Sessions != mcpv1alpha1.SessionsStateful {
		t.Errorf("status %+v", ready.Status)
	}
}

func TestAnUpgradeOfTheOperatorLeavesTheBridgeAndAnEditOrARequestBringsTheNewOne(t *testing.T) {
	f := start(t, nil)
	server := f.server("bridged")
	server.Spec.Transport, server.Spec.Command = mcpv1alpha1.TransportStdio, []string{"server"}
	f.create(server)
	f.bridge("bridged", "registry.example.com/mcp-gateway:1")
	f.quiet()

	f.gatewayImage = "registry.example.com/mcp-gateway:2"
	f.restart(nil, 1)
	f.wantWrites("a start with another image of the bridge", map[string]int{}, 0)
	f.edit(server, "bridged", func() { server.Spec.Replicas = new(int32(3)) })
	f.eventually("it is scaled", func() error {
		d := &appsv1.Deployment{}
		if err := f.get(d, "bridged"); err != nil || *d.Spec.Replicas != 3 {
			return fmt.Errorf("%v replicas, %w", d.Spec.Replicas, err)
		}
		return nil
	})
	f.bridge("bridged", "registry.example.com/mcp-gateway:1")
	f.edit(server, "bridged", func() { server.Annotations = map[string]string{mcpv1alpha1.AnnotationUpgradeGateway: "now"} })
	f.bridge("bridged", "registry.example.com/mcp-gateway:2")

	f.gatewayImage = ""
	f.restart(nil, 1)
	f.wantWrites("a start without an image of the bridge", map[string]int{}, 0)
	other := f.server("unbridged")
	other.Spec.Transport, other.Spec.Command = mcpv1alpha1.TransportStdio, []string{"server"}
	f.create(other)
	f.condition("unbridged", "Applied", metav1.ConditionFalse, "GatewayImageMissing")
	f.condition("unbridged", "Ready", metav1.ConditionFalse, "DeploymentUnavailable")

	f.gatewayImage = "registry.example.com/mcp-gateway:3"
	f.restart(nil, 2)
	f.bridge("unbridged", "registry.example.com/mcp-gateway:3")
	f.edit(server, "bridged", func() { server.Spec.Command = []string{"other"} })
	f.bridge("bridged", "registry.example.com/mcp-gateway:3")
}

// bridge waits until the pods of a server are asked for, and its status tells, an image of the bridge.
func (f *fixture) bridge(name, image string) {
	f.t.Helper()
	f.eventually(name+" has the bridge of "+image, func() error {
		d, server := &appsv1.Deployment{}, &mcpv1alpha1.MCPServer{}
		if err := errors.Join(f.get(d, name), f.get(server, name)); err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.InitContainers; len(got) != 1 || got[0].Image != image || server.Status.GatewayImage != image {
			return fmt.Errorf("asked for %+v, recorded %q", got, server.Status.GatewayImage)
		}
		return nil
	})
}
