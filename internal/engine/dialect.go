package engine

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// Dialect is an API whose objects the engine runs. The engine works on our kind: a dialect reads its own objects as one, says
// which children they ask for, and tells in their status, in that API's words, what the engine found.
//
// Its methods are called concurrently. Objects that they are given to read may be a cache's.
type Dialect interface {
	Kind
	Translator
	Teller
}

// Kind is whose objects they are.
type Kind interface {
	// Name names the controller, and the API in logs.
	Name() string

	// FieldManager is who children and status are written as. No two dialects have the same (internal/apply says why).
	FieldManager() string

	// New returns an empty object, NewList an empty list.
	New() client.Object
	NewList() client.ObjectList

	// ServiceName is the name of a server's Service. It ends in ServiceName("").
	ServiceName(server string) string

	// ServerOf returns the name of the server whose pod it is by its labels; empty if it is of no server of this API.
	ServerOf(pod client.Object) string
}

// Translator turns objects into what the engine works on, and back.
type Translator interface {
	// Read returns an object as our kind: its metadata, what of the specification the engine looks at (replicas, port, path, TLS),
	// and the conditions and the server's information that its status stands for.
	Read(obj client.Object) *mcpv1alpha1.MCPServer

	// Conditions returns those that an object's own status has: what Read makes of them may be more.
	Conditions(obj client.Object) []metav1.Condition

	// References lists every mention of a ConfigMap or Secret that the pods read, in the order of the specification.
	References(obj client.Object) []Reference

	// Authorities is how a message begins about the Secret with the certificates to trust.
	Authorities(secret string) string

	// Validate returns a *ValidationError for what CEL cannot say: the first for what is judged before references are followed, the
	// second for what is judged after.
	Validate(obj client.Object) (first, second error)

	// Children returns what is to be applied.
	Children(obj client.Object, env desired.Environment, configHash string) desired.Server

	// Attempts returns how many handshakes have failed in a row as the status tells. counts says that the status tells it at all: then
	// each failure wakes the object.
	Attempts(obj client.Object) (n int32, counts bool)

	// Handshaker adds to a client what the API takes for an answer.
	Handshaker(client probe.Client) probe.Client

	// Write puts what the pass found into the object's status.
	Write(obj client.Object, pass Pass)
}

// Teller tells of what changed beside the status.
type Teller interface {
	// CapabilityChange says what a server offers now and did not before, in one line; empty if nothing changed.
	CapabilityChange(before, after *mcpv1alpha1.MCPServerStatus) string

	// Events returns what is to be told beside the events of all APIs.
	Events(before, after client.Object) []Event

	// Report tells of a pass after the status says so too; Starting and Ended tell of a handshake. They may do nothing, and must not block.
	Report(ctx context.Context, before, after client.Object, pass Pass)
	Starting(handshake Handshake)
	Ended(handshake Handshake, took time.Duration, result *mcp.Result, err error)
}

// Handshake is what is told of a handshake: of whom, and whether it is a full one or only asks whether the last one still holds.
type Handshake = probe.Attempt

// Pass is what one pass found.
type Pass struct {
	// Server is the object as our kind, with the conditions of this pass.
	Server *mcpv1alpha1.MCPServer

	// Deployment is the live Deployment; nil if there is none that the object owns. Seen says that it could be looked for.
	Deployment *appsv1.Deployment
	Seen       bool

	// DiagnosisReason and Diagnosis are what is wrong with the pods, in the words that users of the compatibility API know; empty if nothing
	// is known to be.
	DiagnosisReason, Diagnosis string

	// FailedChild is the kind of the child that could not be written; empty if all could. Cause is the error of the first phase that
	// was not done, nil if there is none.
	FailedChild string
	Cause       error

	// Endpoint is the address of the MCP endpoint, whether it answers or not.
	Endpoint string

	// Attempts is how many handshakes have failed in a row.
	Attempts int32

	// Policy is what was done to the NetworkPolicy.
	Policy apply.Change

	// CapabilityChange says what the server offers now and did not before; empty if nothing changed.
	CapabilityChange string
}
