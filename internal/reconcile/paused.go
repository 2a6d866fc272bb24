package reconcile

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsPaused reads the annotation by which an object asks not to be reconciled: any word for true or false that strconv.ParseBool knows.
// Any other value, also an empty one, pauses nothing: what its author hoped for is not guessed. Then problem says so, for people.
func IsPaused(obj metav1.Object, annotation string) (paused bool, problem string) {
	value, given := obj.GetAnnotations()[annotation]
	if !given {
		return false, ""
	}
	paused, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Sprintf(
			"The annotation %s is %.32q, which is neither true nor false, and pauses nothing: set it to true, or remove it", annotation, value)
	}
	return paused, ""
}
