package apply

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ReasonDriftCorrected is the reason of the event that tells that a child was put back. Its action is the child's kind and "PutBack".
const ReasonDriftCorrected = "DriftCorrected"

// maxFields is how many fields such an event names.
const maxFields = 3

// Report makes the Applier record a Warning event about the owner for each child that somebody else changed and that it put back, which
// is once in disputePause at most; nil records none. It returns the Applier, and is called before the first Apply.
//
// A child counts as changed by somebody else if it carries the hash of just what is applied, and differs from that: so neither a first
// apply, nor an apply of another content, nor what Kubernetes adds is ever told. Who changes the annotation with the hash as well is put
// back too, and not told of.
func (a *Applier) Report(recorder events.EventRecorder) *Applier {
	a.recorder = recorder
	return a
}

// drift returns the fields in which a child that we applied differs from what is asked for; nil if nothing is to be done: it is as asked,
// or correcting it was in vain.
func (a *Applier) drift(content *unstructured.Unstructured, live client.Object, hash string) (*fieldpath.Set, error) {
	fields, err := a.difference(content, live)
	if err != nil {
		return nil, err
	}
	if fields.Empty() {
		a.remember(live, hash)
		return nil, nil //nolint:nilnil // that nothing differs is no error
	}
	futile, err := a.dispute(content, live)
	if futile || err != nil {
		return nil, err
	}
	return fields, nil
}

// tell tells that a child was put back. fields are those that differed.
func (a *Applier) tell(owner, child client.Object, content *unstructured.Unstructured, fields *fieldpath.Set) {
	if a.recorder == nil {
		return
	}
	a.recorder.Eventf(owner, child, corev1.EventTypeWarning, ReasonDriftCorrected, content.GetKind()+"PutBack", "%s",
		fmt.Sprintf("%s was changed by somebody else, and put back: %s", nameOf(content), shown(fields)))
}

// shown names fields: they are ones that we set, so no text of anybody else is among them.
func shown(fields *fieldpath.Set) string {
	var names []string
	fields.Leaves().Iterate(func(field fieldpath.Path) { names = append(names, strings.TrimPrefix(field.String(), ".")) })
	slices.Sort(names)
	if more := len(names) - maxFields; more > 0 {
		names = append(names[:maxFields], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
