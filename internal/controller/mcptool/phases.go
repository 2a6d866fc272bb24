package mcptool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	gatewayschema "github.com/mcp-operator/mcp-operator/internal/gateway/schema"
	"github.com/mcp-operator/mcp-operator/internal/reach"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/route"
)

// validated is the message of Accepted when there is nothing to add.
const validated = "Configuration is valid"

// validate says whether the specification is usable, and works out what tools it becomes.
func (s *scope) validate(ctx context.Context) reconcile.Outcome {
	if s.tool.Namespace == s.opts.OperatorNamespace {
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, invalid(
			"MCPTools are not accepted in the operator's own namespace %q: use another namespace", s.tool.Namespace))
	}
	out, err := s.judge(ctx)
	var wrong *ValidationError
	switch {
	case errors.As(err, &wrong):
		return reconcile.Invalid(cmp.Or(wrong.reason, mcpv1alpha1.ReasonInvalid), wrong)
	case err != nil:
		return reconcile.Retry(mcpv1alpha1.ReasonUnknown, err)
	}
	return out
}

// judge returns a *ValidationError if something is up to the author.
func (s *scope) judge(ctx context.Context) (reconcile.Outcome, error) {
	source := s.tool.Spec.OpenAPI
	if source == nil || source.Document.URL == "" {
		s.fetcher.Forget(s.key())
	}
	if source == nil || source.Document.URL != "" {
		s.maker.Forget(s.key())
	}
	if !s.isOpenAPI() {
		s.shelf.forget(s.key())
	}
	if at := s.tool.Spec.Endpoint; at != "" {
		if err := s.checkCredential(ctx, at); err != nil {
			return reconcile.Outcome{}, err
		}
		return s.judgeRest(ctx)
	}
	out, err := s.judgeRest(ctx)
	if stored := s.before.Status.Definitions; stored != nil && s.definitions == nil {
		if unsent := s.checkCredential(ctx, stored.Endpoint); isNotAllowed(unsent) {
			return out, unsent // where it was sent until now is told before what else is wrong
		}
	}
	return out, err
}

// judgeRest judges all but whether the credential may be sent to the endpoint.
func (s *scope) judgeRest(ctx context.Context) (reconcile.Outcome, error) {
	done := reconcile.Done(mcpv1alpha1.ReasonValid, validated)
	if _, err := s.trust(ctx); err != nil {
		return done, err
	}
	lone, err := s.define(ctx)
	if err != nil {
		return done, err
	}
	if pg := s.tool.Spec.Postgres; s.tool.Spec.Type == mcpv1alpha1.ToolPostgres && pg.TLS == "Disable" && !s.opts.AllowPrivate {
		return done, invalid("postgres.tls: Disable is for databases at private addresses, which the operator admits when it is started " +
			"with --allow-private-endpoints")
	}
	if s.isOpenAPI() {
		return s.judgeDocument(ctx)
	}
	s.lone = lone
	return done, nil
}

// define says what tool the types http and postgres are, and that a gateway would take what the specification says.
func (s *scope) define(ctx context.Context) (mcpv1alpha1.ToolStatus, error) {
	if s.tool.Spec.Schema == nil || s.tool.Spec.Schema.ConfigMapRef == nil {
		return s.defineBy("")
	}
	want := wanted{ref: s.tool.Spec.Schema.ConfigMapRef, field: "schema.configMapRef", also: s.revision()}
	return fromConfigMap(ctx, s, want, func(_ string, content []byte) (mcpv1alpha1.ToolStatus, error) { return s.defineBy(string(content)) })
}

// defineBy is define with the text that schema.configMapRef refers to; empty if it is not given.
func (s *scope) defineBy(schema string) (mcpv1alpha1.ToolStatus, error) {
	definition, err := route.ToolDefinition(s.tool, route.SchemaText{Text: schema})
	if wrong, ok := errors.AsType[*route.InvalidError](err); ok {
		return mcpv1alpha1.ToolStatus{}, &ValidationError{Message: wrong.Message}
	}
	if err != nil {
		return mcpv1alpha1.ToolStatus{}, fmt.Errorf("compile MCPTool %s: %w", s.key(), err)
	}
	return mcpv1alpha1.ToolStatus{Name: definition.Name, Digest: definition.Digest}, checkSchemas(definition)
}

// checkSchemas refuses what gateways could not check arguments and results by.
func checkSchemas(definition route.Definition) error {
	var raw json.RawMessage
	switch {
	case definition.HTTP != nil:
		raw = definition.HTTP.Definition
	case definition.Postgres != nil:
		raw = definition.Postgres.Definition
	default:
		return nil // the tools are the server's own
	}
	var tool struct {
		Input  json.RawMessage `json:"inputSchema"`
		Output json.RawMessage `json:"outputSchema"`
	}
	if err := json.Unmarshal(raw, &tool); err != nil {
		return fmt.Errorf("read a definition that was just written: %w", err)
	}
	if err := gatewayschema.Check(tool.Input); err != nil {
		return invalid("schema.input: %s", err)
	}
	if tool.Output == nil {
		return nil
	}
	if err := gatewayschema.Check(tool.Output); err != nil {
		return invalid("schema.output: %s", err)
	}
	return nil
}

// reach says whether the endpoint can be connected to.
func (s *scope) reach(ctx context.Context) reconcile.Outcome {
	endpoint, err := s.endpoint(ctx)
	var wrong *ValidationError
	switch {
	case errors.As(err, &wrong):
		s.checker.Forget(s.key())
		return reconcile.Wait(mcpv1alpha1.ReasonConnecting, "Not tried: "+wrong.Message, 0)
	case err != nil:
		return reconcile.Retry(mcpv1alpha1.ReasonConnecting, err)
	}
	verdict := s.checker.Observe(endpoint)
	switch {
	case !verdict.Known && s.stored(mcpv1alpha1.ConditionReachable).ObservedGeneration == s.tool.Generation:
		return reconcile.Keep(0) // of before the operator started
	case !verdict.Known:
		return reconcile.Wait(mcpv1alpha1.ReasonConnecting, "The first attempt to connect is under way", 0)
	case verdict.Reason != mcpv1alpha1.ReasonReachable:
		return reconcile.Unsettled(verdict.Reason, verdict.Message, 0)
	}
	message := verdict.Message
	if endpoint.Trust.Blind && endpoint.Security != reach.Plain {
		message += "; only gateways verify its certificate, since caBundle is in a Secret"
	}
	return reconcile.Done(mcpv1alpha1.ReasonReachable, message)
}

// verify says whether a gateway that holds the credential serves the tool.
func (s *scope) verify(ctx context.Context) reconcile.Outcome {
	agents, err := s.agents(ctx)
	if err != nil {
		return reconcile.Retry(mcpv1alpha1.ReasonUnknown, err)
	}
	s.tool.Status.Agents = int32(len(agents)) //nolint:gosec // G115: there are no two billion agents
	s.noteRemoteTools(agents)
	if len(agents) == 0 {
		return reconcile.Wait(mcpv1alpha1.ReasonNoAgent, "No MCPAgent is granted the tool: nobody has tried it yet", 0)
	}
	problem, heldBack, isAccepted := "", "", s.current(mcpv1alpha1.ConditionAccepted).Status != metav1.ConditionFalse
	for _, agent := range agents {
		if s.isToolless(agent) {
			s.toolless = cmp.Or(s.toolless, fmt.Sprintf("the gateway of MCPAgent '%s' was told of no tools: the server offers none", agent.Name))
		}
		for _, effective := range s.effective(agent) {
			switch effective.Verdict {
			case mcpv1alpha1.VerdictServed:
				return reconcile.Done(mcpv1alpha1.ReasonVerified, s.served())
			case mcpv1alpha1.VerdictUnavailable, mcpv1alpha1.VerdictInvalid, mcpv1alpha1.VerdictMissing:
				problem = cmp.Or(problem, fmt.Sprintf("The gateway of MCPAgent '%s' cannot serve it: %s", agent.Name, effective.Reason))
			case mcpv1alpha1.VerdictConflict:
				problem = cmp.Or(problem, conflictOf(agent.Name, effective))
			case mcpv1alpha1.VerdictPending:
				if isAccepted && reconcile.ConditionOf(agent.Status.Conditions, mcpv1alpha1.ConditionAccepted).Status == metav1.ConditionFalse {
					s.heldUp = cmp.Or(s.heldUp, fmt.Sprintf("MCPAgent '%s' does not serve it: %s", agent.Name, effective.Reason))
				}
			case mcpv1alpha1.VerdictDenied:
				heldBack = cmp.Or(heldBack, fmt.Sprintf("Its own rules hold back every tool that the server offers ('%s': %s)",
					effective.Name, effective.Reason))
			}
		}
	}
	problem = cmp.Or(problem, heldBack)
	// Before it is accepted, what agents tell is an echo of that.
	if problem == "" || !isAccepted {
		return reconcile.Wait(mcpv1alpha1.ReasonPending, cmp.Or(s.heldUp, sentence(s.toolless), "No gateway has told yet"), 0)
	}
	return reconcile.Unsettled(mcpv1alpha1.ReasonCheckFailed, problem, 0)
}

// served is the message of Verified of a tool that a gateway serves.
func (s *scope) served() string {
	const served = "A gateway serves it"
	if s.cutBy == "" {
		return served
	}
	return served + fmt.Sprintf("; status.tools may not have all of its tools, since MCPAgent '%s' is granted more than its own status lists", s.cutBy)
}

// sentence begins a text with a capital letter.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// conflictOf says that no gateway of an agent serves a tool, since another one there has its name.
func conflictOf(agent string, effective mcpv1alpha1.EffectiveTool) string {
	return fmt.Sprintf("It has a name in MCPAgent '%s' that another one has too ('%s'): %s", agent, effective.Name, effective.Reason)
}
