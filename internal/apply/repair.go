package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// repairPorts puts back lists of ports whose items somebody changed, and says whether there was something to put back.
//
// Ports are merged by their number. An item whose number was changed therefore counts as a foreign one beside ours, of the
// same name, and the API server refuses the result: server-side apply alone can never mend it.
func (a *Applier) repairPorts(ctx context.Context, content *unstructured.Unstructured, live client.Object) (bool, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("read fields of %s %q: %w", content.GetKind(), content.GetName(), err)
	}
	patch := portsPatch(content.Object, fields)
	if patch == nil {
		return false, nil
	}
	patch["metadata"] = map[string]any{"uid": live.GetUID()}
	raw, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("encode ports of %s %q: %w", content.GetKind(), content.GetName(), err)
	}
	if err := a.client.Patch(ctx, live, client.RawPatch(types.StrategicMergePatchType, raw), client.FieldOwner(a.manager)); err != nil {
		return false, fmt.Errorf("mend ports of %s %q: %w", content.GetKind(), content.GetName(), err)
	}
	return true, nil
}

// portsPatch returns a strategic merge patch that replaces every list of ports that differs; nil if none does.
func portsPatch(want, live map[string]any) map[string]any {
	if ports, ok, _ := unstructured.NestedSlice(want, "spec", "ports"); ok {
		was, _, _ := unstructured.NestedSlice(live, "spec", "ports")
		if sameNumbers(ports, was, "port") {
			return nil
		}
		return map[string]any{"spec": map[string]any{"ports": replaced(ports)}}
	}
	containers, _, _ := unstructured.NestedSlice(want, "spec", "template", "spec", "containers")
	was, _, _ := unstructured.NestedSlice(live, "spec", "template", "spec", "containers")
	var patches []any
	for _, item := range containers {
		container, _ := item.(map[string]any)
		ports, _, _ := unstructured.NestedSlice(container, "ports")
		there := named(was, container["name"])
		if there == nil {
			continue
		}
		old, _, _ := unstructured.NestedSlice(there, "ports")
		if !sameNumbers(ports, old, "containerPort") {
			patches = append(patches, map[string]any{"name": container["name"], "ports": replaced(ports)})
		}
	}
	if patches == nil {
		return nil
	}
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": patches}}}}
}

func replaced(ports []any) []any {
	return append([]any{map[string]any{"$patch": "replace"}}, ports...)
}

func named(list []any, name any) map[string]any {
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["name"] == name {
			return m
		}
	}
	return nil
}

func sameNumbers(a, b []any, key string) bool {
	numbers := func(list []any) map[any]bool {
		set := map[any]bool{}
		for _, item := range list {
			if m, ok := item.(map[string]any); ok {
				set[m[key]] = true
			}
		}
		return set
	}
	return reflect.DeepEqual(numbers(a), numbers(b))
}
