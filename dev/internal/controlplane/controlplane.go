//go:build linux

// Package controlplane describes etcd, the API server, the controller manager and the scheduler as
// they run in this cluster: on the machine itself, in its own network namespace.
package controlplane

import (
	"fmt"
	"os"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/process"
)

// Names of the components, in the order in which they start.
const (
	Etcd      = "etcd"
	APIServer = "kube-apiserver"
	Manager   = "kube-controller-manager"
	Scheduler = "kube-scheduler"
)

// Options are what a user may add.
type Options struct {
	// APIServerArgs and ManagerArgs come last on the command line, so they win.
	APIServerArgs, ManagerArgs []string
}

// Port is a TCP port that a component listens on.
type Port struct {
	Component, Host string
	Number          int
}

// Ports are all that the control plane takes on the machine.
func Ports() []Port {
	return []Port{
		{Etcd, "127.0.0.1", layout.EtcdPort},
		{Etcd, "127.0.0.1", layout.EtcdPeerPort},
		{APIServer, layout.HostIP, layout.APIServerPort},
		{Manager, "127.0.0.1", layout.ManagerPort},
		{Scheduler, "127.0.0.1", layout.SchedulerPort},
	}
}

// Specs are the four daemons in the order in which they start.
func Specs(l layout.Layout, o Options) []process.Spec {
	spec := func(name string, args ...string) process.Spec {
		return process.Spec{Name: name, Path: l.Bin(name), Args: args}
	}
	return []process.Spec{
		spec(Etcd, etcdArgs(l)...),
		spec(APIServer, append(apiServerArgs(l), o.APIServerArgs...)...),
		spec(Manager, append(managerArgs(l), o.ManagerArgs...)...),
		spec(Scheduler, schedulerArgs(l)...),
	}
}

// Prepare makes etcd's folder; etcd insists that nobody else can read it.
func Prepare(l layout.Layout) error {
	if err := os.MkdirAll(l.Etcd(), 0o700); err != nil {
		return fmt.Errorf("create etcd's folder: %w", err)
	}
	return nil
}

func etcdArgs(l layout.Layout) []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", layout.EtcdPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", layout.EtcdPeerPort)
	return []string{
		"--name=default", "--data-dir=" + l.Etcd(),
		// Test data: a crash of the machine may cost it, a crash of a process does not.
		"--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		"--quota-backend-bytes=4294967296", "--log-level=warn",
	}
}

func apiServerArgs(l layout.Layout) []string {
	return []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", layout.EtcdPort),
		"--bind-address=" + layout.HostIP, fmt.Sprintf("--secure-port=%d", layout.APIServerPort), "--advertise-address=" + layout.HostIP,
		"--tls-cert-file=" + l.PKI("apiserver.crt"), "--tls-private-key-file=" + l.PKI("apiserver.key"), "--client-ca-file=" + l.PKI("ca.crt"),
		"--kubelet-client-certificate=" + l.PKI("apiserver-kubelet-client.crt"), "--kubelet-client-key=" + l.PKI("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + l.PKI("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--service-account-key-file=" + l.PKI("sa.pub"), "--service-account-signing-key-file=" + l.PKI("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--requestheader-client-ca-file=" + l.PKI("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + l.PKI("front-proxy-client.crt"), "--proxy-client-key-file=" + l.PKI("front-proxy-client.key"),
		// The API server reaches pods itself; it runs no kube-proxy of its own.
		"--enable-aggregator-routing=true",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
	}
}

func managerArgs(l layout.Layout) []string {
	config := l.PKI("controller-manager.kubeconfig")
	return []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", layout.ManagerPort), "--leader-elect=false",
		"--enable-hostpath-provisioner=true",
		// The defaults (20 requests a second) are what a mass test would measure otherwise.
		"--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + l.PKI("sa.key"), "--root-ca-file=" + l.PKI("ca.crt"),
		"--cluster-signing-cert-file=" + l.PKI("ca.crt"), "--cluster-signing-key-file=" + l.PKI("ca.key"),
		"--requestheader-client-ca-file=" + l.PKI("front-proxy-ca.crt"), "--controllers=*,bootstrapsigner,tokencleaner",
	}
}

func schedulerArgs(l layout.Layout) []string {
	config := l.PKI("scheduler.kubeconfig")
	return []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", layout.SchedulerPort),
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}
}
