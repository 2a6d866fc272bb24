//go:build linux

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestANodeIsReadyOnlyIfItsConditionSaysSo(t *testing.T) {
	t.Parallel()
	list := `{"items":[
	 {"metadata":{"name":"node1"},"status":{"addresses":[{"type":"Hostname","address":"node1"},{"type":"InternalIP","address":"10.89.0.11"}],
	  "conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True","message":"fine","lastHeartbeatTime":"2026-01-01T00:00:00Z"}]}},
	 {"metadata":{"name":"node2"},"status":{"conditions":[{"type":"Ready","status":"Unknown","message":"Kubelet stopped posting node status."}]}},
	 {"metadata":{"name":"node3"},"status":{}}]}`
	got, err := parseNodes([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	want := []Node{
		{Name: "node1", Ready: true, IP: "10.89.0.11", reported: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Name: "node2", Reason: "Kubelet stopped posting node status."},
		{Name: "node3", Reason: "the kubelet has not reported yet"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Node{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheTableShowsWhatIsDownAndWhatMendsIt(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := Status{
		Kubeconfig: "/state/kubeconfig",
		Components: []Component{{Name: "etcd", Up: true, PID: 7, Log: "/state/logs/etcd.log"}, {Name: "kube-apiserver", Log: "/state/logs/kube-apiserver.log"}},
		Problem:    "connection refused",
	}
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"etcd", "DOWN", "connection refused", "devcluster up", "export KUBECONFIG=/state/kubeconfig"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
