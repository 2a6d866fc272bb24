package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// native is our own API: there is nothing to translate.
type native struct{}

// Name names the controller.
func (native) Name() string { return "mcpserver" }

// FieldManager is who children and status are written as.
func (native) FieldManager() string { return apply.FieldManager }

// New returns an empty MCPServer.
func (native) New() client.Object { return &mcpv1alpha1.MCPServer{} }

// NewList returns an empty list.
func (native) NewList() client.ObjectList { return &mcpv1alpha1.MCPServerList{} }

// Read returns the object itself.
func (native) Read(obj client.Object) *mcpv1alpha1.MCPServer {
	server, _ := obj.(*mcpv1alpha1.MCPServer)
	return server
}

// Conditions returns those of the object.
func (n native) Conditions(obj client.Object) []metav1.Condition {
	return n.Read(obj).Status.Conditions
}

// ServiceName is the name of the Service.
func (native) ServiceName(server string) string { return desired.ServiceName(server) }

// ServerOf returns what the label mcp.operator/server says.
func (native) ServerOf(pod client.Object) string { return pod.GetLabels()[desired.LabelServer] }

// References lists the mentions of ConfigMaps and Secrets.
func (n native) References(obj client.Object) []Reference { return referencesOf(n.Read(obj)) }

// Authorities names the Secret and the field.
func (native) Authorities(secret string) string { return "Secret '" + secret + "' (tls.caSecretRef)" }

// Validate finds nothing: the schema said it all.
func (native) Validate(client.Object) (first, second error) { return nil, nil }

// Children returns what is to be applied.
func (n native) Children(obj client.Object, env desired.Environment, configHash string) desired.Server {
	return desired.ForServer(n.Read(obj), env, configHash)
}

// Attempts are not told in the status.
func (native) Attempts(client.Object) (int32, bool) { return 0, false }

// Handshaker takes answers as they are.
func (native) Handshaker(c probe.Client) probe.Client { return c }

// Write has nothing to do: the engine wrote into the object's own status.
func (native) Write(client.Object, Pass) {}

// CapabilityChange tells of tools by name.
func (native) CapabilityChange(before, after *mcpv1alpha1.MCPServerStatus) string {
	return capabilityDiff(before, after)
}

// Events has nothing to add.
func (native) Events(client.Object, client.Object) []Event { return nil }

// Report tells nobody.
func (native) Report(context.Context, client.Object, client.Object, Pass) {}

// Starting tells nobody.
func (native) Starting(Handshake) {}

// Ended tells nobody.
func (native) Ended(Handshake, time.Duration, *mcp.Result, error) {}
