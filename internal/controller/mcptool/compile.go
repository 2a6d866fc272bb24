package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/bounded"
	"github.com/mcp-operator/mcp-operator/internal/fault"
	"github.com/mcp-operator/mcp-operator/internal/openapi"
	"github.com/mcp-operator/mcp-operator/internal/reach"
)

// compile makes definitions of a document, away from the reconcile workers: one document at a time, which bounds the memory that takes, and
// namespaces in turn. The error is a *ValidationError, unless ctx ended.
func (r *Reconciler) compile(ctx context.Context, of types.NamespacedName, content []byte, opts openapi.Options, name string) (*definitions, error) {
	var found *definitions
	var stored []byte
	var err error
	ended := r.gate.Do(ctx, of.Namespace, func() {
		defer fault.Catch(of.String(), &err)
		var result openapi.Result
		if result, err = openapi.Compile(ctx, content, opts); err == nil {
			found, stored, err = newDefinitions(content, result)
		}
	})
	switch {
	case ended != nil:
		return nil, fmt.Errorf("wait for other documents: %w", ended)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("compile a document: %w", ctx.Err())
	case err != nil:
		return nil, unusable(name, err)
	}
	if err := r.shelf.put(ctx, of, found.sha256, stored); err != nil {
		return nil, fmt.Errorf("keep what was made of a document: %w", err)
	}
	return found, nil
}

// isPassing says whether the same document may be of use the next time.
func isPassing(err error) bool { return errors.Is(err, openapi.ErrTime) || errors.Is(err, fault.Err) }

// useDocument makes definitions of a document that was fetched, by a worker of the fetcher.
func (r *Reconciler) useDocument(ctx context.Context, document reach.Document, content []byte) (*definitions, error) {
	var opts openapi.Options
	if err := json.Unmarshal([]byte(document.Purpose), &opts); err != nil {
		return nil, fmt.Errorf("read the purpose of the document: %w", err)
	}
	found, err := r.compile(ctx, document.Key, content, opts, shown(document.URL))
	if err != nil && (isPassing(err) || ctx.Err() != nil) { // ctx may end when it is done
		err = reach.Passing(err)
	}
	return found, err
}

// errand is what is made of a document in the cluster. It is another one whenever something else comes of it.
type errand struct {
	// Inline is the SHA-256 of the document in the specification; empty if it is elsewhere.
	Inline string `json:"inline,omitempty"`
	// ConfigMap and Key are where it is else, UID and Version those of the ConfigMap.
	ConfigMap string    `json:"configMap,omitempty"`
	Key       string    `json:"key,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
	Version   string    `json:"version,omitempty"`
	// Options are those of the compilation.
	Options openapi.Options `json:"options"`
}

// String is how messages call the document.
func (e errand) String() string {
	if e.Inline != "" {
		return "openapi.document.inline"
	}
	return "ConfigMap '" + e.ConfigMap + "'"
}

// makeDefinitions makes definitions of a document in the cluster, by a worker of the maker.
func (r *Reconciler) makeDefinitions(ctx context.Context, job reach.Job) (made reach.Made[*definitions], ok bool) {
	var e errand
	if err := json.Unmarshal([]byte(job.Purpose), &e); err != nil {
		return reach.Made[*definitions]{Known: true, Problem: "The OpenAPI document cannot be read: what is asked of it is not known: " + err.Error()}, true
	}
	content, err := r.contentOf(ctx, job.Subject, e)
	var found *definitions
	if err == nil {
		found, err = r.compile(ctx, job.Key, content, e.Options, e.String())
	}
	wrong, isWrong := errors.AsType[*ValidationError](err)
	switch {
	case isWrong:
		return reach.Made[*definitions]{Known: true, Problem: wrong.Message}, !isPassing(err)
	case err != nil:
		return made, false
	}
	return reach.Made[*definitions]{Known: true, Value: found}, true
}

// errChanged says that a document is another one than was asked for: then its watch has told, or will, and another errand is on its way.
var errChanged = errors.New("the document changed meanwhile")

// contentOf reads a document in the cluster.
func (r *Reconciler) contentOf(ctx context.Context, of reach.Subject, e errand) ([]byte, error) {
	if e.Inline != "" {
		tool := &mcpv1alpha1.MCPTool{}
		if err := r.Get(ctx, of.Key, tool); err != nil {
			return nil, fmt.Errorf("read MCPTool %s: %w", of.Key, err)
		}
		source := tool.Spec.OpenAPI
		if tool.UID != of.UID || source == nil || source.Document.Inline == nil || digestOf(source.Document.Inline.Raw) != e.Inline {
			return nil, errChanged
		}
		return source.Document.Inline.Raw, nil
	}
	configMap := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: of.Key.Namespace, Name: e.ConfigMap}
	if err := r.opts.APIReader.Get(ctx, key, configMap); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	if configMap.UID != e.UID || configMap.ResourceVersion != e.Version {
		return nil, errChanged
	}
	return keyOfConfigMap(configMap, reference{"ConfigMap", e.ConfigMap, "openapi.document.configMapRef"}, e.Key, maxDocument)
}

// errandOf is what is to be made of the document in the cluster that a tool names.
func (s *scope) errandOf(ctx context.Context) (errand, error) {
	e := errand{Options: s.compileOptions()}
	source := s.tool.Spec.OpenAPI.Document
	switch ref := source.ConfigMapRef; {
	case ref != nil:
		meta, err := s.metadata(ctx, reference{"ConfigMap", ref.Name, "openapi.document.configMapRef"})
		if err != nil {
			return e, err
		}
		e.ConfigMap, e.Key, e.UID, e.Version = ref.Name, string(ref.Key), meta.UID, meta.ResourceVersion
	case source.Inline != nil:
		e.Inline = digestOf(source.Inline.Raw)
	default:
		return e, invalid("openapi.document must have one of url, inline and configMapRef")
	}
	return e, nil
}

// maxShelf bounds what waits to be written, in bytes.
const maxShelf = 32 << 20

// shelf holds the definitions that wait to be written, which are larger than the objects that they are made for. If there are too many, the
// oldest give way: they are made again.
type shelf struct {
	mu      sync.Mutex
	parcels bounded.Map[types.NamespacedName, parcel]
}

// parcel is what is to be written for a tool.
type parcel struct {
	sha256 string // of the content, uncompressed
	stored []byte
}

// put keeps what is to be written, unless ctx ended. An attempt's ctx ends before its tool is forgotten, and before another attempt begins: so
// one that comes too late leaves nothing behind, and takes nothing of another one away.
func (s *shelf) put(ctx context.Context, of types.NamespacedName, sha256 string, stored []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	s.parcels.Put(of, parcel{sha256, stored}, len(stored), maxShelf)
	return nil
}

// get returns what is to be written of this digest; nil if it is not there.
func (s *shelf) get(of types.NamespacedName, sha256 string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, _ := s.parcels.Get(of); p.sha256 == sha256 {
		return p.stored
	}
	return nil
}

// drop drops what is written: of this digest only, since a newer one may be there already, before anybody was told of it.
func (s *shelf) drop(of types.NamespacedName, sha256 string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, _ := s.parcels.Get(of); p.sha256 == sha256 {
		s.parcels.Drop(of)
	}
}

// forget drops whatever there is for a tool, which asks for nothing any more.
func (s *shelf) forget(of types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parcels.Drop(of)
}
