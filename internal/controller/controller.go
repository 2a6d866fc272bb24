// Package controller is the surface that programs wire and scripts rely on: names that are given, and do not change. All of
// it lives in the packages below; there is no logic here.
package controller

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/engine"
)

// Labels.
const (
	// LabelKeyApp is the label whose value is ManagedWorkloadName on every workload.
	LabelKeyApp = desired.LabelApp
	// LabelKeyMCPServer is the label that names the server on every pod; the pod cache selects by it.
	LabelKeyMCPServer = desired.LabelMCPServer
	// ManagedWorkloadName is the value of the app label and the name of the main container.
	ManagedWorkloadName = desired.WorkloadName
)

// Values of the label "phase" of the histogram mcpserver_reconcile_phase_duration_seconds.
const (
	ReconcilePhaseValidation    = engine.PhaseValidation
	ReconcilePhaseDeployment    = engine.PhaseDeployment
	ReconcilePhaseService       = engine.PhaseService
	ReconcilePhaseNetworkPolicy = engine.PhaseNetworkPolicy
)

// Condition types, and their reasons.
const (
	ConditionTypeAccepted = mcpv1alpha1.ConditionAccepted
	ConditionTypeReady    = mcpv1alpha1.ConditionReady

	ReasonValid   = mcpv1alpha1.ReasonValid
	ReasonInvalid = mcpv1alpha1.ReasonInvalid
	ReasonUnknown = mcpv1alpha1.ReasonUnknown

	ReasonAvailable                = mcpv1alpha1.ReasonAvailable
	ReasonConfigurationInvalid     = mcpv1alpha1.ReasonConfigurationInvalid
	ReasonDeploymentUnavailable    = mcpv1alpha1.ReasonDeploymentUnavailable
	ReasonServiceUnavailable       = mcpv1alpha1.ReasonServiceUnavailable
	ReasonNetworkPolicyUnavailable = mcpv1alpha1.ReasonNetworkPolicyUnavailable
	ReasonScaledToZero             = mcpv1alpha1.ReasonScaledToZero
	ReasonInitializing             = mcpv1alpha1.ReasonInitializing
	ReasonMCPEndpointUnavailable   = mcpv1alpha1.ReasonMCPEndpointUnavailable
)

// The kubelet's reasons that the diagnosis knows.
const (
	WaitingReasonImagePullBackOff           = diagnose.WaitingImagePullBackOff
	WaitingReasonErrImagePull               = diagnose.WaitingErrImagePull
	WaitingReasonCrashLoopBackOff           = diagnose.WaitingCrashLoopBackOff
	WaitingReasonCreateContainerConfigError = diagnose.WaitingCreateContainerConfigError
	TerminatedReasonOOMKilled               = diagnose.TerminatedOOMKilled
)

const (
	// EventReasonCapabilityChanged is the reason of the event that tells that a server offers something else than before.
	EventReasonCapabilityChanged = engine.EventCapabilityChanged
	// MetricReasonReconcileError is the value of the label "reason" of the counters of failed children.
	MetricReasonReconcileError = engine.MetricReasonReconcileError
)

var (
	// ErrNilMap says that a map that was to be written to is nil.
	ErrNilMap = errors.New("destination map not initialized")

	// MCPClientVersion is the version told in the MCP handshake. It is that of the build; to set it here changes nothing.
	MCPClientVersion = engine.ClientVersion
)

type (
	// MCPServerReconciler reconciles MCPServers.
	MCPServerReconciler = engine.Reconciler
	// OwnershipConflictError says that an object of a child's name belongs to somebody else.
	OwnershipConflictError = apply.OwnershipConflictError
	// ValidationError says that a specification has to be corrected by its author.
	ValidationError = engine.ValidationError
)

// CacheOptions returns the cache options of a manager that runs the controller: Pods are restricted, by the API server, to
// those that carry LabelKeyMCPServer, and trimmed to what is read of them.
func CacheOptions() (cache.Options, error) { return engine.CacheOptions() }

// IsOwnershipConflict says whether err is, or wraps, an *OwnershipConflictError.
func IsOwnershipConflict(err error) bool { return apply.IsOwnershipConflict(err) }
