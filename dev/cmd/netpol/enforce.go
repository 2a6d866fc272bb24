package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// registration is how long to wait for the kubelet to register the node, and between two looks.
const (
	registration = 60 * time.Second
	interval     = 500 * time.Millisecond
)

func run(ctx context.Context, cfg *options.KubeRouterConfig) error {
	rest, err := clientcmd.BuildConfigFromFlags(cfg.Master, cfg.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	npc, err := controller(ctx, cfg, client, pods, namespaces, policies)
	if err != nil {
		return err
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: npc.PodEventHandler, namespaces: npc.NamespaceEventHandler, policies: npc.NetworkPolicyEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	// Nobody asks for its health, but it blocks unless its heartbeats are read.
	health := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() {
		for range health {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	npc.Run(health, ctx.Done(), &running)
	return nil
}

// controller retries until the kubelet has registered the node: before that the policy controller
// refuses to start.
func controller(ctx context.Context, cfg *options.KubeRouterConfig, client kubernetes.Interface, pods, namespaces, policies cache.SharedIndexInformer) (*netpol.NetworkPolicyController, error) {
	tables, sets, err := netpol.NewIPTablesHandlers(cfg)
	if err != nil {
		return nil, fmt.Errorf("prepare iptables and ipset: %w", err)
	}
	var ipsetLock sync.Mutex
	for deadline := time.Now().Add(registration); ; {
		npc, err := netpol.NewNetworkPolicyController(client, cfg, pods, policies, namespaces, &ipsetLock, tables, sets)
		if err == nil {
			return npc, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("start the policy controller: %w", err)
		}
		klog.Infof("not yet: %v", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(interval):
		}
	}
}
