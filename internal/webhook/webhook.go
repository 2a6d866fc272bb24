package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// The paths at which the API server asks, one for each kind.
const (
	Path              = "/validate-mcp-operator-v1alpha1-mcpserver"
	AgentPath         = "/validate-mcp-operator-v1alpha1-mcpagent"
	CompatibilityPath = "/validate-mcp-x-k8s-io-v1alpha1-mcpserver"
)

// Register lets a server answer for MCPServers of both APIs and for MCPAgents. Every decision is written to the log "audit".
func Register(server webhook.Server, scheme *runtime.Scheme, policy Policy, log logr.Logger) {
	decoder := admission.NewDecoder(scheme)
	server.Register(Path, &admission.Webhook{Handler: handler[*mcpv1alpha1.MCPServer]{
		policy: policy, decoder: decoder, log: log.WithName("audit"), empty: &mcpv1alpha1.MCPServer{}, subject: ours,
	}})
	server.Register(AgentPath, &admission.Webhook{Handler: handler[*mcpv1alpha1.MCPAgent]{
		policy: policy, decoder: decoder, log: log.WithName("audit"), empty: &mcpv1alpha1.MCPAgent{}, subject: agent,
	}})
	server.Register(CompatibilityPath, &admission.Webhook{Handler: handler[*sigv1alpha1.MCPServer]{
		policy: policy, decoder: decoder, log: log.WithName("audit"), empty: &sigv1alpha1.MCPServer{}, subject: compatibility,
	}})
}

// ours counts everything that becomes a volume.
func ours(server *mcpv1alpha1.MCPServer) subject {
	mounts := len(server.Spec.Storage) + len(server.Spec.SecretRefs)
	if server.Spec.Config != nil {
		mounts++
	}
	return subject{image: server.Spec.Image, mounts: mounts, labels: server.Labels}
}

// agent is an agent's own workload, if it has one. It mounts nothing.
func agent(a *mcpv1alpha1.MCPAgent) subject {
	if a.Spec.Runtime == nil || a.Spec.Runtime.Image == "" {
		return subject{noImage: true, labels: a.Labels}
	}
	return subject{image: a.Spec.Runtime.Image, labels: a.Labels}
}

func compatibility(server *sigv1alpha1.MCPServer) subject {
	s := subject{mounts: len(server.Spec.Config.Storage), labels: server.Labels}
	if image := server.Spec.Source.ContainerImage; image != nil {
		s.image = image.Ref
	}
	return s
}

// handler judges the objects of one kind.
type handler[T client.Object] struct {
	policy  Policy
	decoder admission.Decoder
	log     logr.Logger
	empty   T
	subject func(T) subject
}

// Handle judges one request.
func (h handler[T]) Handle(_ context.Context, req admission.Request) admission.Response {
	server, ok := h.empty.DeepCopyObject().(T)
	if !ok {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("a copy of a %T is none", h.empty))
	}
	if err := h.decoder.Decode(req, server); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read %s %s/%s: %w", req.Kind.Kind, req.Namespace, req.Name, err))
	}
	s := h.subject(server)
	reason := strings.Join(h.policy.judge(s), "; ")
	if req.Operation == admissionv1.Update && !server.GetDeletionTimestamp().IsZero() {
		reason = "" // only finalizers are left to change, and must not be kept from it
	}
	log := h.log.WithValues("mcpserver", server.GetName())
	if req.Kind.Kind == "MCPAgent" {
		log = h.log.WithValues("mcpagent", server.GetName())
	}
	log.Info("webhook_decision",
		"namespace", req.Namespace, "apiGroup", req.Kind.Group,
		"operation", string(req.Operation), "allowed", reason == "", "reason", reason, "image", s.image)
	if reason != "" {
		return admission.Denied(reason)
	}
	return admission.Allowed("")
}
