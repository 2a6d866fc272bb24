package mcpagent

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// gather reads what the children depend on, from caches and from ConfigMaps that changed, and compiles the table. It is done while
// reconciling is paused as well. What is wrong with the specification is judged by validate.
func (s *scope) gather(ctx context.Context) error {
	in := route.Input{
		Agent: s.agent, Servers: map[string]*mcpv1alpha1.MCPServer{}, Tools: map[string]*mcpv1alpha1.MCPTool{},
		Schemas: map[string]route.SchemaText{}, Issuer: s.facts.Issuer, Keys: s.facts.Keys,
		ClusterDomain: s.ClusterDomain, AllowPrivate: s.AllowPrivate,
	}
	for _, name := range grantedServers(s.agent) {
		server := &mcpv1alpha1.MCPServer{}
		if found, err := s.find(ctx, name, server); err != nil {
			return err
		} else if found {
			in.Servers[name] = server
		}
	}
	for _, name := range grantedTools(s.agent) {
		tool := &mcpv1alpha1.MCPTool{}
		if found, err := s.find(ctx, name, tool); err != nil {
			return err
		} else if found {
			in.Tools[name] = tool
		}
	}
	if err := s.readContents(ctx, in); err != nil {
		return err
	}
	if err := s.readChildren(ctx, &in); err != nil {
		return err
	}
	if err := s.compile(ctx, in); err != nil {
		return err
	}
	service := &corev1.Service{}
	found, err := s.find(ctx, desired.GatewayName(s.agent.Name), service)
	if found && service.DeletionTimestamp.IsZero() && metav1.IsControlledBy(service, s.agent) && service.Spec.ClusterIP != corev1.ClusterIPNone {
		s.serviceIP = service.Spec.ClusterIP
	}
	return err
}

// readChildren reads what the table depends on of the agent's own children.
func (s *scope) readChildren(ctx context.Context, in *route.Input) error {
	gateway, policy := &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}
	found, err := s.find(ctx, desired.GatewayName(s.agent.Name), gateway)
	if err != nil {
		return err
	}
	if found && metav1.IsControlledBy(gateway, s.agent) {
		in.Mounted = desired.MountsOf(gateway)
	}
	if found, err = s.find(ctx, desired.ServersPolicyName(s.agent.Name), policy); err != nil {
		return err
	}
	if found && metav1.IsControlledBy(policy, s.agent) {
		in.LetIn = desired.LetIn(policy)
	}
	return nil
}

// compile makes the table: of an agent that is refused, the one that was written less what is withdrawn.
func (s *scope) compile(ctx context.Context, in route.Input) error {
	if route.NeedsWritten(in) {
		var err error
		if in.Written, _, err = s.written(ctx); err != nil {
			return err
		}
	}
	if s.route, s.refused = route.Compile(in); s.refused == nil {
		s.keepTable(s.key(), "")
		return nil
	}
	written, text, err := s.written(ctx)
	if err != nil || written == nil {
		return err
	}
	s.keepTable(s.key(), text)
	in.Written = written
	if out, err := route.Withdraw(in); err == nil { // else it is written as no operator writes it, and what to take out is not known
		s.route = out
	}
	return nil
}

// written reads the table that was last written, and its text; nil if it is not there as it was written, and not kept either.
func (s *scope) written(ctx context.Context) (t *table.Table, text string, err error) {
	name, revision := desired.GatewayName(s.agent.Name), s.agent.Status.TableRevision
	if revision == "" {
		return nil, "", nil
	}
	values, err := s.contents.read(ctx, s.agent.Namespace, map[string][]string{name: {desired.TableKey}})
	if err != nil {
		return nil, "", err
	}
	read := func(text string) *table.Table {
		if t := route.Read([]byte(text), revision); t != nil {
			return t
		}
		return route.Read([]byte(text), s.recall(s.key()).revision) // the status could not be written after the table
	}
	text = values[name][desired.TableKey].text
	if t = read(text); t == nil {
		text = s.keptTable(s.key())
		t = read(text)
		s.tampered = t != nil
	}
	return t, text, nil
}

// find reads an object of the agent's namespace, and says whether it exists.
func (s *scope) find(ctx context.Context, name string, obj client.Object) (bool, error) {
	key := client.ObjectKey{Namespace: s.agent.Namespace, Name: name}
	err := s.Client.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", obj, key, err)
	}
	return true, nil
}

// readContents reads the schemas of tools, what the agent's own workload reads, and the certificates of issuers.
func (s *scope) readContents(ctx context.Context, in route.Input) error {
	references := runtimeReferences(s.agent)
	wanted := map[string][]string{}
	for _, ref := range references {
		wanted[ref.Name] = append(wanted[ref.Name], ref.Key)
	}
	bundles := issuerBundles(s.agent)
	for _, b := range bundles {
		if ref := b.ConfigMapRef; ref != nil {
			wanted[ref.Name] = append(wanted[ref.Name], string(ref.Key))
		}
	}
	schemas := map[string]mcpv1alpha1.KeyRef{}
	for name, tool := range in.Tools {
		if ref := schemaReference(tool); ref != nil {
			schemas[name] = *ref
			wanted[ref.Name] = append(wanted[ref.Name], string(ref.Key))
		}
	}
	for name, keys := range wanted {
		slices.Sort(keys)
		wanted[name] = slices.Compact(keys)
	}
	values, err := s.contents.read(ctx, s.agent.Namespace, wanted)
	if err != nil {
		return err
	}
	for tool, ref := range schemas {
		text := route.SchemaText{}
		if value, ok := values[ref.Name][string(ref.Key)]; ok {
			text.Text = value.text
		} else {
			text.Problem = fmt.Sprintf("ConfigMap '%s' (schema.configMapRef) does not exist or has no key '%s'", ref.Name, ref.Key)
		}
		in.Schemas[tool] = text
	}
	s.configHash, s.missing = hash(s.MasterKey, references, values)
	return s.checkBundles(ctx, bundles, values)
}

// schemaReference is where the schema of a tool is kept; nil if it is nowhere else.
func schemaReference(tool *mcpv1alpha1.MCPTool) *mcpv1alpha1.KeyRef {
	if tool.Spec.Schema == nil {
		return nil
	}
	return tool.Spec.Schema.ConfigMapRef
}

// runtimeReferences lists the keys of ConfigMaps that the agent's own workload reads, in the order of the specification.
func runtimeReferences(agent *mcpv1alpha1.MCPAgent) []reference {
	if !desired.HasRuntime(agent) {
		return nil
	}
	var list []reference
	for _, env := range agent.Spec.Runtime.Env {
		if env.ValueFrom == nil || env.ValueFrom.ConfigMapKeyRef == nil {
			continue
		}
		ref := env.ValueFrom.ConfigMapKeyRef
		list = append(list, reference{
			Name: ref.Name, Key: ref.Key, optional: ref.Optional != nil && *ref.Optional, field: fmt.Sprintf("runtime.env %q", env.Name),
		})
	}
	return list
}

// reference is one mention of a key of a ConfigMap.
type reference struct {
	Name, Key string
	optional  bool
	field     string
}

// hash returns a keyed hash over what is referred to; empty if that is nothing. The error says what is missing and required.
func hash(key []byte, references []reference, values map[string]map[string]value) (string, error) {
	used := map[string]string{}
	for _, ref := range references {
		of, exists := values[ref.Name]
		found, has := of[ref.Key]
		switch {
		case has && !found.isBinary:
			used[ref.Name+"/"+ref.Key] = found.text
		case ref.optional:
		case !exists:
			return "", fmt.Errorf("ConfigMap '%s' (%s) not found: create it, and the agent goes on by itself", ref.Name, ref.field)
		default:
			return "", fmt.Errorf("ConfigMap '%s' (%s) has no key '%s': add it, and the agent goes on by itself", ref.Name, ref.field, ref.Key)
		}
	}
	if len(used) == 0 {
		return "", nil
	}
	mac := hmac.New(sha256.New, key)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		for _, text := range []string{name, used[name]} {
			_ = binary.Write(mac, binary.BigEndian, uint64(len(text))) // a hash never fails
			mac.Write([]byte(text))
		}
	}
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

// grantedServers and grantedTools are the names of what an agent uses, each once.
func grantedServers(agent *mcpv1alpha1.MCPAgent) []string {
	var names []string
	if ref := agent.Spec.ServerRef; ref != nil {
		names = append(names, ref.Name)
	}
	for _, server := range agent.Spec.Servers {
		names = append(names, server.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func grantedTools(agent *mcpv1alpha1.MCPAgent) []string {
	var names []string
	for _, tool := range agent.Spec.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
