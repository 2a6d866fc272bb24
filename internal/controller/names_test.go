package controller_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller"
	"github.com/mcp-operator/mcp-operator/internal/version"
)

func TestTheNamesThatScriptsRelyOnHaveTheirValues(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"app":                        controller.LabelKeyApp,
		"mcp-server (label)":         controller.LabelKeyMCPServer + " (label)",
		"mcp-server (workload)":      controller.ManagedWorkloadName + " (workload)",
		"validation":                 controller.ReconcilePhaseValidation,
		"deployment":                 controller.ReconcilePhaseDeployment,
		"service":                    controller.ReconcilePhaseService,
		"networkpolicy":              controller.ReconcilePhaseNetworkPolicy,
		"Accepted":                   controller.ConditionTypeAccepted,
		"Ready":                      controller.ConditionTypeReady,
		"Valid":                      controller.ReasonValid,
		"Invalid":                    controller.ReasonInvalid,
		"Unknown":                    controller.ReasonUnknown,
		"Available":                  controller.ReasonAvailable,
		"ConfigurationInvalid":       controller.ReasonConfigurationInvalid,
		"DeploymentUnavailable":      controller.ReasonDeploymentUnavailable,
		"ServiceUnavailable":         controller.ReasonServiceUnavailable,
		"NetworkPolicyUnavailable":   controller.ReasonNetworkPolicyUnavailable,
		"ScaledToZero":               controller.ReasonScaledToZero,
		"Initializing":               controller.ReasonInitializing,
		"MCPEndpointUnavailable":     controller.ReasonMCPEndpointUnavailable,
		"ImagePullBackOff":           controller.WaitingReasonImagePullBackOff,
		"ErrImagePull":               controller.WaitingReasonErrImagePull,
		"CrashLoopBackOff":           controller.WaitingReasonCrashLoopBackOff,
		"CreateContainerConfigError": controller.WaitingReasonCreateContainerConfigError,
		"OOMKilled":                  controller.TerminatedReasonOOMKilled,
		"CapabilityChanged":          controller.EventReasonCapabilityChanged,
		"ReconcileError":             controller.MetricReasonReconcileError,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := controller.ErrNilMap.Error(); got != "destination map not initialized" {
		t.Errorf("ErrNilMap says %q", got)
	}
	if got := controller.MCPClientVersion; got != version.String() {
		t.Errorf("the handshake tells the version %q, the build is %q", got, version.String())
	}
}

// The types of what is given, which the compiler checks.
var (
	_ = controller.MCPServerReconciler{
		Client:   client.Client(nil),
		Scheme:   (*runtime.Scheme)(nil),
		Recorder: events.EventRecorder(nil),
		MCPDialer: func(context.Context, string, *http.Transport) (*mcpv1alpha1.MCPServerInfo, error) {
			return &mcpv1alpha1.MCPServerInfo{}, nil
		},
		APIReader: client.Reader(nil),

		TLSEnvVars: []corev1.EnvVar(nil),
		TLSProfile: func(*tls.Config) {},
	}
	_ func(*controller.MCPServerReconciler, context.Context, ctrl.Request) (ctrl.Result, error) = (*controller.MCPServerReconciler).Reconcile
	_ func(*controller.MCPServerReconciler, ctrl.Manager) error                                 = (*controller.MCPServerReconciler).SetupWithManager
	_ func() (cache.Options, error)                                                             = controller.CacheOptions
	_ func(error) bool                                                                          = controller.IsOwnershipConflict
)

func TestAnOwnershipConflictIsToldFromOtherErrors(t *testing.T) {
	t.Parallel()
	conflict := &controller.OwnershipConflictError{Message: "it is not yours"}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"itself":               {conflict, true},
		"wrapped":              {fmt.Errorf("apply: %w", conflict), true},
		"joined":               {errors.Join(errors.New("other"), conflict), true},
		"another error":        {errors.New("it is not yours"), false},
		"an invalid reference": {&controller.ValidationError{Reason: "Invalid", Message: "it is not yours"}, false},
		"none":                 {nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := controller.IsOwnershipConflict(tt.err); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
	got := []string{conflict.Error(), (&controller.ValidationError{Reason: "Invalid", Message: "mend it"}).Error()}
	if diff := cmp.Diff([]string{"it is not yours", "mend it"}, got); diff != "" {
		t.Errorf("messages (-want +got)\n%s", diff)
	}
}
