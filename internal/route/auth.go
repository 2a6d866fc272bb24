package route

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// frameOf makes the table without its backends: what is wrong here is the agent's own.
func frameOf(in Input, files files) (*table.Table, error) {
	agent := in.Agent
	if agent.Spec.ServerRef != nil && len(agent.Spec.Servers) > 0 {
		return nil, invalid("serverRef and servers must not both be given: name the MCPServer in servers too")
	}
	auth, err := authOf(in, files)
	if err != nil {
		return nil, err
	}
	t := &table.Table{Version: table.Version, Endpoint: endpointOf(agent, in.ClusterDomain), Auth: auth, Backends: []table.Backend{}}
	if _, err := table.Parse(encode(t)); err != nil {
		return nil, invalid("%s", words(err))
	}
	return t, nil
}

func endpointOf(agent *mcpv1alpha1.MCPAgent, clusterDomain string) table.Endpoint {
	e := table.Endpoint{Path: table.DefaultPath, AllowedHosts: hostsOf(agent, clusterDomain)}
	if all := grantsOf(agent); len(all) != 1 || all[0].isTool { // a lone server is shown by its own name
		e.Name = agent.Name
	}
	if gateway := agent.Spec.Gateway; gateway != nil {
		e.PublicURL, e.Instructions, e.AllowedOrigins = gateway.PublicURL, gateway.Instructions, distinct(gateway.AllowedOrigins)
		e.LenientHeaders = gateway.LenientHeaders
	}
	return e
}

// hostsOf are the names that clients may ask for: those of the agent's Service, that of its public URL, those that are asked for, and a
// host's own, which a port-forward has. A page whose name somebody lets stand for the gateway's address is served by none of them.
func hostsOf(agent *mcpv1alpha1.MCPAgent, clusterDomain string) []string {
	hosts := append(serviceHosts(agent, clusterDomain), "localhost")
	if gateway := agent.Spec.Gateway; gateway != nil {
		if public, err := url.Parse(gateway.PublicURL); err == nil && public.Hostname() != "" {
			hosts = append(hosts, hostName(public))
		}
		hosts = append(hosts, gateway.AllowedHosts...)
	}
	return distinct(hosts)
}

// serviceHosts are all names of the gateway's Service.
func serviceHosts(agent *mcpv1alpha1.MCPAgent, clusterDomain string) []string {
	short := desired.GatewayName(agent.Name)
	inNamespace := short + "." + agent.Namespace
	return []string{short, inNamespace, inNamespace + ".svc", desired.GatewayDNSName(agent, clusterDomain)}
}

func authOf(in Input, files files) (table.Auth, error) {
	agent := in.Agent
	asked := &agent.Spec.Auth
	switch asked.Type {
	case mcpv1alpha1.AgentAuthNone:
		if len(asked.Audiences)+len(asked.ServiceAccounts)+len(asked.OIDC) > 0 {
			return table.Auth{}, invalid("auth: audiences, serviceAccounts and oidc must not be given with type None, which lets in everybody")
		}
		return table.Auth{Type: table.AuthNone}, nil
	case mcpv1alpha1.AgentAuthTokens:
	default:
		return table.Auth{}, invalid("auth.type must be Tokens, or None to let everybody call")
	}
	if err := checkAudiences(in); err != nil {
		return table.Auth{}, err
	}
	auth := table.Auth{
		Type:      table.AuthTokens,
		Audiences: distinct(append([]string{desired.GatewayEndpoint(agent, in.ClusterDomain)}, asked.Audiences...)),
	}
	if subjects := subjectsOf(agent); len(subjects) > 0 {
		if in.keysProblem != nil {
			return table.Auth{}, in.keysProblem
		}
		auth.ServiceAccounts = &table.ServiceAccounts{Issuer: in.Issuer, Keys: in.Keys, Subjects: subjects}
	}
	for i := range asked.OIDC {
		o, err := issuerOf(&asked.OIDC[i], in.AllowPrivate, files)
		if err != nil {
			return table.Auth{}, invalid("auth.oidc[%d].caBundle: %s", i, err)
		}
		auth.OIDC = append(auth.OIDC, o)
	}
	if auth.ServiceAccounts == nil && len(auth.OIDC) == 0 {
		return table.Auth{}, invalid("auth: with type Tokens nobody could call: give serviceAccounts, oidc or runtime.image")
	}
	return auth, nil
}

// checkAudiences refuses the audiences of the Kubernetes API: each pod's default token has them, and so anything that a pod of an account
// talks to with that could call with it. An API server that was given others (--api-audiences) does not tell them.
func checkAudiences(in Input) error {
	check := func(field, audience string) error {
		if !in.isOfAPIServer(audience) {
			return nil
		}
		return invalid("%s: '%s' is an audience of the Kubernetes API, which the tokens that pods have by default are made out to: "+
			"remove it, and ask for tokens for the endpoint's own address", field, line(audience, maxQuoted))
	}
	if gateway := in.Agent.Spec.Gateway; gateway != nil && gateway.PublicURL != "" { // an audience too
		if err := check("gateway.publicURL", gateway.PublicURL); err != nil {
			return err
		}
	}
	auth := &in.Agent.Spec.Auth
	for i, audience := range auth.Audiences {
		if err := check(fmt.Sprintf("auth.audiences[%d]", i), audience); err != nil {
			return err
		}
	}
	for i := range auth.OIDC {
		for j, audience := range auth.OIDC[i].Audiences {
			if err := check(fmt.Sprintf("auth.oidc[%d].audiences[%d]", i, j), audience); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *Input) isOfAPIServer(audience string) bool {
	const apiServer = "https://kubernetes.default.svc"
	return audience == apiServer || strings.HasPrefix(audience, apiServer+".") || in.Issuer != "" && audience == in.Issuer
}

// subjectsOf are the accounts that are let in: those asked for, and that of the agent's own workload.
func subjectsOf(agent *mcpv1alpha1.MCPAgent) []string {
	var names []string
	if desired.HasRuntime(agent) {
		names = append(names, desired.RuntimeName(agent.Name))
	}
	for _, account := range agent.Spec.Auth.ServiceAccounts {
		names = append(names, account.Name)
	}
	var out []string
	for _, name := range distinct(names) {
		out = append(out, "system:serviceaccount:"+agent.Namespace+":"+name)
	}
	return out
}

// settleKeys brings the cluster's keys into one form. While they are not known, those stand that the agent's callers were verified by
// before: an operator that starts while the API server does not tell them would else change no table.
func (in *Input) settleKeys() {
	keys, err := compactKeys(*in)
	switch {
	case err == nil:
		in.Keys = keys
	case in.Written != nil && in.Written.Auth.ServiceAccounts != nil:
		in.Issuer, in.Keys = in.Written.Auth.ServiceAccounts.Issuer, in.Written.Auth.ServiceAccounts.Keys
	default:
		in.keysProblem = err
	}
}

// compactKeys are the cluster's keys in one form, once a table would take them. What is wrong with them is no fault of the agent.
func compactKeys(in Input) (json.RawMessage, error) {
	if in.Issuer == "" || len(in.Keys) == 0 {
		return nil, ErrKeysUnknown
	}
	var keys bytes.Buffer
	if err := json.Compact(&keys, in.Keys); err != nil {
		return nil, fmt.Errorf("%w: the API server's key set is not JSON", ErrKeysUnknown)
	}
	trial := table.Table{Version: table.Version, Backends: []table.Backend{}, Auth: table.Auth{
		Type: table.AuthTokens, Audiences: []string{"any"},
		ServiceAccounts: &table.ServiceAccounts{Issuer: in.Issuer, Keys: keys.Bytes(), Subjects: []string{}},
	}}
	if _, err := table.Parse(encode(&trial)); err != nil {
		return nil, fmt.Errorf("%w: what the API server publishes cannot be used: %s", ErrKeysUnknown, words(err))
	}
	return keys.Bytes(), nil
}

func issuerOf(asked *mcpv1alpha1.OIDCIssuer, allowPrivate bool, files files) (table.OIDC, error) {
	o := table.OIDC{
		Issuer: asked.Issuer, Audiences: distinct(asked.Audiences), Subjects: distinct(asked.Subjects), AllowPrivate: allowPrivate,
	}
	if len(asked.Claims) > 0 {
		o.Claims = make(map[string]string, len(asked.Claims))
		for claim, value := range asked.Claims {
			o.Claims[claim] = string(value)
		}
	}
	var err error
	o.CAFile, err = files.bundle(asked.CABundle)
	return o, err
}
