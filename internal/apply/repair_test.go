package apply

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestListsOfPortsThatDifferInTheirNumbersAreReplaced(t *testing.T) {
	t.Parallel()
	service := func(ports ...int32) *corev1.Service {
		s := &corev1.Service{}
		for _, port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "mcp", Port: port})
		}
		return s
	}
	deployment := func(changes ...func([]corev1.Container) []corev1.Container) *appsv1.Deployment {
		d := makeDeployment()
		for _, change := range changes {
			d.Spec.Template.Spec.Containers = change(d.Spec.Template.Spec.Containers)
		}
		return d
	}
	port := func(ports ...int32) func([]corev1.Container) []corev1.Container {
		return func(list []corev1.Container) []corev1.Container {
			list[0].Ports = nil
			for _, port := range ports {
				list[0].Ports = append(list[0].Ports, corev1.ContainerPort{Name: "mcp", ContainerPort: port})
			}
			return list
		}
	}
	sidecar := func(list []corev1.Container) []corev1.Container {
		return append([]corev1.Container{{Name: "sidecar", Ports: []corev1.ContainerPort{{ContainerPort: 15001}}}}, list...)
	}
	const servicePatch = `{"spec":{"ports":[{"$patch":"replace"},{"name":"mcp","port":8080,"targetPort":0}]}}`
	const containerPatch = `{"spec":{"template":{"spec":{"containers":[{"name":"mcp-server","ports":` +
		`[{"$patch":"replace"},{"containerPort":8080,"name":"mcp","protocol":"TCP"}]}]}}}}`

	tests := map[string]struct {
		want, live client.Object
		patch      string
	}{
		"a Service as asked":                           {service(8080), service(8080), "null"},
		"a Service with another port":                  {service(8080), service(9090), servicePatch},
		"a Service with one more port":                 {service(8080), service(8080, 9090), servicePatch},
		"a Service without ports":                      {service(8080), service(), servicePatch},
		"a Deployment as asked":                        {deployment(), deployment(), "null"},
		"a Deployment with another port":               {deployment(), deployment(port(9090)), containerPatch},
		"a Deployment with one more port":              {deployment(), deployment(port(8080, 9090)), containerPatch},
		"a Deployment without ports":                   {deployment(), deployment(port()), containerPatch},
		"the ports of an injected sidecar are its own": {deployment(), deployment(sidecar), "null"},
		"a container beside an injected sidecar":       {deployment(), deployment(port(9090), sidecar), containerPatch},
		"objects without ports":                        {&corev1.ConfigMap{}, &corev1.ConfigMap{}, "null"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fields [2]map[string]any
			for i, obj := range []client.Object{tt.want, tt.live} {
				var err error
				if fields[i], err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
					t.Fatal(err)
				}
			}
			patch := portsPatch(fields[0], fields[1])
			got, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.patch {
				t.Errorf("patch\n%s\nwant\n%s", got, tt.patch)
			}
		})
	}
}

func TestWhatTheAPIServerFindsInvalidIsMendedWhereItsPortsDiffer(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "demo", nil)
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, "demo", errors.New("changed"))
	tests := map[string]struct {
		livePort int32
		refusals []error // of the writes in turn
		want     []string
		err      error
	}{
		"ports that differ are put back, and it is applied again": {9090, []error{invalid}, []string{"apply, forced", "mend", "apply, forced"}, nil},
		"nothing to put back: the refusal is told":                {8080, []error{invalid}, []string{"apply, forced"}, invalid},
		"ports that cannot be put back: both are told":            {9090, []error{invalid, conflict}, []string{"apply, forced", "mend"}, conflict},
		"it stays invalid: that is told, and not tried for ever": {
			9090, []error{invalid, nil, invalid}, []string{"apply, forced", "mend", "apply, forced"}, invalid,
		},
		"another refusal mends nothing": {9090, []error{conflict}, []string{"apply, forced"}, conflict},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := makeDeployment()
			live.UID = "uid-live"
			live.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = tt.livePort
			live.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(makeOwner(), schema.GroupVersionKind{
				Group: "mcp.operator", Version: "v1alpha1", Kind: "MCPServer",
			})}
			w := makeWorld(t, live)
			w.refuse = func(write) error {
				if n := len(w.writes); n <= len(tt.refusals) {
					return tt.refusals[n-1]
				}
				return nil
			}
			_, err := w.applier.Apply(t.Context(), makeOwner(), makeDeployment())
			if (err == nil) != (tt.err == nil) || !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, w.verbs()); diff != "" {
				t.Errorf("writes (-want +got)\n%s", diff)
			}
			for _, wr := range w.writes {
				if !strings.Contains(wr.data, `"uid":"uid-live"`) {
					t.Errorf("a foreign object that took the name meanwhile would be changed by: %s", wr.data)
				}
			}
		})
	}
}
