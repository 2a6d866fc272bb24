// Package envtest tells the story of an MCPServer on a real API server, without a kubelet: what is written, what heals, what
// is left alone. Writes are counted, not timed.
package envtest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller"
	"github.com/mcp-operator/mcp-operator/internal/controller/sigserver"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/operator"
)

const operatorNamespace = "mcp-operator-system"

var (
	apiConfig *rest.Config
	scheme    *runtime.Scheme
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "KUBEBUILDER_ASSETS is not set: run this through make test-envtest, which builds etcd and kube-apiserver first")
		return 1
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(logFile())))
	env := &envtest.Environment{
		CRDDirectoryPaths: []string{"../../config/crds", "../../config/crds-sig"}, ErrorIfCRDPathMissing: true,
		// By themselves they wait 20 s and 10 s, which a busy machine may take.
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute, CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: time.Minute},
	}
	env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	if version := os.Getenv("ENVTEST_EMULATED_VERSION"); version != "" {
		env.ControlPlane.GetAPIServer().Configure().Append("emulated-version", version)
	}
	var err error
	if apiConfig, err = env.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start the API server:", err)
		return 1
	}
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
		}
	}()
	apiConfig.QPS = -1
	if scheme, err = operator.Scheme(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// logFile is where the manager's log goes: a file named by ENVTEST_LOG, else nowhere.
func logFile() *os.File {
	name := os.Getenv("ENVTEST_LOG")
	if name == "" {
		name = os.DevNull
	}
	f, err := os.Create(name)
	if err != nil {
		panic(err)
	}
	return f
}

// requests is what the operator asked of the API server, each as "METHOD path". Leases and the making of events do not count.
type requests struct {
	writes []string
	reads  []string // but for watches
}

// counter notes the operator's requests.
type counter struct {
	requests

	mu sync.Mutex

	// listed are lists and watches of Secrets and ConfigMaps as metadata, exposed those with their content; both since the start.
	listed, exposed []string
}

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		line := req.Method + " " + req.URL.Path
		read, watched := req.Method == http.MethodGet, req.URL.Query().Get("watch") != ""
		c.mu.Lock()
		switch {
		case strings.Contains(line, "/leases"), !read && strings.Contains(line, "/events"):
		case !read:
			c.writes = append(c.writes, line)
		case !watched:
			c.reads = append(c.reads, line)
		}
		if read && (strings.HasSuffix(line, "/secrets") || strings.HasSuffix(line, "/configmaps")) {
			if strings.Contains(req.Header.Get("Accept"), "PartialObjectMetadata") {
				c.listed = append(c.listed, line)
			} else {
				c.exposed = append(c.exposed, line)
			}
		}
		c.mu.Unlock()
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// take returns the requests since the last call.
func (c *counter) take() requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.requests
	c.requests = requests{}
	return taken
}

// written returns the writes since the last call of take.
func (c *counter) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

// fixture is a namespace, a client, and a running operator.
type fixture struct {
	t         *testing.T
	ctx       context.Context //nolint:containedctx // a test's own, ended with it
	namespace string
	client    client.Client
	counter   *counter
	known     client.Reader // what the operator was told by its watches
	stop      func()

	// gatewayImage and probeInterval are what the operator is told at its next start. An interval of 0 is the operator's own.
	gatewayImage  string
	probeInterval time.Duration
}

// start starts an operator. pods is where its prober gets when it dials a pod; nil dials pod addresses.
func start(t *testing.T, pods *dialer) *fixture {
	t.Helper()
	c, err := client.New(apiConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ctx: t.Context(), client: c, gatewayImage: "registry.example.com/mcp-gateway:1"}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	f.create(ns)
	f.namespace = ns.Name
	f.leaveNoServers(f.namespace)
	f.run(pods)
	return f
}

// leaveNoServers ends the servers of a namespace with the test: the next operator would reconcile them too.
func (f *fixture) leaveNoServers(namespace string) {
	f.t.Cleanup(func() {
		ctx := context.WithoutCancel(f.ctx)
		for _, kind := range []client.Object{&mcpv1alpha1.MCPServer{}, &sigv1alpha1.MCPServer{}} {
			if err := f.client.DeleteAllOf(ctx, kind, client.InNamespace(namespace)); err != nil {
				f.t.Errorf("delete the %T of %s: %v", kind, namespace, err)
			}
		}
	})
}

// restart starts the operator anew, and waits until it reconciled so many objects.
func (f *fixture) restart(pods *dialer, servers int) {
	f.t.Helper()
	f.stop()
	before := reconciled(f.t)
	f.run(pods)
	f.within(manySoon, fmt.Sprintf("%d servers are reconciled after a restart", servers), func() error {
		if n := reconciled(f.t) - before; n < servers {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

// reconciled is how many passes ended well in this process.
func reconciled(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	passes := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "result" && label.GetValue() != "error" {
					passes += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return int(passes)
}

// run starts the operator, again if it was stopped.
func (f *fixture) run(pods *dialer) {
	f.t.Helper()
	f.counter = &counter{}
	config := rest.CopyConfig(apiConfig)
	config.Wrap(f.counter.wrap)
	cacheOptions, err := controller.CacheOptions()
	if err != nil {
		f.t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: cacheOptions,
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.known = mgr.GetClient()
	settings := engine.Settings{
		OperatorNamespace: operatorNamespace, HashKey: []byte("a key for tests of 32 bytes....."), GatewayImage: f.gatewayImage,
		ProbeInterval: f.probeInterval,
	}
	if pods != nil {
		settings.ProbeTransport = pods.transport
	}
	for _, dialect := range []engine.Dialect{nil, sigserver.Dialect{}} {
		r := &controller.MCPServerReconciler{
			Client: mgr.GetClient(), Scheme: scheme, APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("mcp-operator"),
		}
		r.Configure(settings)
		r.Speak(dialect)
		if err := r.SetupWithManager(mgr); err != nil {
			f.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		f.t.Fatal("caches were not filled")
	}
	stopped := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("manager: %v", err)
		}
	})
	f.stop = stopped
	f.t.Cleanup(stopped)
}

func (f *fixture) create(obj client.Object) {
	f.t.Helper()
	if err := f.client.Create(f.ctx, obj); err != nil {
		f.t.Fatalf("create %T: %v", obj, err)
	}
}

// server returns an MCPServer that has what is required.
func (f *fixture) server(name string) *mcpv1alpha1.MCPServer {
	return &mcpv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec:       mcpv1alpha1.MCPServerSpec{Image: "registry.example.com/server:1"},
	}
}

func (f *fixture) get(obj client.Object, name string) error {
	key := nameOf(name)
	key.Namespace = f.namespace
	return f.client.Get(f.ctx, key, obj)
}

// edit changes an object as a person would.
func (f *fixture) edit(obj client.Object, name string, change func()) {
	f.t.Helper()
	if err := f.get(obj, name); err != nil {
		f.t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	change()
	if err := f.client.Patch(f.ctx, obj, client.MergeFrom(before)); err != nil {
		f.t.Fatalf("edit %T %s: %v", obj, name, err)
	}
}

const (
	// soon is how long anything is waited for: five times what is promised, and twice what anything here takes by itself on an idle machine.
	soon = time.Minute
	// manySoon is that where many objects are reconciled.
	manySoon = 2 * time.Minute
)

// eventually waits until check returns nil.
func (f *fixture) eventually(what string, check func() error) {
	f.t.Helper()
	f.within(soon, what, check)
}

// within is eventually with another deadline.
func (f *fixture) within(deadline time.Duration, what string, check func() error) {
	f.t.Helper()
	var last error
	begin := time.Now()
	err := wait.PollUntilContextTimeout(f.ctx, 20*time.Millisecond, deadline, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		f.t.Fatalf("%s: not within %s: %v", what, deadline, last)
	}
	f.t.Logf("%s: after %v", what, time.Since(begin).Round(time.Millisecond))
}

// quiet waits until the operator wrote nothing for a second, and returns what it asked before. That it has begun to write it
// does not know: what is due is waited for before.
func (f *fixture) quiet() requests {
	f.t.Helper()
	last, since := len(f.counter.written()), time.Now()
	err := wait.PollUntilContextTimeout(f.ctx, 20*time.Millisecond, manySoon, true, func(context.Context) (bool, error) {
		if n := len(f.counter.written()); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > time.Second, nil
	})
	if err != nil {
		f.t.Fatalf("the operator goes on writing: %v", f.counter.take())
	}
	return f.counter.take()
}

// condition waits for a condition of a server.
func (f *fixture) condition(name, conditionType string, status metav1.ConditionStatus, reason string) *mcpv1alpha1.MCPServer {
	f.t.Helper()
	server := &mcpv1alpha1.MCPServer{}
	f.eventually(fmt.Sprintf("%s: %s=%s/%s", name, conditionType, status, reason), func() error {
		if err := f.get(server, name); err != nil {
			return err
		}
		for _, c := range server.Status.Conditions {
			if c.Type == conditionType {
				if c.Status == status && c.Reason == reason {
					return nil
				}
				return fmt.Errorf("is %s/%s: %s", c.Status, c.Reason, c.Message)
			}
		}
		return fmt.Errorf("there is no condition %s", conditionType)
	})
	return server
}

// rolledOut plays the Deployment controller and the kubelet: the Deployment is observed, with so many ready replicas.
func (f *fixture) rolledOut(name string, ready int32) {
	f.t.Helper()
	f.rolledOutWith(name, ready, nil)
}

func nameOf(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
