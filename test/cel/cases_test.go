package cel

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// accepted is an object that must be accepted.
type accepted struct {
	name   string // a sentence
	change string // YAML that is merged over the smallest object; null removes
}

// refused is an object that must be refused.
type refused struct {
	name   string // a sentence
	change string // YAML that is merged over the smallest object; null removes
	field  string // where the refusal points to, without the numbers of items
	says   string // a distinctive part of the message
}

// changed returns minimal with a change.
func changed(t *testing.T, change string) *unstructured.Unstructured {
	t.Helper()
	return changedFrom(t, minimal, change)
}

func changedFrom(t *testing.T, minimal, change string) *unstructured.Unstructured {
	t.Helper()
	object, patch := map[string]any{}, map[string]any{}
	if err := yaml.Unmarshal([]byte(minimal), &object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(change), &patch); err != nil {
		t.Fatalf("the case is no YAML: %v", err)
	}
	merge(object, patch)
	return &unstructured.Unstructured{Object: object}
}

// merge merges a patch into an object as a JSON merge patch does.
func merge(object, patch map[string]any) {
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		target, wasObject := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject && wasObject:
			merge(target, inner)
		default:
			object[key] = value
		}
	}
}

// submit asks the API server what it thinks of an object, without storing it. A change of status goes to the status of
// an object that exists.
func submit(t *testing.T, change string) (*unstructured.Unstructured, error) {
	t.Helper()
	return submitTo(t, minimal, change)
}

// submitTo does that with a change of the smallest object of any kind.
func submitTo(t *testing.T, minimal, change string) (*unstructured.Unstructured, error) {
	t.Helper()
	object := changedFrom(t, minimal, change)
	status, ok := object.Object["status"]
	if !ok {
		return object, api.Create(t.Context(), object, client.DryRunAll)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	object.SetName(subject)
	return object, api.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
}

// unchecked is said, as a cause, of CEL rules that were not evaluated since the object was refused before.
const unchecked = "some validation rules were not checked"

// causesOf returns why an object was refused; none if it was not, or not for what it says.
func causesOf(err error) []metav1.StatusCause {
	var refusal *apierrors.StatusError
	if !errors.As(err, &refusal) || !apierrors.IsInvalid(err) || refusal.ErrStatus.Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(refusal.ErrStatus.Details.Causes), func(cause metav1.StatusCause) bool {
		return strings.Contains(cause.Message, unchecked)
	})
}

var (
	itemNumber = regexp.MustCompile(`\[\d+\]`)
	mapKey     = regexp.MustCompile(`\[([^]]+)\]`)
)

// fieldOf returns the field that a cause points to, without the numbers of items and with keys of maps as if they were fields; the
// object itself is "".
func fieldOf(cause metav1.StatusCause) string {
	field := strings.TrimPrefix(strings.TrimPrefix(cause.Field, "<nil>"), ".")
	return mapKey.ReplaceAllString(itemNumber.ReplaceAllString(field, "[]"), ".$1")
}

// points says whether a cause points to the field that a case names, or to what it is part of.
func (c refused) points(cause metav1.StatusCause) bool {
	field := fieldOf(cause)
	return field == c.field || field != "" && strings.HasPrefix(c.field, field)
}

func TestWhatIsMeantIsAccepted(t *testing.T) {
	t.Parallel()
	for kind, cases := range ownKinds() {
		for _, c := range cases.accepted {
			t.Run(kind+" "+c.name, func(t *testing.T) {
				t.Parallel()
				if _, err := submitTo(t, cases.minimal, c.change); err != nil {
					t.Errorf("%.1000s\nis refused: %v", c.change, err)
				}
			})
		}
	}
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for kind, cases := range ownKinds() {
		for _, c := range cases.refused {
			t.Run(kind+" "+c.name, func(t *testing.T) {
				t.Parallel()
				_, err := submitTo(t, cases.minimal, c.change)
				c.judge(t, err)
			})
		}
	}
}

// judge says whether a refusal is the one that the case is about.
func (c refused) judge(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%.300s\nis accepted; want %s refused with %q", c.change, c.field, c.says)
	}
	causes := causesOf(err)
	if len(causes) == 0 {
		t.Fatalf("%.300s\nis refused, but not as invalid: %v", c.change, err)
	}
	said := false
	for _, cause := range causes {
		if !c.points(cause) {
			t.Errorf("%.300s\nis also refused because of %s: %s", c.change, cause.Field, cause.Message)
		}
		said = said || fieldOf(cause) == c.field && strings.Contains(cause.Message, c.says)
	}
	if !said {
		t.Errorf("%.300s\nis refused without saying %q: %v", c.change, c.says, err)
	}
}

// TestEveryRuleRefusesSomething holds the cases to the schema: what no case provokes might as well not be there.
func TestEveryRuleRefusesSomething(t *testing.T) {
	t.Parallel()
	for kind, cases := range ownKinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var causes []metav1.StatusCause
			for _, c := range cases.refused {
				_, err := submitTo(t, cases.minimal, c.change)
				causes = append(causes, causesOf(err)...)
			}
			provokesAll(t, kind, causes)
		})
	}
}

// provokesAll reports what a schema demands and no cause is of.
func provokesAll(t *testing.T, kind string, causes []metav1.StatusCause) {
	t.Helper()
	for _, c := range constraintsOf(kind, schemaOf(t, kind)) {
		provoked := false
		for _, cause := range causes {
			provoked = provoked || c.refuses(cause)
		}
		if !provoked {
			t.Errorf("no case provokes %s", c)
		}
	}
}

func TestKindsWithoutCasesAreFound(t *testing.T) {
	t.Parallel()
	for kind := range readCRDs(t) {
		if _, ok := ownKinds()[kind]; !ok && kind != sigKind {
			t.Errorf("the rules of %s are not tested: give it cases", kind)
		}
	}
}

// TestEveryStringAndListHasALimit keeps objects small enough to be stored, and rules cheap enough to be evaluated.
func TestEveryStringAndListHasALimit(t *testing.T) {
	t.Parallel()
	for kind := range ownKinds() {
		walk("", schemaOf(t, kind), func(path string, node *schemaNode) {
			limited := map[string]bool{
				"string":  node.MaxLength != nil || len(node.Enum) > 0,
				"array":   node.MaxItems != nil,
				"object":  node.AdditionalProperties == nil || node.MaxProperties != nil,
				"integer": node.Minimum != nil && node.Maximum != nil || strings.HasPrefix(path, "status."), // the operator counts there
			}
			if is, known := limited[node.Type]; isOurs(kind, path) && known && !is {
				t.Errorf("%s of %s is a %s without a limit", path, kind, node.Type)
			}
		})
	}
}
