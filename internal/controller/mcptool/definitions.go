package mcptool

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/openapi"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/route"
)

const (
	// LabelTool names the MCPTool that a ConfigMap holds definitions of.
	LabelTool = "mcp.operator/tool"

	// keyPlain and keyPacked are the keys of definitions as they are, and compressed.
	keyPlain, keyPacked = "tools.json", "tools.json.gz"

	// packFrom is the size from which on definitions are compressed, maxStored the most that one ConfigMap holds of them.
	packFrom, maxStored = 64 << 10, 900 << 10

	// shownDigest is how much of the digest is in the name of a ConfigMap.
	shownDigest = 10

	// retention is how long definitions stay that neither a tool nor an agent names any more: gateways may not have heard yet.
	retention = 10 * time.Minute

	// removalRetry is when a removal that failed is tried again while there is nothing to tell it by.
	removalRetry = time.Minute

	// maxNotes is how many operations are named that are not tools.
	maxNotes = 3
)

// definitions are what became of a document.
type definitions struct {
	key     string // of what is stored
	sha256  string // of the content, uncompressed
	baseURL string
	digest  string // of the document
	tools   []mcpv1alpha1.ToolStatus
	note    string // what is to be told of it
}

// newDefinitions encodes the tools of a document, and returns what is to be stored as well. The error is a sentence about it.
func newDefinitions(document []byte, result openapi.Result) (d *definitions, stored []byte, err error) {
	content, err := openapi.Encode(result.Tools)
	if err != nil {
		return nil, nil, err
	}
	d = &definitions{key: keyPlain, sha256: digestOf(content), baseURL: result.BaseURL, digest: digestOf(document), note: noteOf(result)}
	stored = content
	if len(content) > packFrom {
		if stored, err = pack(content); err != nil {
			return nil, nil, err
		}
		d.key = keyPacked
	}
	if n := len(stored); n > maxStored {
		return nil, nil, fmt.Errorf("its tools have %d bytes, compressed, and the limit is %d: choose fewer by include and exclude", n, maxStored)
	}
	for i, name := range result.Names {
		digest, err := route.Digest(result.Tools[i].Definition)
		if err != nil {
			return nil, nil, fmt.Errorf("the tool %s cannot be digested: %w", name, err)
		}
		d.tools = append(d.tools, mcpv1alpha1.ToolStatus{Name: name, Digest: digest})
	}
	slices.SortFunc(d.tools, func(a, b mcpv1alpha1.ToolStatus) int { return strings.Compare(a.Name, b.Name) })
	return d, stored, nil
}

func pack(content []byte) ([]byte, error) {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := writer.Write(content); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// noteOf tells what of a document did not become a tool.
func noteOf(result openapi.Result) string {
	n := len(result.Skipped)
	if n == 0 {
		return ""
	}
	shown := route.Plain(strings.Join(result.Skipped[:min(n, maxNotes)], "; "))
	if n > maxNotes {
		shown += fmt.Sprintf("; and %d more", n-maxNotes)
	}
	return "; of its OpenAPI document: " + shown
}

// nameFor is the name of the ConfigMap that holds the definitions for a tool.
func (d *definitions) nameFor(tool *mcpv1alpha1.MCPTool) string {
	return tool.Name + "-" + d.sha256[:shownDigest]
}

// configMap is where the definitions are kept. It never changes: other content has another name.
func (d *definitions) configMap(tool *mcpv1alpha1.MCPTool, stored []byte) *corev1.ConfigMap {
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.nameFor(tool), Namespace: tool.Namespace,
			Labels: map[string]string{LabelTool: tool.Name, desired.LabelManagedBy: desired.ManagedBy},
		},
		Immutable: new(true),
	}
	if d.key == keyPacked {
		configMap.BinaryData = map[string][]byte{d.key: stored}
	} else {
		configMap.Data = map[string]string{d.key: string(stored)}
	}
	return configMap
}

// applyDefinitions keeps the definitions in a ConfigMap, and tells of it.
func (s *scope) applyDefinitions(ctx context.Context) reconcile.Outcome {
	if s.definitions == nil {
		return reconcile.Keep(0) // another type has none; and what is stored holds while the document is not there
	}
	switch there, err := s.store(ctx); {
	case err != nil:
		return failed(err)
	case !there:
		return reconcile.Keep(0) // they are being made again, and that wakes
	}
	s.tool.Status.Definitions = &mcpv1alpha1.ToolDefinitions{
		ObjectName: mcpv1alpha1.ObjectName{Name: s.definitions.nameFor(s.tool)}, Key: mcpv1alpha1.DataKey(s.definitions.key),
		SHA256: s.definitions.sha256, Endpoint: s.definitions.baseURL,
	}
	s.tool.Status.DocumentDigest = s.definitions.digest
	return applied()
}

// allApplied is the message of Applied when there is nothing to add.
const allApplied = "The definitions of the tools are up to date"

func applied() reconcile.Outcome {
	return reconcile.Done(mcpv1alpha1.ReasonApplied, allApplied)
}

// store writes the ConfigMap, if it is not there; false says that what is to be written is not there either. A ConfigMap that is ours is
// left alone: it cannot be changed, gateways verify its digest, and what another version of the operator compressed may differ in its bytes.
func (s *scope) store(ctx context.Context) (there bool, err error) {
	meta, key := partialMetadata("ConfigMap"), client.ObjectKey{Namespace: s.tool.Namespace, Name: s.definitions.nameFor(s.tool)}
	err = s.Get(ctx, key, meta)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	owner := metav1.GetControllerOf(meta)
	if err == nil && owner != nil && owner.UID == s.tool.UID && meta.DeletionTimestamp.IsZero() {
		s.shelf.drop(s.key(), s.definitions.sha256)
		return true, nil
	}
	stored := s.content()
	if stored == nil {
		return false, nil
	}
	configMap := s.definitions.configMap(s.tool, stored)
	_, err = s.applier.Apply(ctx, s.tool, configMap)
	s.applier.Forget(configMap) // the metadata above tells it the next time, and a tool that is gone names none of these
	if err == nil {
		s.shelf.drop(s.key(), s.definitions.sha256)
	}
	return true, err
}

// content returns what is to be stored. It is not kept once it was: if somebody deleted the ConfigMap, it is made again.
func (s *scope) content() []byte {
	if stored := s.shelf.get(s.key(), s.definitions.sha256); stored != nil {
		return stored
	}
	s.fetcher.Forget(s.key())
	s.maker.Forget(s.key())
	s.again()
	return s.shelf.get(s.key(), s.definitions.sha256)
}

// failed turns the error of writing definitions into an outcome.
func failed(err error) reconcile.Outcome {
	return apply.Outcome("Failed to write the definitions of the tools", err)
}

// removeUnused deletes definitions that are not needed any more. That one cannot be deleted takes nothing from a tool that is served.
func (s *scope) removeUnused(ctx context.Context) reconcile.Outcome {
	next, err := s.removeUnneeded(ctx)
	switch {
	case s.definitions == nil && s.isOpenAPI() && err != nil:
		return reconcile.Keep(removalRetry) // what the condition says is not of now
	case err != nil:
		out := reconcile.Leftover(mcpv1alpha1.ReasonApplied, allApplied, fmt.Errorf("what is not needed any more could not be removed: %w", err))
		out.After = next
		return out
	case s.definitions == nil:
		return reconcile.Keep(next)
	}
	out := applied()
	out.After = next
	return out
}

// removeUnneeded deletes definitions that were not needed for the time of retention, which this process counts: before, the operator may
// have needed them still. It returns when the next ones may go, 0 if there are none, and the first error.
func (s *scope) removeUnneeded(ctx context.Context) (next time.Duration, failed error) {
	unneeded, err := s.unneeded(ctx)
	if err != nil {
		return 0, err
	}
	if len(unneeded) == 0 {
		s.memory.retire(s.key(), nil)
		return 0, nil
	}
	named, err := s.named(ctx)
	if err != nil {
		return 0, err
	}
	held := len(unneeded)
	unneeded = slices.DeleteFunc(unneeded, func(meta metav1.PartialObjectMetadata) bool { return named[meta.Name] })
	if held > len(unneeded) {
		next = retention // nothing tells when an agent has another table
	}
	uids := make([]types.UID, len(unneeded))
	for i, meta := range unneeded {
		uids[i] = meta.UID
	}
	since := s.memory.retire(s.key(), uids)
	for _, meta := range unneeded {
		left := time.Until(since[meta.UID].Add(retention))
		if left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		unused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace}}
		if err := s.applier.Remove(ctx, s.tool, unused); err != nil && failed == nil {
			failed = err
		}
	}
	return next, failed
}

// named are the ConfigMaps that gateways of the namespace may read. Their Roles name what their tables do, and are written after these: so
// what an agent serves that is paused or refused, or whose table cannot be written, is among them. Of one tool a Role names one ConfigMap.
func (s *scope) named(ctx context.Context) (map[string]bool, error) {
	roles := &rbacv1.RoleList{}
	err := s.List(ctx, roles, client.InNamespace(s.tool.Namespace), client.MatchingLabels{
		desired.LabelManagedBy: desired.ManagedBy, desired.LabelComponent: desired.ComponentGateway,
	})
	if err != nil {
		return nil, fmt.Errorf("list the Roles of gateways in namespace %q: %w", s.tool.Namespace, err)
	}
	names := map[string]bool{}
	for i := range roles.Items {
		role := &roles.Items[i]
		if owner := metav1.GetControllerOf(role); owner == nil || owner.Kind != "MCPAgent" || !role.DeletionTimestamp.IsZero() {
			continue
		}
		for _, rule := range role.Rules {
			for _, name := range rule.ResourceNames {
				names[name] = true
			}
		}
	}
	return names, nil
}

// unneeded lists the ConfigMaps of the tool that hold other definitions than those in use.
func (s *scope) unneeded(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	needed := ""
	if inUse := s.tool.Status.Definitions; inUse != nil && s.isOpenAPI() {
		needed = inUse.Name
	}
	owned := &metav1.PartialObjectMetadataList{}
	owned.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := s.List(ctx, owned, client.InNamespace(s.tool.Namespace), client.MatchingFields{indexOwner: string(s.tool.UID)})
	if err != nil {
		return nil, fmt.Errorf("list the definitions of MCPTool %s: %w", s.key(), err)
	}
	return slices.DeleteFunc(owned.Items, func(meta metav1.PartialObjectMetadata) bool {
		return meta.Name == needed || !meta.DeletionTimestamp.IsZero()
	}), nil
}
