package envtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

func TestReadyOfTheCompatibilityAPIFollowsThePodsAndARestartWritesNothing(t *testing.T) {
	server := mcptest.NewServer(t)
	pods := dialTo(addressOf(t, server.URL))
	f := start(t, pods)
	f.create(f.sigServer("truth"))
	first := f.sigCondition("truth", "Ready", metav1.ConditionUnknown, "Initializing")
	if message := conditionOf(first, "Ready").Message; message != "Waiting for Deployment to report status" || first.Status.Address != nil {
		t.Errorf("at first it says %q and has the address %v", message, first.Status.Address)
	}
	pod := f.sigPod("truth", "truth-a")
	f.reported("truth", 1)
	ready := f.sigCondition("truth", "Ready", metav1.ConditionTrue, "Available")
	status := ready.Status
	if want := fmt.Sprintf("http://truth.%s.svc.cluster.local:8080/mcp", f.namespace); status.Address == nil || status.Address.URL != want {
		t.Errorf("address %+v, want %q", status.Address, want)
	}
	if message := conditionOf(ready, "Ready").Message; message != "MCP server is ready (1 of 1 instances healthy)" {
		t.Errorf("it says %q", message)
	}
	if status.ServerInfo == nil || status.ServerInfo.Name == "" || status.ServerInfo.Capabilities == nil || !status.ServerInfo.Capabilities.Tools {
		t.Errorf("what the handshake told is not in the status: %+v", status.ServerInfo)
	}
	if status.DeploymentName != "truth" || status.ServiceName != "truth" || status.Replicas != 1 || status.ReadyReplicas != 1 ||
		status.ObservedGeneration != ready.Generation || status.HandshakeRetryCount != 0 {
		t.Errorf("status %+v", status)
	}
	f.hasEvents("truth", "Normal Valid ConfigurationAccepted", "Normal Available ServerReady")
	f.quiet()
	f.restart(pods, 1)
	f.wantWrites("a restart of the operator", map[string]int{}, 0)

	// Once verified is not verified for ever: the pods die, and nobody touched the specification.
	if err := f.client.Delete(f.ctx, pod); err != nil {
		t.Fatal(err)
	}
	f.reported("truth", 0)
	gone := f.sigCondition("truth", "Ready", metav1.ConditionFalse, "DeploymentUnavailable")
	if gone.Status.Address != nil || gone.Status.ReadyReplicas != 0 {
		t.Errorf("without pods it has the status %+v", gone.Status)
	}
	f.hasEvents("truth", "Warning DeploymentUnavailable DeploymentReconcileFailed")
}

// hasEvents waits for events of an object of ours, each as "type reason action".
func (f *fixture) hasEvents(name string, want ...string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("events %q", want), func() error {
		list := &eventsv1.EventList{}
		if err := f.client.List(f.ctx, list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		have := map[string]bool{}
		for _, e := range list.Items {
			if e.Regarding.Name == name && strings.HasPrefix(e.Regarding.Kind, "MCP") {
				have[e.Type+" "+e.Reason+" "+e.Action] = true
			}
		}
		for _, w := range want {
			if !have[w] {
				return fmt.Errorf("%q is not among %v", w, have)
			}
		}
		return nil
	})
}

func TestHandshakesThatFailAreCountedAsTheyAreAndGoOn(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Welcome") }))
	t.Cleanup(web.Close)
	pods := dialTo(addressOf(t, web.URL))
	f := start(t, pods)
	f.create(f.sigServer("counted"))
	f.sigPod("counted", "counted-a")
	f.reported("counted", 1)
	failing := f.sigCondition("counted", "Ready", metav1.ConditionFalse, "MCPEndpointUnavailable")
	if failing.Status.Address != nil {
		t.Errorf("a server that was never verified has the address %v", failing.Status.Address)
	}
	f.wantSeries("counted", map[string]string{"Accepted": "True Valid", "Ready": "False MCPEndpointUnavailable"})
	f.hasEvents("counted", "Warning MCPEndpointUnavailable MCPHandshakeFailed")
	counted := func(least int32) int32 {
		f.eventually(fmt.Sprintf("%d attempts are counted", least), func() error {
			if err := f.get(failing, "counted"); err != nil {
				return err
			}
			if failing.Status.HandshakeRetryCount < least {
				return fmt.Errorf("%d are", failing.Status.HandshakeRetryCount)
			}
			return nil
		})
		return failing.Status.HandshakeRetryCount
	}
	before := counted(5)
	f.restart(pods, 1)
	if after := counted(before + 1); after < before {
		t.Errorf("a restart took %d attempts to %d", before, after)
	}

	server := mcptest.NewServer(t)
	address := addressOf(t, server.URL)
	pods.address.Store(&address)
	if again := f.sigCondition("counted", "Ready", metav1.ConditionTrue, "Available"); again.Status.HandshakeRetryCount != 0 {
		t.Errorf("a server that answers has failed %d times", again.Status.HandshakeRetryCount)
	}
	f.wantSeries("counted", map[string]string{"Accepted": "True Valid", "Ready": "True Available"})
	if err := f.client.Delete(f.ctx, f.sigServer("counted")); err != nil {
		t.Fatal(err)
	}
	f.wantSeries("counted", nil)
}

// wantSeries waits until mcpserver_condition_info says of a server's conditions what is wanted, and of no other; nil is not a single
// series of any name.
func (f *fixture) wantSeries(server string, want map[string]string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("metrics say %v", want), func() error {
		families, err := metrics.Registry.Gather()
		if err != nil {
			return err
		}
		got := map[string][]string{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				labels := map[string]string{}
				for _, label := range metric.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				if labels["name"] != server || labels["namespace"] != f.namespace {
					continue
				}
				if want == nil {
					return fmt.Errorf("there is %s", family.GetName())
				}
				if family.GetName() == "mcpserver_condition_info" {
					got[labels["type"]] = append(got[labels["type"]], labels["status"]+" "+labels["reason"])
				}
			}
		}
		for conditionType, says := range got {
			if len(says) != 1 || says[0] != want[conditionType] {
				return fmt.Errorf("%s: %v", conditionType, says)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("there is %v", got)
		}
		return nil
	})
}

func TestWhatServesStaysToldWhileANewSpecificationIsRefused(t *testing.T) {
	server := mcptest.NewServer(t)
	f := start(t, dialTo(addressOf(t, server.URL)))
	object := f.sigServer("serving")
	f.create(object)
	f.sigPod("serving", "serving-a")
	f.reported("serving", 1)
	before := f.sigCondition("serving", "Ready", metav1.ConditionTrue, "Available")

	f.edit(object, "serving", func() {
		object.Spec.Config.Port = 9090
		object.Spec.Config.EnvFrom = allOf("late")
	})
	refused := f.sigCondition("serving", "Ready", metav1.ConditionFalse, "ConfigurationInvalid")
	accepted := conditionOf(refused, "Accepted")
	if want := fmt.Sprintf("ConfigMap 'late' (envFrom index 0) not found in namespace '%s'", f.namespace); !strings.HasPrefix(accepted.Message, want) {
		t.Errorf("Accepted says %q, want %q", accepted.Message, want)
	}
	if refused.Status.Address == nil || *refused.Status.Address != *before.Status.Address || refused.Status.ServerInfo == nil ||
		refused.Status.DeploymentName == "" {
		t.Errorf("what serves is not told any more: %+v", refused.Status)
	}
	f.hasEvents("serving", "Warning Invalid ConfigurationValidation")

	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: f.namespace}})
	f.sigCondition("serving", "Accepted", metav1.ConditionTrue, "Valid")
	f.reported("serving", 1)
	f.eventually("the new address is told", func() error {
		if err := f.get(object, "serving"); err != nil {
			return err
		}
		if want := fmt.Sprintf("http://serving.%s.svc.cluster.local:9090/mcp", f.namespace); object.Status.Address == nil || object.Status.Address.URL != want {
			return fmt.Errorf("it is %+v", object.Status.Address)
		}
		return nil
	})
}

func TestNoReplicasAreReadyInTheCompatibilityAPI(t *testing.T) {
	f := start(t, nil)
	server := f.sigServer("stopped")
	server.Spec.Runtime = &sigv1alpha1.Runtime{Replicas: new(int32(0))}
	f.create(server)
	stopped := f.sigCondition("stopped", "Ready", metav1.ConditionTrue, "ScaledToZero")
	if stopped.Status.Address != nil || stopped.Status.Replicas != 0 {
		t.Errorf("status %+v", stopped.Status)
	}
}

func TestANameThatNoServiceCanHaveIsToldAndCostsNothing(t *testing.T) {
	f := start(t, nil)
	f.create(f.sigServer("1st.server"))
	f.sigCondition("1st.server", "Accepted", metav1.ConditionFalse, "Invalid")
	f.quiet()
	f.wantNothing("a name that is refused")
	server := f.sigServer("labelled")
	server.Spec.ExtraLabels = map[string]string{"team": "not a label"}
	f.create(server)
	f.sigCondition("labelled", "Accepted", metav1.ConditionFalse, "Invalid")
	f.quiet()
	f.wantNothing("a label that is refused")
	if err := f.get(&corev1.Service{}, "labelled"); err == nil {
		t.Error(errors.New("a Service was made"))
	}
}

func TestAPausedServerIsNotToldToServeAnEditThatWasNotApplied(t *testing.T) {
	server := mcptest.NewServer(t)
	f := start(t, dialTo(addressOf(t, server.URL)))
	object := f.sigServer("held")
	f.create(object)
	f.sigPod("held", "held-a")
	f.reported("held", 1)
	f.sigCondition("held", "Ready", metav1.ConditionTrue, "Available")
	f.quiet()
	f.edit(object, "held", func() {
		object.Annotations = map[string]string{"mcp.operator/paused": "true"}
		object.Spec.Source.ContainerImage.Ref = "registry.example.com/server:2"
	})
	f.eventually("the edit is looked at", func() error {
		if err := f.get(object, "held"); err != nil {
			return err
		}
		if object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("observed is the generation %d", object.Status.ObservedGeneration)
		}
		return nil
	})
	f.wantWrites("an edit of a paused server", map[string]int{}, 1)
	if err := f.get(object, "held"); err != nil {
		t.Fatal(err)
	}
	if ready := conditionOf(object, "Ready"); ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != 1 {
		t.Errorf("pods of the generation 1 serve, and Ready is %+v", ready)
	}
	f.edit(object, "held", func() { object.Annotations = nil })
	f.eventually("it goes on", func() error {
		d := &appsv1.Deployment{}
		if err := f.get(d, "held"); err != nil {
			return err
		}
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/server:2" {
			return errors.New(image)
		}
		return nil
	})
}
