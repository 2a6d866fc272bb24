package scale

import (
	"context"
	"fmt"
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
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// BenchmarkCreateToChildren measures, one at a time, how long it takes from the create of an MCPServer until its last child exists.
func BenchmarkCreateToChildren(b *testing.B) {
	const samples = 200
	r := newRig(b)
	services, err := r.client.Watch(b.Context(), &corev1.ServiceList{}, client.InNamespace("default"))
	if err != nil {
		b.Fatal(err)
	}
	defer services.Stop()
	for b.Loop() {
		took := make([]time.Duration, 0, samples)
		for i := range samples {
			begin := time.Now()
			r.create(server("one", i))
			await(b, services, func(e watch.Event) bool {
				svc, ok := e.Object.(*corev1.Service)
				return ok && svc.Name == desired.ServiceName(fmt.Sprintf("one-%d", i))
			})
			took = append(took, time.Since(begin))
		}
		b.ReportMetric(percentile(took, 0.5), "p50-ms")
		b.ReportMetric(percentile(took, 0.99), "p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBurst creates 1,000 MCPServers at once, beside what a plain loop reaches that writes the same objects, and tells
// how much memory the operator takes for each.
func BenchmarkBurst(b *testing.B) {
	const servers = 1000
	r := newRig(b)
	for b.Loop() {
		ceiling := r.ceiling(300)
		empty := memory(b, r.pid)
		begin := time.Now()
		if err := each(servers, func(i int) error { return r.client.Create(b.Context(), server("burst", i)) }); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(begin).Seconds(), "create-s")
		r.until("all applied", func(ctx context.Context) (bool, error) {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceList"))
			if err := r.client.List(ctx, list, client.InNamespace("default"), client.HasLabels{desired.LabelServer}); err != nil {
				return false, err
			}
			return len(list.Items) >= servers, nil
		})
		rate := servers / time.Since(begin).Seconds()
		b.ReportMetric(time.Since(begin).Seconds(), "applied-s")
		b.ReportMetric(rate, "servers/s")
		b.ReportMetric(ceiling, "ceiling/s")
		b.ReportMetric(100*rate/ceiling, "%-of-ceiling")
		b.ReportMetric(empty/1024, "MiB-before")
		b.ReportMetric(memory(b, r.pid)/1024, "MiB-after")
		b.ReportMetric((memory(b, r.pid)-empty)/servers, "KiB/server")
	}
	b.ReportMetric(0, "ns/op")
}

// ceiling returns how many servers a second a loop without an operator can write: the object, its three children, its status.
func (r *rig) ceiling(n int) float64 {
	r.b.Helper()
	ctx := r.b.Context()
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ceiling"}})
	begin := time.Now()
	err := each(n, func(i int) error {
		s := server("plain", i)
		// Paused, so that the operator leaves the children to this loop.
		s.Annotations = map[string]string{mcpv1alpha1.AnnotationPaused: "true"}
		s.Namespace = "ceiling"
		children := desired.ForServer(s, desired.Environment{OperatorNamespace: "mcp-operator-system"}, "")
		for _, obj := range []client.Object{s, children.NetworkPolicy, children.Deployment, children.Service} {
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
