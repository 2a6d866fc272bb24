package scale

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// BenchmarkCreateToChildren measures, one at a time, how long it takes from the create of an MCPServer until its last child exists.
func BenchmarkCreateToChildren(b *testing.B) {
	r := newRig(b)
	r.startOperator()
	arrived := r.arrivals("default", false)
	for b.Loop() {
		took := make([]time.Duration, 0, *samples)
		for i := range *samples {
			s := server("one", i)
			wanted, begin := r.arrivalsOf(s), time.Now()
			r.create(s)
			r.awaitAll(arrived, time.Minute, wanted, nil)
			took = append(took, time.Since(begin))
		}
		b.ReportMetric(percentile(took, 0.5), "p50-ms")
		b.ReportMetric(percentile(took, 0.99), "p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBurst creates 1,000 MCPServers at once, until every child of every server exists and every status says so, and tells how much
// memory the operator takes for each. Then the operator is stopped, and a plain loop writes the same objects.
func BenchmarkBurst(b *testing.B) {
	const warmUp = 50
	r := newRig(b)
	r.startOperator()
	arrived := r.arrivals("default", true)
	// An API server that has just started is slow, and an operator that has done nothing yet is small.
	if err := each(warmUp, func(i int) error { return r.client.Create(b.Context(), server("warm", i)) }); err != nil {
		b.Fatal(err)
	}
	r.awaitAll(arrived, time.Minute, r.burstOf("warm", warmUp), nil)
	wanted := r.burstOf("burst", *servers)
	for b.Loop() {
		empty := memory(b, r.pid)
		begin, created := time.Now(), make(chan error, 1)
		var createTook time.Duration
		go func() {
			err := each(*servers, func(i int) error { return r.client.Create(b.Context(), server("burst", i)) })
			createTook = time.Since(begin)
			created <- err
		}()
		r.awaitAll(arrived, 5*time.Minute, wanted, created)
		took := time.Since(begin).Seconds()
		rate, grown := float64(*servers)/took, memory(b, r.pid)
		r.stop()
		ceiling := r.ceiling(min(*servers, 300))
		b.ReportMetric(createTook.Seconds(), "create-s")
		b.ReportMetric(took, "applied-s")
		b.ReportMetric(rate, "servers/s")
		b.ReportMetric(ceiling, "ceiling/s")
		b.ReportMetric(100*rate/ceiling, "%-of-ceiling")
		b.ReportMetric(empty/1024, "MiB-before")
		b.ReportMetric(grown/1024, "MiB-after")
		b.ReportMetric((grown-empty)/float64(*servers), "KiB/server")
	}
	b.ReportMetric(0, "ns/op")
}

// ceiling returns how many servers a second a loop without an operator can write: the object, all its children, its status once. It
// comes last, when the API server is as warm as it gets.
func (r *rig) ceiling(n int) float64 {
	r.b.Helper()
	ctx := r.b.Context()
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ceiling"}})
	begin := time.Now()
	err := each(n, func(i int) error {
		s := server("plain", i)
		s.Namespace = "ceiling"
		for _, obj := range append([]client.Object{s}, childrenOf(r.b, s)...) {
			if err := r.client.Create(ctx, obj); err != nil {
				return err
			}
		}
		before := s.DeepCopy()
		s.Status.Phase = mcpv1alpha1.PhasePending
		return r.client.Status().Patch(ctx, s, client.MergeFrom(before))
	})
	if err != nil {
		r.b.Fatal(err)
	}
	return float64(n) / time.Since(begin).Seconds()
}

// BenchmarkCreateToReady measures, on the local cluster with the operator installed, how long it takes from the create of an
// MCPServer until it is Ready: a real pod, a real handshake.
func BenchmarkCreateToReady(b *testing.B) {
	const samples = 20
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		b.Fatal("KUBECONFIG is not set: run this through make bench, which starts the local cluster first")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	c := newClient(b, config)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := c.Create(b.Context(), namespace); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := c.Delete(context.WithoutCancel(b.Context()), namespace); err != nil {
			b.Error(err)
		}
	}()
	for b.Loop() {
		var took []time.Duration
		for i := range samples {
			s := server("ready", i)
			s.Namespace = namespace.Name
			took = append(took, createToReady(b, c, s))
		}
		b.ReportMetric(percentile(took, 0.5), "p50-ms")
		b.ReportMetric(percentile(took, 0.99), "p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}

func createToReady(b *testing.B, c client.WithWatch, s *mcpv1alpha1.MCPServer) time.Duration {
	b.Helper()
	events, err := c.Watch(b.Context(), &mcpv1alpha1.MCPServerList{}, client.InNamespace(s.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", s.Name)})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	begin := time.Now()
	if err := c.Create(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	await(b, events, func(e watch.Event) bool {
		now, ok := e.Object.(*mcpv1alpha1.MCPServer)
		return ok && now.Status.Phase == mcpv1alpha1.PhaseReady
	})
	took := time.Since(begin)
	if err := c.Delete(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	return took
}

// await reads a watch until done; a minute without it is a failure.
func await(b *testing.B, events watch.Interface, done func(watch.Event) bool) {
	b.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		select {
		case e, ok := <-events.ResultChan():
			if !ok {
				b.Fatal("the watch ended")
			}
			if done(e) {
				return
			}
		case <-timeout.C:
			b.Fatal("not within a minute")
		}
	}
}
