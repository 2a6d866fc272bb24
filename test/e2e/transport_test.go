package e2e

import (
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

const (
	nodeBinary       = "/usr/local/bin/node"
	everythingScript = "/app/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
)

//go:embed testdata/secure.js
var secure string

// scripted is a server of Node that runs a script of the test.
func scripted(name, script string) builder {
	return server(name).image("server-everything").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Command = []string{nodeBinary, "--eval", script}
	})
}

func TestServerWithSSEIsReadyAndItsEndpointIsItsEventStream(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("events").image("server-everything").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Transport, spec.Args = mcpv1alpha1.TransportSSE, []string{"sse"}
	}))
	ready := s.awaitReady(2 * readySoon)
	if want := s.address() + "/sse"; ready.Status.Endpoint != want {
		t.Errorf("endpoint %q, want %q", ready.Status.Endpoint, want)
	}
	if ready.Status.ToolCount == nil || *ready.Status.ToolCount != 13 || ready.Status.Sessions != mcpv1alpha1.SessionsStateful {
		t.Errorf("%v tools, sessions %s", ready.Status.ToolCount, ready.Status.Sessions)
	}

	s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Transport = mcpv1alpha1.TransportStreamableHTTP })
	s.await("asked by the other transport, says so", 2*readySoon, has(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "NotFound"))
	generation := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Args = []string{"streamableHttp"} })
	s.await("that speaks it -> Ready", 4*readySoon, readyAt(generation))
}

// certificate is a Secret as cert-manager makes it: the chain, the key, and the authority.
func certificate(name string, authority *mcptest.Authority, dnsName string) *corev1.Secret {
	issued := authority.Certificate(dnsName)
	var chain strings.Builder
	for _, raw := range issued.Certificate {
		chain.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
	}
	key, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	if err != nil {
		panic(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{
		"tls.crt": chain.String(), "ca.crt": authority.PEM,
		"tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}}
}

func TestServerWithHTTPSIsVerifiedByItsChainAndARotationReplacesNoPod(t *testing.T) {
	t.Parallel()
	f := start(t)
	ours, others := mcptest.NewAuthority(t, "ours"), mcptest.NewAuthority(t, "others")
	f.create(certificate("server-tls", ours, fmt.Sprintf("secure-svc.%s.svc.cluster.local", f.namespace)),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "trusted"}, StringData: map[string]string{"ca.crt": ours.PEM}})
	s := f.run(scripted("secure", secure).with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.TLS = &mcpv1alpha1.ServerTLS{CASecretRef: &mcpv1alpha1.SecretKey{ObjectName: mcpv1alpha1.ObjectName{Name: "trusted"}}}
		spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "server-tls"}, MountPath: "/tls"}}
		spec.Probes = &mcpv1alpha1.Probes{Readiness: &mcpv1alpha1.Probe{Path: "/healthz"}}
	}))
	ready := s.awaitReady(2 * readySoon)
	if want := strings.Replace(s.address(), "http:", "https:", 1) + "/mcp"; ready.Status.Endpoint != want {
		t.Errorf("endpoint %q, want %q", ready.Status.Endpoint, want)
	}
	pod := s.runningPod()

	trusted := &corev1.Secret{}
	f.patch("trusted", trusted, func() { trusted.Data["ca.crt"] = []byte(others.PEM) })
	s.await("another authority -> not Ready", 2*readySoon,
		has(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "TLSFailed", "not trusted"),
		has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonMCPEndpointUnavailable))
	f.patch("trusted", trusted, func() { trusted.Data["ca.crt"] = []byte(others.PEM + ours.PEM) })
	s.await("both authorities -> Ready", podStart, readyAt(1))
	if now := s.runningPod(); now != pod {
		t.Errorf("a rotation of the authority replaced the pod %s by %s", pod, now)
	}

	generation := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.TLS = &mcpv1alpha1.ServerTLS{InsecureSkipVerify: true} })
	s.await("no verification, said aloud -> Ready", readySoon, readyAt(generation),
		has(mcpv1alpha1.ConditionVerified, metav1.ConditionTrue, "Verified", "not verified"))
	await(t, "a Warning event says so too", podStart, func() string { return f.warned("secure", "InsecureTLS") })
}

// gatewayImage is the image that the installed operator runs Stdio servers with; without one the test is skipped.
func gatewayImage(t *testing.T) string {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := cluster.client.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: operatorName}, d); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, env := range c.Env {
			if env.Name == "MCP_OPERATOR_GATEWAY_IMAGE" && env.Value != "" {
				return env.Value
			}
		}
	}
	t.Skip("the installed operator has no MCP_OPERATOR_GATEWAY_IMAGE")
	return ""
}

// overStdio makes it a server of standard input and output.
func (b builder) overStdio(command ...string) builder {
	return b.with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Transport, spec.Command = mcpv1alpha1.TransportStdio, command
		spec.Resources = nil
	})
}

func TestServerOverStdioIsReadyAndItsToolsCanBeCalled(t *testing.T) {
	t.Parallel()
	image := gatewayImage(t)
	f := start(t)
	s := f.run(server("pipes").image("server-everything").overStdio(nodeBinary, everythingScript, "stdio"))
	ready := s.awaitReady(3 * readySoon) // a container more, and an interpreter
	if ready.Status.GatewayImage != image {
		t.Errorf("the bridge is of %q, want %q", ready.Status.GatewayImage, image)
	}
	if ready.Status.ToolCount == nil || *ready.Status.ToolCount < 10 {
		t.Errorf("%v tools", ready.Status.ToolCount)
	}
	caller := f.echo(echoPod("client", "sleep"))
	const call = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"e2e","version":"1"}}}`
	posts(t, caller, `"serverInfo"`, ready.Status.Endpoint, call)
	for _, pod := range s.pods() {
		for _, mount := range pod.Spec.Containers[0].VolumeMounts {
			if mount.MountPath == "/mcp-bridge" && !mount.ReadOnly {
				t.Error("the server can write to its bridge")
			}
		}
	}
}

func TestServerOverStdioWhoseProcessEndsOrIsSilentSaysSo(t *testing.T) {
	t.Parallel()
	gatewayImage(t)
	for name, tt := range map[string]struct{ script, reason, word string }{
		"ends":   {"process.exit(3)", "CrashLooping", "exit status 3"},
		"silent": {"setInterval(() => {}, 1000)", "NotReady", "has not answered MCP over its standard output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			s := f.run(server(name).image("server-everything").overStdio(nodeBinary, "--eval", tt.script))
			s.await("says what its process did", 12*readySoon,
				has(mcpv1alpha1.ConditionAvailable, metav1.ConditionFalse, tt.reason, tt.word),
				has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonDeploymentUnavailable))
			s.neverReady()
		})
	}
}
