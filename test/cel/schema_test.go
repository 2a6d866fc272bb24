package cel

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// foreign are the parts of the schemas that are types of Kubernetes: their fields have the limits that Kubernetes gives
// them, and its API server checks them when the children are written.
var foreign = map[string][]string{
	ownKind: {
		"spec.config.inline",
		"spec.env[]",
		"spec.envFrom[]",
		"spec.network.egressTo[]",
		"spec.network.ingressFrom[]",
		"spec.resources.limits{}",
		"spec.resources.requests{}",
		"spec.scheduling.affinity",
		"spec.scheduling.tolerations[]",
		"spec.scheduling.topologySpreadConstraints[]",
		"status.conditions[]",
	},
	toolKind: {
		"status.conditions[]",
	},
	agentKind: {
		"spec.gateway.resources.limits{}",
		"spec.gateway.resources.requests{}",
		"spec.network.egressTo[]",
		"spec.network.ingressFrom[]",
		"spec.runtime.env[]",
		"spec.runtime.resources.limits{}",
		"spec.runtime.resources.requests{}",
		"status.conditions[]",
	},
	sigKind: {
		"spec.config.env[]",
		"spec.config.envFrom[]",
		"spec.config.storage[].source.configMap",
		"spec.config.storage[].source.emptyDir",
		"spec.config.storage[].source.secret",
		"spec.network.egressTo[]",
		"spec.network.ingressFrom[]",
		"spec.runtime.health.livenessProbe",
		"spec.runtime.health.readinessProbe",
		"spec.runtime.resources",
		"spec.runtime.security.podSecurityContext",
		"spec.runtime.security.securityContext",
		"status.conditions[]",
	},
}

// schemaNode is one node of a schema.
type schemaNode = apiextensionsv1.JSONSchemaProps

// constraint is one thing that a schema demands.
type constraint struct {
	path string           // for example spec.secretRefs[].name; [] is any item of a list, {} any value of a map
	what string           // for example "maxLength 253", or the message of a CEL rule
	kind metav1.CauseType // the type of the cause that a refusal gives
	says string           // what the cause's message contains
}

// String tells a constraint to the one who forgot to test it.
func (c constraint) String() string { return c.path + ": " + c.what }

// refuses says whether a cause of a refusal is this constraint.
func (c constraint) refuses(cause metav1.StatusCause) bool {
	return cause.Type == c.kind && strings.Contains(cause.Message, c.says) && fieldPattern(c.path).MatchString(strings.TrimPrefix(cause.Field, "<nil>"))
}

func fieldPattern(path string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(path)
	quoted = strings.ReplaceAll(quoted, `\[\]`, `\[[^]]*\]`)
	quoted = strings.ReplaceAll(quoted, `\{\}`, `(\.[^.]+|\[[^]]*\])`)
	return regexp.MustCompile("^" + quoted + "$")
}

// readCRDs reads every CustomResourceDefinition of the project, by its group and kind.
func readCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../config/crds*/*_*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs (%v)", err)
	}
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		crds[crd.Spec.Group+"/"+crd.Spec.Names.Kind] = crd
	}
	return crds
}

// schemaOf returns the schema of a kind of ours.
func schemaOf(t *testing.T, kind string) *schemaNode {
	t.Helper()
	crd := readCRDs(t)[kind]
	if crd == nil || len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s has no CRD with one version", kind)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits every node of a schema, parents first.
func walk(path string, node *schemaNode, visit func(path string, node *schemaNode)) {
	visit(path, node)
	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		child := node.Properties[name]
		walk(strings.TrimPrefix(path+"."+name, "."), &child, visit)
	}
	if node.Items != nil && node.Items.Schema != nil {
		walk(path+"[]", node.Items.Schema, visit)
	}
	if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
		walk(path+"{}", node.AdditionalProperties.Schema, visit)
	}
}

// isOurs says whether a node of a kind is of a type of this project.
func isOurs(kind, path string) bool {
	if path == "apiVersion" || path == "kind" || path == "metadata" {
		return false
	}
	return !slices.ContainsFunc(foreign[kind], func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

// constraintsOf lists what a schema demands: every CEL rule, and every limit of our own types.
func constraintsOf(kind string, schema *schemaNode) []constraint {
	var list []constraint
	walk("", schema, func(path string, node *schemaNode) {
		for _, rule := range node.XValidations {
			list = append(list, constraint{strings.TrimPrefix(path, "."), rule.Message, metav1.CauseTypeFieldValueInvalid, ": " + rule.Message})
		}
		if isOurs(kind, path) {
			list = append(list, limitsOf(path, node)...)
		}
	})
	return list
}

func limitsOf(path string, node *schemaNode) []constraint {
	var list []constraint
	add := func(what string, kind metav1.CauseType, says string) {
		list = append(list, constraint{path, what, kind, says})
	}
	for _, name := range node.Required {
		list = append(list, constraint{strings.TrimPrefix(path+"."+name, "."), "required", metav1.CauseTypeFieldValueRequired, "Required value"})
	}
	if node.Minimum != nil {
		add(fmt.Sprintf("minimum %.0f", *node.Minimum), metav1.CauseTypeFieldValueInvalid,
			fmt.Sprintf("should be greater than or equal to %.0f", *node.Minimum))
	}
	if node.Maximum != nil {
		add(fmt.Sprintf("maximum %.0f", *node.Maximum), metav1.CauseTypeFieldValueInvalid, fmt.Sprintf("should be less than or equal to %.0f", *node.Maximum))
	}
	if node.MinLength != nil {
		add(fmt.Sprintf("minLength %d", *node.MinLength), metav1.CauseTypeFieldValueInvalid, fmt.Sprintf("should be at least %d chars long", *node.MinLength))
	}
	if node.MaxLength != nil {
		add(fmt.Sprintf("maxLength %d", *node.MaxLength), "FieldValueTooLong", fmt.Sprintf("may not be more than %d", *node.MaxLength))
	}
	if node.MinItems != nil {
		add(fmt.Sprintf("minItems %d", *node.MinItems), metav1.CauseTypeFieldValueInvalid, fmt.Sprintf("should have at least %d items", *node.MinItems))
	}
	if node.MinProperties != nil {
		add(fmt.Sprintf("minProperties %d", *node.MinProperties), metav1.CauseTypeFieldValueInvalid,
			fmt.Sprintf("should have at least %d properties", *node.MinProperties))
	}
	if node.MaxItems != nil {
		add(fmt.Sprintf("maxItems %d", *node.MaxItems), "FieldValueTooMany", fmt.Sprintf("must have at most %d items", *node.MaxItems))
	}
	if node.MaxProperties != nil {
		add(fmt.Sprintf("maxProperties %d", *node.MaxProperties), "FieldValueTooMany", fmt.Sprintf("must have at most %d", *node.MaxProperties))
	}
	if node.Pattern != "" {
		add("pattern "+node.Pattern, metav1.CauseTypeFieldValueInvalid, "should match '"+node.Pattern)
	}
	if len(node.Enum) > 0 {
		add("enum", metav1.CauseTypeFieldValueNotSupported, "supported values")
	}
	if node.XListType != nil && *node.XListType == "map" {
		unique := "no two items with the same " + strings.Join(node.XListMapKeys, " and ")
		list = append(list, constraint{path + "[]", unique, metav1.CauseTypeFieldValueDuplicate, "Duplicate value"})
	}
	if node.XListType != nil && *node.XListType == "set" {
		list = append(list, constraint{path + "[]", "no two equal items", metav1.CauseTypeFieldValueDuplicate, "Duplicate value"})
	}
	return list
}
