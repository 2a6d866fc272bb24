package apply

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// disputePause is how long a child is left alone after drift of it was corrected: whoever insists on the same field, such as an
// autoscaler aimed at the child, then costs one write in that time and not hundreds.
const disputePause = 10 * time.Second

// correctionAge bounds what is remembered.
const correctionAge = time.Hour

// FieldConflictError says that a child was changed again, right after it was corrected.
type FieldConflictError struct {
	Message string
	// After is when it is corrected again.
	After time.Duration
}

// Error returns the message.
func (e *FieldConflictError) Error() string { return e.Message }

// ownerOf is the kind of the object that a child is of.
func ownerOf(content *unstructured.Unstructured) string {
	for _, ref := range content.GetOwnerReferences() {
		return ref.Kind
	}
	return "operator"
}

// correction is the last time that drift of a child was corrected, and the version that came of it.
type correction struct {
	at      time.Time
	version string
}

func nameOf(content *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", content.GetKind(), content.GetNamespace(), content.GetName())
}

// dispute judges drift of a child. It is futile to correct it if that was done already and this version came of it: the API
// server, or a policy in it, keeps the field otherwise. If it was corrected a moment ago and changed since, somebody insists.
// Else it is corrected now.
func (a *Applier) dispute(content *unstructured.Unstructured, live client.Object) (futile bool, err error) {
	name, now := nameOf(content), time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.corrected[name]
	switch {
	case known && last.version == live.GetResourceVersion():
		return true, nil
	case known && now.Sub(last.at) < disputePause:
		return false, &FieldConflictError{
			Message: name + " was changed again right after it was corrected: somebody else insists on a field that the " + ownerOf(content) + " sets",
			After:   disputePause - now.Sub(last.at),
		}
	}
	maps.DeleteFunc(a.corrected, func(_ string, c correction) bool { return now.Sub(c.at) > correctionAge })
	a.corrected[name] = correction{at: now}
	return false, nil
}

// noteVersion notes which version of a child came of correcting it.
func (a *Applier) noteVersion(content *unstructured.Unstructured, written client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, known := a.corrected[nameOf(content)]; known {
		a.corrected[nameOf(content)] = correction{at: last.at, version: written.GetResourceVersion()}
	}
}

// forgetCorrection forgets that a child was corrected.
func (a *Applier) forgetCorrection(content *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.corrected, nameOf(content))
}
