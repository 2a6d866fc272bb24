package mcpagent

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/route"
)

// withdraw takes out of the table of an agent that is refused what is not granted any more, or has no backend any more. All else stays as
// it was until the agent is mended, and is put back if somebody else changed it.
func (s *scope) withdraw(ctx context.Context) reconcile.Outcome {
	if s.refused == nil || s.route.Table == nil || s.route.Table.Revision == s.agent.Status.TableRevision && !s.tampered {
		return reconcile.Keep(0)
	}
	return s.writeTable(ctx, desired.AgentTable(s.agent, s.route.JSON))
}

// validate says whether the specification is usable, and works out what it asks for. What is wrong with something that is granted is told
// by Routed, and costs that thing only.
func (s *scope) validate(context.Context) reconcile.Outcome {
	if s.agent.Namespace == s.OperatorNamespace {
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, fmt.Errorf(
			"MCPAgents are not run in the operator's own namespace %q, where a pod could take the operator's account: use another namespace",
			s.agent.Namespace))
	}
	if errors.Is(s.refused, route.ErrKeysUnknown) {
		message := "The keys by which tokens of ServiceAccounts are verified are not known: " + s.facts.IssuerError
		if s.route.LetsNobodyIn {
			message += "; nobody may call until they are: " + noneInCommon
		}
		return reconcile.Wait(mcpv1alpha1.ReasonUnknown, message, 0)
	}
	if s.refused != nil && s.route.LetsNobodyIn {
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, fmt.Errorf("%w; nobody may call until it is mended: %s", s.refused, noneInCommon))
	}
	if s.refused != nil && s.agent.Status.TableRevision != "" {
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, fmt.Errorf(
			"%w; until then what was granted before is served, as far as it still is granted and there, to callers whom both specifications let in",
			s.refused))
	}
	if s.refused != nil {
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, s.refused)
	}
	env, err := s.environment()
	if err != nil {
		return reconcile.Retry(mcpv1alpha1.ReasonUnknown, err)
	}
	s.chooseGateway(env)
	env.GatewayImage = s.agent.Status.GatewayImage
	s.children, s.validated = desired.ForAgent(s.agent, env), true
	return reconcile.Done(mcpv1alpha1.ReasonValid, valid)
}

const valid = "Configuration is valid"

// noneInCommon is why nobody is let in while a specification is not in force.
const noneInCommon = "the gateway lets in whom both the last accepted specification and this one let in, and knows of no such caller"

// observeGateway says that the gateway's children are as asked when the agent's own workload is held up: what was wrong with one of them
// before is not any more. What was True stays, of the generation that it was.
func (s *scope) observeGateway(context.Context) reconcile.Outcome {
	if !s.gatewayApplied || s.missing == nil || s.stored(mcpv1alpha1.ConditionApplied).Status == metav1.ConditionTrue {
		return reconcile.Keep(0)
	}
	return reconcile.Wait(mcpv1alpha1.ReasonApplyFailed, "The gateway is up to date; the agent's own workload waits for what it reads, see Accepted", 0)
}

// requireReferences says whether everything exists that the agent's own workload reads.
func (s *scope) requireReferences(context.Context) reconcile.Outcome {
	if s.missing != nil && s.unverified != nil {
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, fmt.Errorf("%w; %w", s.missing, s.unverified))
	}
	if s.missing != nil {
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, s.missing)
	}
	return reconcile.Done(mcpv1alpha1.ReasonValid, valid)
}

// environment is what the children depend on besides the agent.
func (s *scope) environment() (desired.AgentEnvironment, error) {
	sessionKey, err := derive(s.MasterKey, "mcp.operator/session-key/", s.agent.UID)
	if err != nil {
		return desired.AgentEnvironment{}, err
	}
	token, err := statusToken(s.MasterKey, s.agent.UID)
	return desired.AgentEnvironment{
		OperatorNamespace: s.OperatorNamespace, ClusterDomain: s.ClusterDomain,
		Table: s.route.JSON, SessionKey: sessionKey, StatusToken: []byte(token),
		Mounts: s.route.Mounts, Definitions: s.route.Definitions, Reach: s.route.Reach,
		ServiceIP: s.serviceIP, APIServer: s.facts.APIServer, DNS: s.DNS, ConfigHash: s.configHash,
	}, err
}

// derive makes a key of an agent's own from the operator's. It is the same after every restart, and different for every object.
func derive(master []byte, purpose string, uid types.UID) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, master, nil, purpose+string(uid), sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive a key (%s): %w", purpose, err)
	}
	return key, nil
}

// statusToken is what a gateway asks of whoever reads its status.
func statusToken(master []byte, uid types.UID) (string, error) {
	key, err := derive(master, "mcp.operator/status-token/", uid)
	return hex.EncodeToString(key), err
}

// chooseGateway records in the status which image the gateway's pods get. It stays what it is while the pods are asked to be nothing
// else: so an upgrade of the operator, which brings another image, replaces no pod. It is chosen anew when pods are replaced in any case,
// and on request (AnnotationUpgradeGateway).
func (s *scope) chooseGateway(env desired.AgentEnvironment) {
	status := &s.agent.Status
	revision := desired.AgentGatewayRevision(s.agent, env)
	if status.GatewayRevision != revision || status.GatewayImage == "" {
		if s.GatewayImage != "" { // an operator that knows none keeps what there is
			status.GatewayImage = s.GatewayImage
		}
		status.GatewayRevision = revision
	}
}

// applyTable writes the routing table. Whether all children are as asked, the phases after it tell.
func (s *scope) applyTable(ctx context.Context) reconcile.Outcome {
	return s.writeTable(ctx, s.children.Table)
}

func (s *scope) writeTable(ctx context.Context, table *corev1.ConfigMap) reconcile.Outcome {
	if err := s.apply(ctx, table); err != nil {
		return s.wrong("ConfigMap", err)
	}
	status, revision := &s.agent.Status, s.route.Table.Revision
	if s.refused != nil {
		s.keepTable(s.key(), string(s.route.JSON))
	}
	if status.TableRevision != revision {
		previous := status.TableRevision
		s.remember(s.key(), func(m *memory) { m.replace(previous, revision, time.Now()) })
		status.TableRevision, s.revised = revision, true
	}
	return reconcile.Keep(0)
}

// applyAccess writes the gateway's account, what that may read, and the Secret with its keys.
func (s *scope) applyAccess(ctx context.Context) reconcile.Outcome {
	c := s.children
	for _, child := range []child{
		{"ServiceAccount", c.ServiceAccount}, {"Role", c.Role}, {"RoleBinding", c.RoleBinding}, {"Secret", c.Secret},
	} {
		if err := s.apply(ctx, child.obj); err != nil {
			return s.wrong(child.kind, err)
		}
	}
	return reconcile.Keep(0)
}

// applyPolicies writes the NetworkPolicies of the gateway.
func (s *scope) applyPolicies(ctx context.Context) reconcile.Outcome {
	if len(s.facts.APIServer) == 0 {
		s.failedChild = "NetworkPolicy"
		return reconcile.Wait(mcpv1alpha1.ReasonApplyFailed,
			"The addresses of the API server, which the NetworkPolicy has to let the gateway connect to, are not known: "+s.facts.APIServerError, 0)
	}
	if err := s.apply(ctx, s.children.NetworkPolicy); err != nil {
		return s.wrong("NetworkPolicy", err)
	}
	if s.children.ServersPolicy != nil {
		if err := s.apply(ctx, s.children.ServersPolicy); err != nil {
			return s.wrong("NetworkPolicy", err)
		}
	}
	return reconcile.Keep(0)
}

func (s *scope) applyService(ctx context.Context) reconcile.Outcome {
	if err := s.apply(ctx, s.children.Service); err != nil {
		return s.wrong("Service", err)
	}
	return reconcile.Keep(0)
}

//nolint:staticcheck // ST1005: a sentence in a condition
var errNoGatewayImage = errors.New("An MCPAgent needs a gateway, and this operator was started without --gateway-image " +
	"(environment variable MCP_OPERATOR_GATEWAY_IMAGE): whoever runs the operator has to set it")

// applyGateway removes what is asked for no more, since an autoscaler that is left would insist on its number of replicas, and writes
// the gateway's Deployment and what keeps and scales it.
func (s *scope) applyGateway(ctx context.Context) reconcile.Outcome {
	if s.agent.Status.GatewayImage == "" {
		s.failedChild = "Deployment"
		return reconcile.Invalid(mcpv1alpha1.ReasonGatewayImageMissing, errNoGatewayImage)
	}
	if err := s.remove(ctx, s.children.Unwanted); err != nil {
		return s.wrong("what is asked for no more", err)
	}
	if err := s.apply(ctx, s.children.Deployment); err != nil {
		return s.wrong("Deployment", err)
	}
	s.gatewayDeployed = true
	if budget := s.children.DisruptionBudget; budget != nil {
		if err := s.apply(ctx, budget); err != nil {
			return s.wrong("PodDisruptionBudget", err)
		}
	}
	if autoscaler := s.children.Autoscaler; autoscaler != nil && !desired.HasRuntime(s.agent) {
		if err := s.apply(ctx, autoscaler); err != nil {
			return s.wrong("HorizontalPodAutoscaler", err)
		}
	}
	s.gatewayApplied = true
	return reconcile.Keep(0)
}

// applyRuntime writes the agent's own workload, once the address of its endpoint is known.
func (s *scope) applyRuntime(ctx context.Context) reconcile.Outcome {
	c := s.children
	s.applied = true
	if !desired.HasRuntime(s.agent) {
		return done()
	}
	children := []child{{"ServiceAccount", c.RuntimeServiceAccount}, {"NetworkPolicy", c.RuntimePolicy}}
	if c.RuntimeDeployment == nil {
		s.applied = false
	} else {
		children = append(children, child{"Deployment", c.RuntimeDeployment})
		if c.Autoscaler != nil {
			children = append(children, child{"HorizontalPodAutoscaler", c.Autoscaler})
		}
	}
	for _, child := range children {
		if err := s.apply(ctx, child.obj); err != nil {
			s.applied = false
			return s.wrong(child.kind, err)
		}
	}
	if !s.applied {
		return reconcile.Wait(mcpv1alpha1.ReasonApplyFailed, "Waiting for the address of the endpoint, which the agent's own workload is told", 0)
	}
	return done()
}

// removeSpare removes what is not needed any more. That it cannot be removed takes nothing from an agent that works. What protects the pods of
// an own workload that is asked for no more goes when they are gone: one that is told to end may run, and connect, until its grace period
// is over.
func (s *scope) removeSpare(ctx context.Context) reconcile.Outcome {
	spare := s.children.Spare
	if s.seen && s.runtime.deployment == nil && len(s.runtime.pods)+s.runtime.going == 0 {
		spare = slices.Concat(spare, s.children.Outlived)
	}
	if err := s.remove(ctx, spare); err != nil {
		return reconcile.Leftover(mcpv1alpha1.ReasonApplied, allApplied, fmt.Errorf("what is not needed any more could not be removed: %w", err))
	}
	return done()
}

// child is one to apply, and what to call it.
type child struct {
	kind string
	obj  client.Object
}

func (s *scope) apply(ctx context.Context, child client.Object) error {
	_, err := s.applier.Apply(ctx, s.agent, child)
	return err
}

// remove deletes children, as far as they are this agent's. One that cannot be deleted keeps none of the others, and is what the error is
// about.
func (s *scope) remove(ctx context.Context, children []desired.Object) error {
	var failed error
	for _, child := range children {
		obj, ok := child.(client.Object)
		if !ok {
			continue // never: both are what metav1.Object and runtime.Object are
		}
		if err := s.applier.Remove(ctx, s.agent, obj); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// allApplied is the message of Applied when nothing is wrong.
const allApplied = "All child objects are up to date"

func done() reconcile.Outcome { return reconcile.Done(mcpv1alpha1.ReasonApplied, allApplied) }

// wrong turns the error of writing a child into an outcome.
func (s *scope) wrong(kind string, err error) reconcile.Outcome {
	s.failedChild = kind
	return apply.Outcome("Failed to reconcile "+kind, err)
}
