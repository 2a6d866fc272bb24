// Package layout says where everything of the local cluster is: the files in the state folder,
// the few fixed paths outside of it, and every address, port and interface name.
// It reads and writes nothing.
package layout

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Addresses. The machine and the nodes share Network; pods and Services have ranges of their own.
// None of them has a route to the world.
const (
	Network     = "10.89.0.0/24"
	HostIP      = "10.89.0.1"
	PodCIDR     = "10.244.0.0/16"
	ServiceCIDR = "10.96.0.0/16"
	// APIServiceIP is the address of the Service "kubernetes": the first of ServiceCIDR.
	APIServiceIP = "10.96.0.1"
	DNSServiceIP = "10.96.0.10"
	// SimulatedPodCIDR and SimulatedNodeIP are what KWOK tells about pods and nodes that do not exist.
	SimulatedPodCIDR = "10.200.0.0/16"
	SimulatedNodeIP  = "10.89.0.250"
)

// MaxNodes is what fits beside HostIP in Network and in the names of interfaces.
const MaxNodes = 9

// Ports. Only the API server listens on HostIP, where pods reach it; the others listen on 127.0.0.1,
// on numbers that no usual installation takes.
const (
	APIServerPort = 6443
	EtcdPort      = 12379
	EtcdPeerPort  = 12380
	ManagerPort   = 12257
	SchedulerPort = 12259
	KwokPort      = 12247
)

// Names of what is made outside the state folder. All begin with "mcpdev".
const (
	// SwitchNetNS is the network namespace that holds the bridge between machine and nodes, so that
	// the machine's own firewall rules for bridged or forwarded packets never see the cluster's.
	SwitchNetNS = "mcpdev-switch"
	Bridge      = "br0"
	// HostLink is the machine's end of the cable to the bridge; it carries HostIP.
	HostLink = "mcpdev0"
	// RouteProtocol marks each route of ours in the machine's table (an unassigned number, see
	// /etc/iproute2/rt_protos), so that no other is ever touched.
	RouteProtocol = 89
	// RunDir holds sockets and containerd's state: paths there are short enough for Unix sockets.
	RunDir = "/run/mcpdev"
	// VolumeLink is where the controller manager insists to put hostpath volumes: a link into the state folder.
	VolumeLink = "/tmp/hostpath_pv"
	// RealNodeLabel tells real nodes from simulated ones.
	RealNodeLabel = "devcluster/real"
	// PauseImage and CoreDNSImage are the images the cluster itself needs.
	PauseImage   = "devcluster/pause:1"
	CoreDNSImage = "devcluster/coredns:1"
)

// NodeName is the Kubernetes name of node i, which counts from 1.
func NodeName(i int) string { return fmt.Sprintf("node%d", i) }

// NodeIP is the address of node i.
func NodeIP(i int) string { return fmt.Sprintf("10.89.0.%d", 10+i) }

// NodePodCIDR is the range that the pods of node i get their addresses from.
func NodePodCIDR(i int) string { return fmt.Sprintf("10.244.%d.0/24", i) }

// NodeNetNS is the network namespace of node i.
func NodeNetNS(i int) string { return "mcpdev-" + NodeName(i) }

// NodeLink is the bridge's end of the cable to node i.
func NodeLink(i int) string { return "to-" + NodeName(i) }

// NodeCgroup is the cgroup, below the root of each hierarchy, that holds the pods of node i.
func NodeCgroup(i int) string { return "mcpdev-" + NodeName(i) }

// APIServerURL is where every client finds the API server.
func APIServerURL() string { return "https://" + net.JoinHostPort(HostIP, strconv.Itoa(APIServerPort)) }

// Layout is the state folder.
type Layout struct{ Dir string }

// Default is the state folder that is used when none is given: $DEVCLUSTER_DIR, else
// mcp-operator-devcluster in the user's cache folder.
func Default() string {
	if d := os.Getenv("DEVCLUSTER_DIR"); d != "" {
		return d
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	return filepath.Join(home, ".cache", "mcp-operator-devcluster")
}

func (l Layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.Dir}, elem...)...)
}

// Bin is a built binary; Bin("") is their folder.
func (l Layout) Bin(name string) string { return l.path("bin", name) }

// CNIBin is the folder of the CNI plugins.
func (l Layout) CNIBin() string { return l.path("bin", "cni") }

// Assets is the folder that KUBEBUILDER_ASSETS may point to: etcd, kube-apiserver and kubectl.
func (l Layout) Assets() string { return l.path("assets") }

// BaseImages is the folder of the archives that the cluster itself needs.
func (l Layout) BaseImages() string { return l.path("images") }

// Images is the folder of the archives that `devcluster images` writes.
func (l Layout) Images() string { return l.path("images-out") }

// ImageCache holds what images are made of: binaries and installed npm packages.
func (l Layout) ImageCache() string { return l.path("images-cache") }

// PKI is a certificate, key or component's kubeconfig; PKI("") is their folder.
func (l Layout) PKI(name string) string { return l.path("pki", name) }

// Kubeconfig is the administrator's.
func (l Layout) Kubeconfig() string { return l.path("kubeconfig") }

// Etcd is etcd's data folder.
func (l Layout) Etcd() string { return l.path("etcd") }

// Volumes holds the data of PersistentVolumes.
func (l Layout) Volumes() string { return l.path("volumes") }

// Log is the log of a component; Log("") is their folder.
func (l Layout) Log(component string) string {
	if component == "" {
		return l.path("logs")
	}
	return l.path("logs", component+".log")
}

// Run is the folder of the pid files.
func (l Layout) Run() string { return l.path("run") }

// Lock is the file that is locked while a command changes binaries or the cluster.
func (l Layout) Lock() string { return l.path("lock") }

// ImagesLock is the file that is locked while images are built, which does not keep a cluster from
// coming up meanwhile.
func (l Layout) ImagesLock() string { return l.path("images.lock") }

// Record is the file that says what was made outside the state folder.
func (l Layout) Record() string { return l.path("cluster.json") }

// BuildRecord is the file that says which inputs each build step was last run for.
func (l Layout) BuildRecord() string { return l.path("build.json") }

// KwokStages is the file that tells KWOK how simulated nodes and pods behave.
func (l Layout) KwokStages() string { return l.path("kwok-stages.yaml") }

// Node is a path in the folder of node i.
func (l Layout) Node(i int, elem ...string) string {
	return l.path(append([]string{NodeName(i)}, elem...)...)
}

// NodeRun is a path in the runtime folder of node i, outside the state folder.
func NodeRun(i int, elem ...string) string {
	return filepath.Join(append([]string{RunDir, NodeName(i)}, elem...)...)
}

// ContainerdSocket is where the containerd of node i listens.
func ContainerdSocket(i int) string { return NodeRun(i, "containerd.sock") }

// OwnerFile names, outside the state folder, which state folder the running cluster has.
func OwnerFile() string { return filepath.Join(RunDir, "owner") }
