package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/openapi"
	"github.com/mcp-operator/mcp-operator/internal/reach"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/route"
)

// maxDocument is the size of the largest document that is fetched.
const maxDocument = openapi.MaxDocumentBytes

// judgeDocument asks what became of the OpenAPI document.
func (s *scope) judgeDocument(ctx context.Context) (reconcile.Outcome, error) {
	ask := s.made
	if s.tool.Spec.OpenAPI.Document.URL != "" {
		ask = s.fetched
	}
	found, out, err := ask(ctx)
	if stored := s.before.Status.Definitions; err == nil && found == nil && out.IsDone() && stored != nil {
		return out, s.checkServer(ctx, stored.Endpoint) // what the Secret allows may have changed
	}
	if err == nil && found != nil {
		err = s.checkServer(ctx, found.baseURL)
	}
	if err != nil || found == nil {
		return out, err
	}
	s.definitions = found
	out.Message += found.note
	return out, nil
}

// made asks for the definitions that a document in the cluster becomes; as fetched.
func (s *scope) made(ctx context.Context) (*definitions, reconcile.Outcome, error) {
	out := reconcile.Done(mcpv1alpha1.ReasonValid, validated)
	what, err := s.errandOf(ctx)
	if err != nil {
		return nil, out, err
	}
	purpose, err := json.Marshal(what)
	if err != nil {
		return nil, out, fmt.Errorf("encode what MCPTool %s asks for: %w", s.key(), err)
	}
	job := reach.Job{Subject: s.subject(), Purpose: string(purpose)}
	s.again = func() { s.maker.Observe(job) }
	known := s.maker.Observe(job)
	switch {
	case known.Known && known.Problem == "":
		return known.Value, out, nil
	case known.Known:
		return nil, out, &ValidationError{Message: known.Problem}
	case s.isServed():
		return nil, reconcile.Keep(0), nil // of before the operator started, or the document changed
	}
	return nil, reconcile.Wait(mcpv1alpha1.ReasonUnknown, "The OpenAPI document is being read", 0), nil
}

// isServed says whether the tool, as it is now, has definitions that are in use.
func (s *scope) isServed() bool {
	return s.before.Status.Definitions != nil && s.holds(mcpv1alpha1.ConditionAccepted) && s.holds(mcpv1alpha1.ConditionApplied)
}

// revision is another one whenever the specification is.
func (s *scope) revision() string { return fmt.Sprintf("%s/%d", s.tool.UID, s.tool.Generation) }

func (s *scope) compileOptions() openapi.Options {
	spec := &s.tool.Spec
	return openapi.Options{
		Endpoint: spec.Endpoint, DocumentURL: spec.OpenAPI.Document.URL, Prefix: string(spec.OpenAPI.Prefix),
		Include: spec.OpenAPI.Include, Exclude: spec.OpenAPI.Exclude, MaxResponseBytes: int(spec.MaxResponseBytes),
	}
}

func unusable(name string, err error) error {
	return &ValidationError{Message: cannotUse(name) + route.Plain(err.Error()), cause: err}
}

func cannotUse(name string) string { return "The OpenAPI document (" + name + ") cannot be used: " }

// shown is a URL as it is told of: what is in its query may be a secret.
func shown(address string) string {
	if before, _, found := strings.Cut(address, "?"); found {
		return before + "?…"
	}
	return address
}

// fetched asks for the document of a URL. It returns nil definitions while there are none: then the outcome says what to tell.
func (s *scope) fetched(ctx context.Context) (*definitions, reconcile.Outcome, error) {
	out := reconcile.Done(mcpv1alpha1.ReasonValid, validated)
	trust, err := s.documentTrust(ctx)
	if err != nil {
		return nil, out, err
	}
	purpose, err := json.Marshal(s.compileOptions())
	if err != nil {
		return nil, out, fmt.Errorf("encode the options of MCPTool %s: %w", s.key(), err)
	}
	address := s.tool.Spec.OpenAPI.Document.URL
	name := shown(address)
	document := reach.Document{Subject: s.subject(), URL: address, Trust: trust, Purpose: string(purpose)}
	s.again = func() { s.fetcher.Observe(document) }
	known := s.fetcher.Observe(document)
	unfit, isUnfit := strings.CutPrefix(known.Problem, cannotUse(name)) // it was fetched
	stays := "; the last version of its OpenAPI document stays in use, since the attempt to fetch it again failed: " + known.Problem
	if isUnfit {
		stays = "; the last version of its OpenAPI document stays in use, since the newer one cannot be used: " + unfit
	}
	switch {
	case known.Found && known.Problem == "":
		return known.Value, out, nil
	case known.Found:
		out.Message += stays
		return known.Value, out, nil
	case !known.Known && s.isServed():
		return nil, reconcile.Keep(0), nil // of before the operator started
	case !known.Known:
		return nil, reconcile.Wait(mcpv1alpha1.ReasonUnknown, "The OpenAPI document is being fetched", 0), nil
	case s.isServed():
		out.Message += stays
		return nil, out, nil
	case isUnfit:
		return nil, out, &ValidationError{Message: known.Problem}
	}
	return nil, out, invalid("The OpenAPI document (%s) cannot be fetched: %s", name, known.Problem)
}

// checkServer says whether calls, and the credential, may be sent to where the operations are.
func (s *scope) checkServer(ctx context.Context, base string) error {
	if err := s.checkBase(base); err != nil {
		return err
	}
	return s.checkCredential(ctx, base)
}

// checkBase says whether calls may be sent to where the document says, as the schema does for an endpoint.
func (s *scope) checkBase(base string) error {
	if s.tool.Spec.Endpoint != "" {
		return nil
	}
	tool := s.tool.DeepCopy()
	tool.Spec.Endpoint = base
	if _, err := route.ToolDefinition(tool, route.SchemaText{}); err != nil {
		return invalid("The OpenAPI document says that its server is %s: %s", base, err)
	}
	u, err := url.Parse(base)
	if err != nil || s.tool.Spec.Auth == nil {
		return nil //nolint:nilerr // it was looked at above
	}
	if u.Scheme != "https" && !isClusterName(u.Hostname()) {
		return invalid("auth: the OpenAPI document says that its server is %s, and a credential is sent by https alone: give the address in endpoint", base)
	}
	if from, err := url.Parse(s.tool.Spec.OpenAPI.Document.URL); err == nil && from.Host != "" && !strings.EqualFold(from.Host, u.Host) {
		return invalid("auth: the OpenAPI document is at %s and says that its server is at %s: say in endpoint where the credential may be sent",
			from.Host, u.Host)
	}
	return nil
}

// isClusterName says whether a name is one of a Service of the cluster, as the rule about auth in the schema does: NAME.NAMESPACE.svc, or
// in the cluster's usual domain. A name that only holds ".svc." may be anybody's.
func isClusterName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.HasSuffix(host, ".svc") && strings.Count(host, ".") >= 2 || strings.HasSuffix(host, ".cluster.local")
}

// digestOf is the SHA-256 of some content in hexadecimal.
func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
