// Package e2e shows the product on a real cluster: the operator is installed as config/default installs it, and runs real
// MCP servers in real pods, most of them written by nobody here.
//
// A promise in seconds is waited for with a deadline of five times as long, at least half a minute, and its real interval is
// logged. What must not happen is looked for in a watch, in every state that the API server ever told, and never by waiting
// a while. Calls that must not fail begin after a pod was seen to be answered: the network plugin learns of a new pod later
// than the kubelet says that it is ready, and rejects until then whom it does not know.
//
// Tests without t.Parallel disturb the whole cluster (they restart the operator, or drain a node): Go runs them first, one
// by one.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcp-operator/mcp-operator/internal/operator"
)

const (
	operatorNamespace = "mcp-operator-system"
	operatorName      = "mcp-operator"

	// atOnce is how many tests run at the same time: more would measure this machine and not the operator.
	atOnce = "4"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(listenerAddress); address != "" {
		os.Exit(listen(address))
	}
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, "limit the number of tests at once:", err)
		os.Exit(1)
	}
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // or the client complains of warnings that it cannot log
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// prepare connects to the cluster and installs the operator there.
func prepare() error {
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		return errors.New("KUBECONFIG is not set: run them by `make test-e2e`, which starts the local cluster, " +
			"or set it to a cluster that has the images of `make images` and may be changed at will")
	}
	if err := connect(kubeconfig); err != nil {
		return err
	}
	return install()
}

// install applies config/default and starts the operator anew, so that an image that was loaded under the same tag is used.
func install() error {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute) // each step has its own limit
	defer cancel()
	steps := [][]string{
		{"apply", "--kustomize=../../config/default"},
		// What tools are made of runs in this cluster, at private addresses.
		{"--namespace=" + operatorNamespace, "set", "env", "deployment/" + operatorName, "MCP_OPERATOR_ALLOW_PRIVATE_ENDPOINTS=true"},
		{"--namespace=" + operatorNamespace, "rollout", "restart", "deployment/" + operatorName},
		{"--namespace=" + operatorNamespace, "rollout", "status", "deployment/" + operatorName, "--timeout=2m"},
		{ // last: kubectl wait fails of one that has no conditions yet
			"wait", "customresourcedefinition/mcpservers.mcp.operator", "customresourcedefinition/mcptools.mcp.operator",
			"customresourcedefinition/mcpagents.mcp.operator", "--for=condition=Established", "--timeout=1m",
		},
	}
	for _, args := range steps {
		if out, err := kubectl(ctx, args...); err != nil {
			return fmt.Errorf("install the operator: %w\n%s\n%s", err, out, stateOfTheOperator(ctx))
		}
	}
	return awaitLeader(ctx)
}

// awaitLeader waits until the lease belongs to a pod that is there: a new operator is ready before it acts.
func awaitLeader(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		if err := cluster.client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operator.LeaseName}, lease); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		pods := &corev1.PodList{}
		if err := cluster.client.List(ctx, pods, client.InNamespace(operatorNamespace)); err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			holds := lease.Spec.HolderIdentity != nil && strings.HasPrefix(*lease.Spec.HolderIdentity, pod.Name)
			if holds && pod.DeletionTimestamp.IsZero() {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("no pod of the operator holds the lease: %w\n%s", err, stateOfTheOperator(ctx))
	}
	return nil
}

// stateOfTheOperator is what helps to see why it does not start.
func stateOfTheOperator(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var shown strings.Builder
	for _, args := range [][]string{
		{"get", "nodes,leases,pods", "--output=wide"},
		{"get", "events", "--sort-by=.metadata.creationTimestamp"},
		{"logs", "deployment/" + operatorName, "--tail=40"},
	} {
		out, err := kubectl(ctx, append([]string{"--namespace=" + operatorNamespace}, args...)...)
		fmt.Fprintf(&shown, "kubectl %s %v\n%s\n", strings.Join(args, " "), err, out)
	}
	return shown.String()
}

// findKubectl looks for kubectl: $KUBECTL, the PATH, and where the local cluster keeps its own, beside its kubeconfig.
func findKubectl(kubeconfig string) (string, error) {
	if path := os.Getenv("KUBECTL"); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	path := filepath.Join(filepath.Dir(kubeconfig), "assets", "kubectl")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("kubectl is neither in the PATH nor at %s: install it, or set KUBECTL to its path", path)
	}
	return path, nil
}
