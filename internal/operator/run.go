// Package operator is the composition root of the manager: it alone makes clients, and wires controllers to them.
package operator

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"maps"
	"strings"
	"time"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller"
	"github.com/mcp-operator/mcp-operator/internal/controller/sigserver"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/version"
	"github.com/mcp-operator/mcp-operator/internal/webhook"
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
	logger, level, err := newLogger(o)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	stdlog.SetFlags(0)
	stdlog.SetOutput(strangers{logger.WithName("net")})
	config, inCluster, err := loadConfig()
	if err != nil {
		return err
	}
	logger.Info("starting", "version", version.String(), "server", config.Host, "inCluster", inCluster, "namespace", o.Namespace)
	for _, value := range o.TLS.Ignored {
		logger.Info("a value of the TLS profile is not known, and ignored", "value", value)
	}
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
	dns, err := o.dnsPeers()
	if err != nil {
		return err
	}
	w := wiring{config: config, tls: o.TLS, namespaces: o.watched(), allowPrivate: o.AllowPrivateEndpoints, dns: dns, settings: engine.Settings{
		OperatorNamespace: o.Namespace, ClusterDomain: o.ClusterDomain, HashKey: key, Workers: o.Workers, GatewayImage: o.GatewayImage,
	}}
	if !inCluster {
		// A laptop reaches neither pods nor Services: the API server forwards.
		w.settings.ProbeTransport, w.settings.Forwarded = forwarded(config), true
	}
	if err := w.setup(mgr); err != nil { //nolint:contextcheck // controller-runtime gives it no context
		return err
	}
	gate := newCompatibility(mgr.GetCache(), mgr.GetEventRecorder(eventSource), logger.WithName("compatibility"), func(ctx context.Context) error {
		return w.runCompatibility(ctx, logger.WithName("audit"))
	})
	if len(w.namespaces) > 0 {
		gate.namespaces = append([]string{o.Namespace}, w.namespaces...)
	}
	if err := errors.Join(mgr.Add(gate), watchLevel(mgr, o, level, logger), serveWebhook(mgr, o, logger)); err != nil {
		return fmt.Errorf("add to the manager: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// watchLevel lets a ConfigMap set the level of the log.
func watchLevel(mgr manager.Manager, o Options, level uberzap.AtomicLevel, logger logr.Logger) error {
	if o.LogConfigMap.Name == "" {
		return nil
	}
	clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return mgr.Add(&levelWatcher{client: clientset, source: o.LogConfigMap, level: level, log: logger.WithName("logging")})
}

// serveWebhook serves the validating webhook. A standby does as well: the API server asks any of them.
func serveWebhook(mgr manager.Manager, o Options, logger logr.Logger) error {
	if !o.EnableWebhook {
		return nil
	}
	server := mgr.GetWebhookServer()
	webhook.Register(server, mgr.GetScheme(), o.Policy, logger)
	return mgr.AddReadyzCheck("webhook", server.StartedChecker())
}

// eventSource is what the operator's events say that they come from.
const eventSource = "mcp-operator"

// wiring is what the controllers are made of.
type wiring struct {
	config   *rest.Config
	tls      TLSProfile
	settings engine.Settings
	// namespaces are those to act in; none means all.
	namespaces []string
	// allowPrivate lets the endpoints of MCPTools be at private addresses.
	allowPrivate bool
	// dns are the pods that answer DNS; none means anybody.
	dns []networkingv1.NetworkPolicyPeer
}

// setup adds the controllers of our own API to a manager.
func (w wiring) setup(mgr manager.Manager) error {
	agents, err := w.agents(mgr)
	if err != nil {
		return err
	}
	return errors.Join(w.reconciler(mgr).SetupWithManager(mgr), w.tools(mgr).SetupWithManager(mgr), agents.SetupWithManager(mgr))
}

func (w wiring) reconciler(mgr manager.Manager) *engine.Reconciler {
	reconciler := &engine.Reconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(eventSource),
		TLSProfile: w.tls.Apply, TLSEnvVars: w.tls.Variables,
	}
	reconciler.Configure(w.settings)
	return reconciler
}

// runCompatibility runs the controller of the compatibility API until ctx ends. It has a manager, and so caches, of its own: they end
// with it.
func (w wiring) runCompatibility(ctx context.Context, audit logr.Logger) error {
	options, err := managerOptions(w.namespaces)
	if err != nil {
		return err
	}
	options.NewCache = func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		inner, err := cache.New(config, o)
		return endingCache{Cache: inner, end: ctx.Done()}, err
	}
	options.Metrics = metricsserver.Options{BindAddress: "0"} // the registry is one for the process: the other manager serves it
	options.HealthProbeBindAddress = "0"
	options.Controller = ctrlconfig.Controller{SkipNameValidation: new(true)} // it may start again
	mgr, err := ctrl.NewManager(w.config, options)
	if err != nil {
		return fmt.Errorf("make the manager of the compatibility API: %w", err)
	}
	reconciler := w.reconciler(mgr)
	reconciler.Speak(sigserver.Dialect{Audit: audit})
	if err := reconciler.SetupWithManager(mgr); err != nil { //nolint:contextcheck // controller-runtime gives it no context
		return err
	}
	defer reconciler.Leave()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the compatibility API: %w", err)
	}
	return nil
}

// managerOptions are those of every manager. Without namespaces it acts in all.
func managerOptions(namespaces []string) (ctrl.Options, error) {
	scheme, err := Scheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	cacheOptions, err := controller.CacheOptions()
	if err != nil {
		return ctrl.Options{}, err
	}
	for _, namespace := range namespaces {
		if cacheOptions.DefaultNamespaces == nil {
			cacheOptions.DefaultNamespaces = map[string]cache.Config{}
		}
		cacheOptions.DefaultNamespaces[namespace] = cache.Config{}
	}
	return ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions,
		// Reads wait until the cache saw our own writes, so that nothing is written twice. controller-runtime cannot do that for
		// a cache of several namespaces: there a write may be repeated, and is refused by its precondition.
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(len(namespaces) < 2)}},
		GracefulShutdownTimeout: new(20 * time.Second),
	}, nil
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
	options, err := managerOptions(o.watched())
	if err != nil {
		return nil, err
	}
	maps.Copy(options.Cache.ByObject, compatibilityCache())
	options.Metrics = metricsOptions(o)
	options.WebhookServer = ctrlwebhook.NewServer(webhookOptions(o))
	options.HealthProbeBindAddress = o.HealthAddress
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = o.LeaderElect, true
	options.LeaderElectionID, options.LeaderElectionNamespace = LeaseName, o.Namespace
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", synced(mgr.GetCache())))
}

// requireCRD says plainly what a new user forgets.
func requireCRD(mapper apimeta.RESTMapper) error {
	for _, kind := range []string{"MCPServer", "MCPTool", "MCPAgent"} {
		_, err := mapper.RESTMapping(mcpv1alpha1.GroupVersion.WithKind(kind).GroupKind(), mcpv1alpha1.GroupVersion.Version)
		if apimeta.IsNoMatchError(err) {
			return fmt.Errorf("the CustomResourceDefinition %ss.mcp.operator is not installed: run kubectl apply -k config/crds", strings.ToLower(kind))
		}
		if err != nil {
			return fmt.Errorf("ask the API server for %ss: %w", kind, err)
		}
	}
	return nil
}
