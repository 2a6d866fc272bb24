package envtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// counted returns a counter's values for a server, by one of its labels; without a label by nothing.
func (f *fixture) counted(family, server, label string) map[string]float64 {
	f.t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	values := map[string]float64{}
	for _, of := range families {
		if of.GetName() != family {
			continue
		}
		for _, metric := range of.GetMetric() {
			labels := map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["name"] == server && labels["namespace"] == f.namespace {
				values[labels[label]] = metric.GetCounter().GetValue()
			}
		}
	}
	return values
}

func TestAServerThatOffersSomethingElseByItselfIsNoticedAndTold(t *testing.T) {
	before := mcptest.NewServer(t)
	pods := dialTo(addressOf(t, before.URL))
	f := start(t, pods)
	f.probeInterval = 200 * time.Millisecond
	f.restart(pods, 0)
	f.create(f.sigServer("moody"))
	f.sigPod("moody", "moody-a")
	f.reported("moody", 1)
	was := f.sigCondition("moody", "Ready", metav1.ConditionTrue, "Available")
	if c := was.Status.ServerInfo.Capabilities; c == nil || !c.Prompts || !c.Resources || !c.Tools {
		t.Fatalf("at first it offers %+v", c)
	}
	f.eventually("it has been asked again", func() error {
		if n := f.counted("mcpserver_handshake_total", "moody", "result")["success"]; n < 4 {
			return fmt.Errorf("%v handshakes", n)
		}
		return nil
	})
	if n := f.counted("mcpserver_capability_changes_total", "moody", ""); len(n) > 0 {
		t.Errorf("nothing changed, and %v changes are counted", n)
	}

	// The same pod, the same object: what runs in it serves something else from now on.
	after := mcptest.NewServer(t, mcptest.Bare(), mcptest.Instructions("only tools"))
	pods.address.Store(new(addressOf(t, after.URL)))
	is := was.DeepCopy()
	f.eventually("the status tells what it offers now", func() error {
		if err := f.get(is, "moody"); err != nil {
			return err
		}
		info := is.Status.ServerInfo
		if c := info.Capabilities; info.Instructions != "only tools" || c == nil || c.Prompts || c.Resources || !c.Tools {
			return fmt.Errorf("it says %+v, %+v", info, c)
		}
		return nil
	})
	if is.Generation != was.Generation {
		t.Errorf("the generation was %d and is %d", was.Generation, is.Generation)
	}
	if diff := cmp.Diff(conditionOf(was, "Ready"), conditionOf(is, "Ready")); diff != "" {
		t.Errorf("Ready (-before +after)\n%s", diff)
	}
	f.eventually("an event tells the difference", func() error {
		const want = "MCP server capabilities changed: resources: true->false, prompts: true->false"
		return f.wantNote("moody", "Warning", "CapabilityChanged", "CapabilityChangeDetected", want)
	})
	f.eventually("it is counted", func() error {
		if diff := cmp.Diff(map[string]float64{"": 1}, f.counted("mcpserver_capability_changes_total", "moody", "")); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	f.quiet()
	f.wantNothing("a server that offers the same as before")
}

// wantNote says whether there is an event of a server with such a note.
func (f *fixture) wantNote(server, eventType, reason, action, note string) error {
	list := &eventsv1.EventList{}
	if err := f.client.List(f.ctx, list, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	var others []string
	for _, e := range list.Items {
		if e.Regarding.Name != server || e.Type != eventType || e.Reason != reason || e.Action != action {
			continue
		}
		if e.Note == note {
			return nil
		}
		others = append(others, e.Note)
	}
	return fmt.Errorf("its events say %q", others)
}

func TestAServerThatOnlyEverAsksForCredentialsIsNeverCountedAsOneThatAnswered(t *testing.T) {
	server := mcptest.Serve(t, mcptest.Unauthorized())
	pods := dialTo(server.Address())
	f := start(t, pods)
	f.probeInterval = 100 * time.Millisecond
	f.restart(pods, 0)
	f.create(f.sigServer("guarded"))
	f.sigPod("guarded", "guarded-a")
	f.reported("guarded", 1)
	f.sigCondition("guarded", "Ready", metav1.ConditionTrue, "Available")
	results := map[string]float64{}
	f.eventually("it has been asked again and again", func() error {
		results = f.counted("mcpserver_handshake_total", "guarded", "result")
		if results["auth_skip"] < 5 {
			return fmt.Errorf("counted are %v", results)
		}
		return nil
	})
	for result, n := range results {
		if result != "auth_skip" && result != "skip" {
			t.Errorf("%v handshakes are counted as %s", n, result)
		}
	}
	f.wantSeries("guarded", map[string]string{"Accepted": "True Valid", "Ready": "True Available"})
}
