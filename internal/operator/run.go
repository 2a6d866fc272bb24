// Package operator is the composition root of the manager: it alone makes clients, and wires controllers to them.
package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller"
	"github.com/mcp-operator/mcp-operator/internal/controller/sigserver"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/version"
)

// LeaseName is the name of the lease that the acting operator holds.
const LeaseName = "mcp-operator.mcp.operator"

// Scheme returns a scheme with the kinds of Kubernetes and ours.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme),
		mcpv1alpha1.AddToScheme(scheme), sigv1alpha1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	return scheme, nil
}

// Run runs the operator until ctx ends.
func Run(ctx context.Context, o Options) error {
	logger, err := newLogger(o)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	config, inCluster, err := loadConfig()
	if err != nil {
		return err
	}
	logger.Info("starting", "version", version.String(), "server", config.Host, "inCluster", inCluster, "namespace", o.Namespace)
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := requireCRD(mgr.GetRESTMapper()); err != nil {
		return err
	}
	key, err := hashKey(ctx, mgr.GetAPIReader(), mgr.GetClient(), o.Namespace)
	if err != nil {
		return err
	}
	settings := engine.Settings{
		OperatorNamespace: o.Namespace, ClusterDomain: o.ClusterDomain, HashKey: key, Workers: o.Workers, GatewayImage: o.GatewayImage,
	}
	if !inCluster {
		// A laptop reaches neither pods nor Services: the API server forwards.
		settings.ProbeTransport, settings.Forwarded = forwarded(config), true
	}
	if err := newReconciler(mgr, settings).SetupWithManager(mgr); err != nil { //nolint:contextcheck // controller-runtime gives it no context
		return err
	}
	gate := newCompatibility(mgr.GetCache(), mgr.GetEventRecorder(eventSource), logger.WithName("compatibility"), func(ctx context.Context) error {
		return runCompatibility(ctx, config, settings, logger.WithName("audit"))
	})
	if err := mgr.Add(gate); err != nil {
		return fmt.Errorf("add the compatibility API: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// eventSource is what the operator's events say that they come from.
const eventSource = "mcp-operator"

func newReconciler(mgr manager.Manager, settings engine.Settings) *engine.Reconciler {
	reconciler := &engine.Reconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(eventSource),
	}
	reconciler.Configure(settings)
	return reconciler
}

// runCompatibility runs the controller of the compatibility API until ctx ends. It has a manager, and so caches, of its own: they end
// with it.
func runCompatibility(ctx context.Context, config *rest.Config, settings engine.Settings, audit logr.Logger) error {
	options, err := managerOptions()
	if err != nil {
		return err
	}
	options.Metrics = metricsserver.Options{BindAddress: "0"} // the registry is one for the process: the other manager serves it
	options.HealthProbeBindAddress = "0"
	options.Controller = ctrlconfig.Controller{SkipNameValidation: new(true)} // it may start again
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return fmt.Errorf("make the manager of the compatibility API: %w", err)
	}
	reconciler := newReconciler(mgr, settings)
	reconciler.Speak(sigserver.Dialect{Audit: audit})
	if err := reconciler.SetupWithManager(mgr); err != nil { //nolint:contextcheck // controller-runtime gives it no context
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the compatibility API: %w", err)
	}
	return nil
}

// managerOptions are those of every manager.
func managerOptions() (ctrl.Options, error) {
	scheme, err := Scheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	cacheOptions, err := controller.CacheOptions()
	if err != nil {
		return ctrl.Options{}, err
	}
	return ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions,
		// Reads wait until the cache saw our own writes, so that nothing is written twice.
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		GracefulShutdownTimeout: new(20 * time.Second),
	}, nil
}

func newLogger(o Options) (logr.Logger, error) {
	level, err := parseLevel(o.LogLevel)
	if err != nil {
		return logr.Logger{}, err
	}
	return zap.New(zap.UseDevMode(o.LogFormat == "text"), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel)), nil
}

// loadConfig returns how to reach the API server: as a pod does, else by the current kubeconfig.
func loadConfig() (config *rest.Config, inCluster bool, err error) {
	config, err = rest.InClusterConfig()
	inCluster = err == nil
	if errors.Is(err, rest.ErrNotInCluster) {
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	}
	if err != nil {
		return nil, false, fmt.Errorf("find the API server (in-cluster, then KUBECONFIG, then ~/.kube/config): %w", err)
	}
	config.QPS = -1 // priority and fairness of the API server limits us, not a guess
	config.UserAgent = "mcp-operator/" + version.String()
	return config, inCluster, nil
}

func newManager(config *rest.Config, o Options) (manager.Manager, error) {
	options, err := managerOptions()
	if err != nil {
		return nil, err
	}
	maps.Copy(options.Cache.ByObject, compatibilityCache())
	options.Metrics = metricsOptions(o)
	options.HealthProbeBindAddress = o.HealthAddress
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = o.LeaderElect, true
	options.LeaderElectionID, options.LeaderElectionNamespace = LeaseName, o.Namespace
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", synced(mgr.GetCache())))
}

func metricsOptions(o Options) metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure, CertDir: o.MetricsCertDir}
	if o.MetricsSecure {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
		// HTTP/2 is left out: its resets were used to exhaust servers (CVE-2023-44487), and scrapers do not need it.
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	return options
}

// synced says that every watch has delivered what exists: before that, nothing can be judged.
func synced(informers cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !informers.WaitForCacheSync(ctx) {
			return errors.New("caches have not been filled yet: is the API server reachable, and may the operator list all that it watches?")
		}
		return nil
	}
}

// requireCRD says plainly what a new user forgets.
func requireCRD(mapper apimeta.RESTMapper) error {
	gk := mcpv1alpha1.GroupVersion.WithKind("MCPServer").GroupKind()
	_, err := mapper.RESTMapping(gk, mcpv1alpha1.GroupVersion.Version)
	if apimeta.IsNoMatchError(err) {
		return errors.New("the CustomResourceDefinition mcpservers.mcp.operator is not installed: run kubectl apply -k config/crds")
	}
	if err != nil {
		return fmt.Errorf("ask the API server for MCPServers: %w", err)
	}
	return nil
}
