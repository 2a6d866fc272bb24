package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// forwarded returns transports that reach pods through the API server (the subresource pods/portforward), for an operator
// that runs outside the cluster. The in-cluster role does not have that right.
func forwarded(config *rest.Config) func(probe.Server, *probe.Pod) *http.Transport {
	return func(_ probe.Server, pod *probe.Pod) *http.Transport {
		return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			if pod == nil {
				return nil, errors.New("a Service cannot be reached by port-forwarding")
			}
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, fmt.Errorf("port of %q: %w", address, err)
			}
			return forward(ctx, config, pod, port)
		}}
	}
}

// forward opens one connection to a port of a pod. The handshake with the API server cannot be cancelled: when ctx ends
// first, the connection is closed as soon as it is there.
func forward(ctx context.Context, config *rest.Config, pod *probe.Pod, port string) (net.Conn, error) {
	type opened struct {
		conn net.Conn
		err  error
	}
	result := make(chan opened, 1)
	go func() {
		conn, err := openForward(config, pod, port)
		result <- opened{conn, err}
	}()
	select {
	case r := <-result:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-result; r.conn != nil {
				_ = r.conn.Close() // nobody waits for it any more
			}
		}()
		return nil, ctx.Err()
	}
}

func openForward(config *rest.Config, pod *probe.Pod, port string) (net.Conn, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	path := base.JoinPath("/api/v1/namespaces", url.PathEscape(pod.Namespace), "pods", url.PathEscape(pod.Name), "portforward")
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(path, config)
	if err != nil {
		return nil, fmt.Errorf("forward to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	session, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, fmt.Errorf("forward to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := session.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forward to pod %s/%s: %w", pod.Namespace, pod.Name, err), session.Close())
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := session.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forward to pod %s/%s: %w", pod.Namespace, pod.Name, err), session.Close())
	}
	conn := &forwardedConn{Stream: data, session: session}
	go conn.watch(failures)
	return conn, nil
}

// forwardedConn is one forwarded connection.
type forwardedConn struct {
	httpstream.Stream

	session httpstream.Connection
	close   sync.Once
}

// watch ends the connection when the kubelet says that it cannot reach the port.
func (c *forwardedConn) watch(failures httpstream.Stream) {
	_ = failures.Close() // we only read from it
	message, err := io.ReadAll(io.LimitReader(failures, 1024))
	if err != nil || len(message) > 0 {
		_ = c.Close() // the reader sees the end
	}
}

func (c *forwardedConn) Close() error {
	var err error
	c.close.Do(func() { err = errors.Join(c.Reset(), c.session.Close()) })
	return err
}

func (c *forwardedConn) LocalAddr() net.Addr  { return forwardedAddr{} }
func (c *forwardedConn) RemoteAddr() net.Addr { return forwardedAddr{} }

// Deadlines are not supported by the stream; every probe is bounded by its context, which closes the connection.

func (c *forwardedConn) SetDeadline(time.Time) error      { return nil }
func (c *forwardedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *forwardedConn) SetWriteDeadline(time.Time) error { return nil }

type forwardedAddr struct{}

func (forwardedAddr) Network() string { return "portforward" }
func (forwardedAddr) String() string  { return "portforward" }
