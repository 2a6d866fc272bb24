package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcp-operator/mcp-operator/internal/operator"
)

// cluster is the cluster under test; set by connect.
var cluster struct {
	config  *rest.Config
	client  client.WithWatch
	kubectl string
}

// connect makes the clients, and waits a moment for an API server that is being started.
func connect(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // tests are never slowed down by themselves
	types, err := operator.Scheme()
	if err != nil {
		return err
	}
	if cluster.kubectl, err = findKubectl(kubeconfig); err != nil {
		return err
	}
	cluster.config = config
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := kubectl(ctx, "wait", "nodes", "--all", "--for=condition=Ready", "--timeout=1m"); err != nil {
		return fmt.Errorf("reach the cluster of %s: %w\n%s", kubeconfig, err, out)
	}
	if cluster.client, err = client.NewWithWatch(config, client.Options{Scheme: types}); err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	return nil
}

// kubectl runs kubectl as a user does, and returns what it prints to standard output. An error has what it wrote to stderr: of that
// nothing is compared, since kubectl complains there of any API that is not served at the moment, as metrics are while they start.
func kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, cluster.kubectl, args...)
	cmd.Env = os.Environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("kubectl %v: %w: %s", args, err, stderr.String())
	}
	return stdout.String(), err
}

// podURL is the address of a subresource of a pod.
func podURL(pod client.ObjectKey, subresource string) (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(cluster.config)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	return base.JoinPath("/api/v1/namespaces", pod.Namespace, "pods", pod.Name, subresource), nil
}

// execute runs a command in the first container of a pod and returns its output. An error has what it wrote to stderr.
func execute(ctx context.Context, pod client.ObjectKey, command ...string) (string, error) {
	address, err := podURL(pod, "exec")
	if err != nil {
		return "", err
	}
	options := &corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}
	query, err := scheme.ParameterCodec.EncodeParameters(options, corev1.SchemeGroupVersion)
	if err != nil {
		return "", fmt.Errorf("encode the command %q: %w", command, err)
	}
	address.RawQuery = query.Encode()
	executor, err := remotecommand.NewWebSocketExecutor(cluster.config, http.MethodGet, address.String())
	if err != nil {
		return "", fmt.Errorf("execute in pod %s: %w", pod, err)
	}
	var stdout, stderr bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return stdout.String(), fmt.Errorf("execute %q in pod %s: %w: %s", command, pod, err, stderr.String())
	}
	return stdout.String(), nil
}

// forward makes a port of a pod reachable here until ctx ends, and returns its address.
func forward(ctx context.Context, pod client.ObjectKey, port uint16) (string, error) {
	address, err := podURL(pod, "portforward")
	if err != nil {
		return "", err
	}
	dialer, err := portforward.NewSPDYOverWebsocketDialer(address, cluster.config)
	if err != nil {
		return "", fmt.Errorf("forward to pod %s: %w", pod, err)
	}
	ready, failed := make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		return "", fmt.Errorf("forward to pod %s: %w", pod, err)
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return "", fmt.Errorf("forward to pod %s: %w", pod, err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", fmt.Errorf("forward to pod %s: %w", pod, err)
	}
	return fmt.Sprintf("localhost:%d", ports[0].Local), nil
}
