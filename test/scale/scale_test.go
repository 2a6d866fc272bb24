// Package scale measures the operator: the real binary, in a process of its own, against a real API server. Every number is
// printed beside what the same API server could do at best in the same run.
//
// make bench runs it; docs/benchmarks.md holds the numbers.
package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/operator"
)

const operatorNamespace = "mcp-operator-system"

// rig is an API server of its own, without kubelets, and an operator process once that is started.
type rig struct {
	b          *testing.B
	client     client.WithWatch
	kubeconfig []byte
	pid        int    // of the operator
	stop       func() // ends it, once
}

func newRig(b *testing.B) *rig {
	b.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		b.Fatal("KUBEBUILDER_ASSETS is not set: run this through make bench, which builds etcd and kube-apiserver first")
	}
	env := &envtest.Environment{
		CRDDirectoryPaths: []string{"../../config/crds"}, ErrorIfCRDPathMissing: true,
		// By themselves they wait 20 s and 10 s, which a busy machine may take.
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute, CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: time.Minute},
	}
	env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	config, err := env.Start()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := env.Stop(); err != nil {
			b.Error(err)
		}
	})
	config.QPS = -1
	r := &rig{b: b, client: newClient(b, config), kubeconfig: env.KubeConfig}
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})
	return r
}

func newClient(b *testing.B, config *rest.Config) client.WithWatch {
	b.Helper()
	ctrl.SetLogger(logr.Discard()) // or the client complains of warnings that it cannot log
	scheme, err := operator.Scheme()
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// startOperator builds the operator and runs it as its own process, as `make run` does.
func (r *rig) startOperator() {
	r.b.Helper()
	dir := r.b.TempDir()
	file, binary := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "mcp-operator")
	if err := os.WriteFile(file, r.kubeconfig, 0o600); err != nil {
		r.b.Fatal(err)
	}
	build := exec.CommandContext(r.b.Context(), "go", "build", "-o", binary, "../../cmd/mcp-operator")
	if out, err := build.CombinedOutput(); err != nil {
		r.b.Fatalf("build the operator: %v\n%s", err, out)
	}
	var log bytes.Buffer
	run := exec.Command(binary, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect=false", "--log-level=error")
	run.Env, run.Stdout, run.Stderr = append(os.Environ(), "KUBECONFIG="+file), &log, &log
	if err := run.Start(); err != nil {
		r.b.Fatal(err)
	}
	r.pid = run.Process.Pid
	r.stop = sync.OnceFunc(func() {
		if err := run.Process.Signal(os.Interrupt); err != nil {
			r.b.Error(err)
		}
		if err := run.Wait(); err != nil {
			r.b.Errorf("operator: %v\n%s", err, log.String())
		}
	})
	r.b.Cleanup(r.stop)
	r.create(server("warm-up", 0))
	r.until("the operator works", func(ctx context.Context) (bool, error) {
		s := &mcpv1alpha1.MCPServer{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "warm-up-0"}, s)
		return len(s.Status.Conditions) > 0, err
	})
}

func (r *rig) create(obj client.Object) {
	r.b.Helper()
	if err := r.client.Create(r.b.Context(), obj); err != nil {
		r.b.Fatal(err)
	}
}

func (r *rig) until(what string, check func(context.Context) (bool, error)) {
	r.b.Helper()
	if err := wait.PollUntilContextTimeout(r.b.Context(), 10*time.Millisecond, 5*time.Minute, true, check); err != nil {
		r.b.Fatalf("%s: %v", what, err)
	}
}

func server(prefix string, i int) *mcpv1alpha1.MCPServer {
	return &mcpv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i), Namespace: "default"},
		Spec:       mcpv1alpha1.MCPServerSpec{Image: "mcp-operator/everything:dev"},
	}
}

// each runs do for 0..n-1 with 20 writers.
func each(n int, do func(i int) error) error {
	var (
		writers sync.WaitGroup
		mu      sync.Mutex
		all     error
		jobs    = make(chan int, n)
	)
	for i := range n {
		jobs <- i
	}
	close(jobs)
	for range 20 {
		writers.Go(func() {
			for i := range jobs {
				if err := do(i); err != nil {
					mu.Lock()
					all = errors.Join(all, err)
					mu.Unlock()
				}
			}
		})
	}
	writers.Wait()
	return all
}

func percentile(samples []time.Duration, p float64) float64 {
	slices.Sort(samples)
	return float64(samples[int(p*float64(len(samples)-1))].Microseconds()) / 1000
}

// memory returns the resident memory of a process in KiB.
func memory(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kib); err == nil {
			return kib
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
