// Package sigserver lets the engine run MCPServers of the compatibility API (mcp.x-k8s.io/v1alpha1). It translates: the
// specification into our own kind and into children (internal/desired), and what the engine found into that API's two conditions,
// events and audit log, in the words that its users' scripts know.
//
// It guarantees that a status says what is: Ready follows the pods, the count of handshakes is one of handshakes, and what still
// serves is told beside what is wrong.
package sigserver

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// Dialect is the compatibility API, for the engine.
type Dialect struct {
	// Audit is where the audit log goes; the zero value is nowhere.
	Audit logr.Logger
}

var _ engine.Dialect = Dialect{}

// Name names the controller.
func (Dialect) Name() string { return "mcpserver-sig" }

// FieldManager is who children and status are written as.
func (Dialect) FieldManager() string { return "mcp-operator-sig" }

// New returns an empty MCPServer.
func (Dialect) New() client.Object { return &sigv1alpha1.MCPServer{} }

// NewList returns an empty list.
func (Dialect) NewList() client.ObjectList { return &sigv1alpha1.MCPServerList{} }

// Read returns an object as our kind.
func (Dialect) Read(obj client.Object) *mcpv1alpha1.MCPServer {
	server := as(obj)
	return &mcpv1alpha1.MCPServer{ObjectMeta: server.ObjectMeta, Spec: specOf(server), Status: statusOf(server)}
}

// Conditions returns the two that a status of this API has.
func (Dialect) Conditions(obj client.Object) []metav1.Condition { return as(obj).Status.Conditions }

// as returns an object as what it is; the engine has no others.
func as(obj client.Object) *sigv1alpha1.MCPServer {
	server, _ := obj.(*sigv1alpha1.MCPServer)
	return server
}

// ServiceName is the server's own name.
func (Dialect) ServiceName(server string) string { return server }

// ServerOf returns what the label mcp-server says, of pods that are not of our own kind: those carry it too.
func (Dialect) ServerOf(pod client.Object) string {
	if _, own := pod.GetLabels()[desired.LabelServer]; own {
		return ""
	}
	return pod.GetLabels()[desired.LabelMCPServer]
}

// References lists the mentions of ConfigMaps and Secrets.
func (Dialect) References(obj client.Object) []engine.Reference { return referencesOf(as(obj)) }

// Authorities does not name the Secret: scripts know this beginning.
func (Dialect) Authorities(string) string { return "TLS CA bundle Secret" }

// Validate judges what CEL cannot.
func (Dialect) Validate(obj client.Object) (first, second error) {
	server := as(obj)
	return firstOf(server, nameProblem, storageProblem, healthProblem, metadataProblem), firstOf(server, environmentProblem, networkProblem, tlsProblem)
}

// Children returns what is to be applied.
func (Dialect) Children(obj client.Object, env desired.Environment, configHash string) desired.Server {
	return desired.ForSIGServer(as(obj), env, configHash)
}

// Attempts returns how many handshakes of the current generation failed in a row.
func (Dialect) Attempts(obj client.Object) (n int32, counts bool) {
	server := as(obj)
	if server.Status.ObservedGeneration != server.Generation {
		return 0, true
	}
	return max(0, server.Status.HandshakeRetryCount), true // whoever may write a status may write anything
}

// CapabilityChange tells of capabilities alone: this API's status knows of no tools.
func (Dialect) CapabilityChange(before, after *mcpv1alpha1.MCPServerStatus) string {
	if before.ServerInfo == nil || after.ServerInfo == nil {
		return ""
	}
	return engine.FlagChange(before.ServerInfo.Capabilities, after.ServerInfo.Capabilities)
}

// patience is how long a request of a handshake may take: servers that are slower than our own kind allows have always been ready here.
const patience = 10 * time.Second

// Handshaker takes a refusal for want of credentials for an answer, with a Bearer challenge or without: so that API's users know it. It
// takes what else the client of the operator that this API comes from does of a server that answers.
func (Dialect) Handshaker(c probe.Client) probe.Client {
	if ours, ok := c.(*mcp.Client); ok {
		patient := *ours
		patient.Limits.Request, patient.Lenient = patience, true
		c = &patient
	}
	return lenient{c}
}

type lenient struct{ probe.Client }

// Probe returns a Result that asks for credentials where they are wanted, with what was told before.
func (l lenient) Probe(ctx context.Context, target mcp.Target) (*mcp.Result, error) {
	result, err := l.Client.Probe(ctx, target)
	if refused(err) {
		if result == nil {
			result = &mcp.Result{}
		}
		result.AuthRequired = true
		return result, nil
	}
	return result, err
}

// Check is content when it was refused before, too.
func (l lenient) Check(ctx context.Context, target mcp.Target, last *mcp.Result) error {
	err := l.Client.Check(ctx, target, last)
	switch {
	case !refused(err):
		return err
	case last != nil && last.AuthRequired && last.ProtocolVersion == "":
		return nil
	}
	return mcp.ErrStale
}

// refused says whether an error is the answer of a server that asks for credentials. One that only refuses the name that it is called
// by (HostRefused) refuses its clients as well, whatever credentials they have.
func refused(err error) bool {
	reason := mcp.ReasonOf(err)
	return reason == mcp.Unauthorized || reason == mcp.Forbidden
}

// firstOf returns the first problem, as a *engine.ValidationError.
func firstOf(server *sigv1alpha1.MCPServer, judges ...func(*sigv1alpha1.MCPServer) string) error {
	for _, problem := range judges {
		if message := problem(server); message != "" {
			return &engine.ValidationError{Reason: mcpv1alpha1.ReasonInvalid, Message: message}
		}
	}
	return nil
}
