package envtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/webhook"
)

const pinned = "registry.example.com/team/server@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// guard starts the webhook with a policy, and lets the API server ask it about the namespace, as the manifest of config/webhook says.
func (f *fixture) guard(policy webhook.Policy, log logr.Logger) {
	f.t.Helper()
	local := envtest.WebhookInstallOptions{}
	if err := local.PrepWithoutInstalling(); err != nil {
		f.t.Fatal(err)
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: local.LocalServingHost, Port: local.LocalServingPort, CertDir: local.LocalServingCertDir})
	webhook.Register(server, scheme, policy, log)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(f.ctx)
	go func() { done <- server.Start(ctx) }()

	raw, err := os.ReadFile("../../config/webhook/validating-webhook.yaml")
	if err != nil {
		f.t.Fatal(err)
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(raw, config); err != nil {
		f.t.Fatal(err)
	}
	config.Name = f.namespace
	address := net.JoinHostPort(local.LocalServingHost, strconv.Itoa(local.LocalServingPort))
	for i := range config.Webhooks {
		hook := &config.Webhooks[i]
		url := "https://" + address + *hook.ClientConfig.Service.Path
		hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: local.LocalServingCAData}
		hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.namespace}}
	}
	f.create(config)
	f.t.Cleanup(func() {
		if err := f.client.Delete(context.WithoutCancel(f.ctx), config); err != nil {
			f.t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
		if err := local.Cleanup(); err != nil {
			f.t.Error(err)
		}
	})
}

// decisions collects the lines of the audit log.
type decisions struct {
	mu    sync.Mutex
	lines []string
}

func (d *decisions) logger() logr.Logger {
	return funcr.New(func(name, line string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.lines = append(d.lines, name+" "+line)
	}, funcr.Options{})
}

// of returns the lines about an object.
func (d *decisions) of(name string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []string
	for _, line := range d.lines {
		if strings.Contains(line, fmt.Sprintf("%q=%q", "mcpserver", name)) {
			found = append(found, line)
		}
	}
	return found
}

func TestTheAPIServerRefusesWhatThePolicyDoes(t *testing.T) {
	f := start(t, nil)
	audit := &decisions{}
	f.guard(webhook.Policy{
		Images: []string{"registry.example.com/team"}, RequireDigest: true, MaxStorageMounts: 1, RequiredLabels: []string{"owner"},
	}, audit.logger())
	ours := func(name string, change func(*mcpv1alpha1.MCPServer)) client.Object {
		server := f.server(name)
		server.Labels, server.Spec.Image = map[string]string{"owner": "team"}, pinned
		change(server)
		return server
	}
	theirs := func(name string, change func(*sigv1alpha1.MCPServer)) client.Object {
		server := f.sigServer(name)
		server.Labels, server.Spec.Source.ContainerImage.Ref = map[string]string{"owner": "team"}, pinned
		change(server)
		return server
	}
	agent := func(name, image, owner string) client.Object {
		a := &mcpv1alpha1.MCPAgent{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
			Spec: mcpv1alpha1.MCPAgentSpec{
				ServerRef: &mcpv1alpha1.ObjectName{Name: "demo"}, Auth: mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthNone},
			},
		}
		if owner != "" {
			a.Labels = map[string]string{"owner": owner}
		}
		if image != "" {
			a.Spec.Runtime = &mcpv1alpha1.AgentRuntime{Image: image}
		}
		return a
	}
	folder := func(path string) sigv1alpha1.StorageMount {
		empty := sigv1alpha1.StorageSource{Type: sigv1alpha1.StorageEmptyDir, EmptyDir: &corev1.EmptyDirVolumeSource{}}
		return sigv1alpha1.StorageMount{Path: path, Source: empty}
	}
	f.eventually("the webhook is asked", func() error {
		server := ours("asked", func(s *mcpv1alpha1.MCPServer) { s.Labels = nil })
		if err := f.client.Create(f.ctx, server, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("creating what is refused ends with %w", err)
		}
		return nil
	})
	const notListed = `is not on the allow list: it must begin with one of ["registry.example.com/team"]`
	tests := map[string]struct {
		server client.Object
		want   string
	}{
		"ours meets all":   {server: ours("good", func(*mcpv1alpha1.MCPServer) {})},
		"theirs meets all": {server: theirs("good-too", func(s *sigv1alpha1.MCPServer) { s.Spec.Config.Storage = []sigv1alpha1.StorageMount{folder("/a")} })},
		"ours from elsewhere": {
			server: ours("elsewhere", func(s *mcpv1alpha1.MCPServer) { s.Spec.Image = strings.Replace(pinned, "/team/", "/other/", 1) }), want: notListed,
		},
		"theirs from elsewhere": {server: theirs("elsewhere", func(s *sigv1alpha1.MCPServer) {
			s.Spec.Source.ContainerImage.Ref = strings.Replace(pinned, "/team/", "/teamwork/", 1)
		}), want: notListed},
		"ours by tag": {
			server: ours("tag", func(s *mcpv1alpha1.MCPServer) { s.Spec.Image = "registry.example.com/team/server:1" }), want: "must be given by digest",
		},
		"theirs by tag": {server: theirs("tag", func(s *sigv1alpha1.MCPServer) {
			s.Spec.Source.ContainerImage.Ref = "registry.example.com/team/server:1"
		}), want: "must be given by digest"},
		"ours with two volumes, however they are called": {server: ours("mounts", func(s *mcpv1alpha1.MCPServer) {
			s.Spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "token"}}}
			s.Spec.Config = &mcpv1alpha1.ServerConfig{Inline: &apiextensionsv1.JSON{Raw: []byte(`{}`)}}
		}), want: "volumes mounted: 2, at most 1 may be"},
		"theirs with two volumes": {server: theirs("mounts", func(s *sigv1alpha1.MCPServer) {
			s.Spec.Config.Storage = []sigv1alpha1.StorageMount{folder("/a"), folder("/b")}
		}), want: "volumes mounted: 2, at most 1 may be"},
		"an agent from elsewhere":     {server: agent("elsewhere", strings.Replace(pinned, "/team/", "/other/", 1), "team"), want: notListed},
		"an agent by tag":             {server: agent("tag", "registry.example.com/team/agent:1", "team"), want: "must be given by digest"},
		"an agent without a label":    {server: agent("unlabelled", pinned, ""), want: `label "owner" is required`},
		"an agent without a workload": {server: agent("endpoint", "", "team")},
		"an agent that meets all":     {server: agent("good", pinned, "team")},
		"ours without a label":        {server: ours("label", func(s *mcpv1alpha1.MCPServer) { s.Labels = nil }), want: `label "owner" is required`},
		"theirs without a label":      {server: theirs("label", func(s *sigv1alpha1.MCPServer) { s.Labels = nil }), want: `label "owner" is required`},
	}
	for name, tt := range tests {
		err := f.client.Create(f.ctx, tt.server)
		if tt.want == "" && err != nil || tt.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: creating ends with %v, want %q", name, err, tt.want)
		}
	}
	want := []string{fmt.Sprintf(`audit "level"=0 "msg"="webhook_decision" "mcpserver"="label" "namespace"=%q "apiGroup"="mcp.x-k8s.io" `+
		`"operation"="CREATE" "allowed"=false "reason"="label \"owner\" is required" "image"=%q`, f.namespace, pinned)}
	if got := audit.of("label"); len(got) != 2 || got[0] != want[0] && got[1] != want[0] {
		t.Errorf("the audit log says %q", got)
	}
}

func TestAnObjectThatIsEditedIsJudgedUnlessItIsBeingDeleted(t *testing.T) {
	f := start(t, nil)
	audit := &decisions{}
	server := f.sigServer("older")
	server.Finalizers = []string{"example.com/held"}
	f.create(server) // before there is a policy
	f.guard(webhook.Policy{MaxStorageMounts: -1, RequiredLabels: []string{"owner"}}, audit.logger())

	annotate := func(value string, options ...client.PatchOption) error {
		before := server.DeepCopy()
		server.Annotations = map[string]string{"example.com/edited": value}
		return f.client.Patch(f.ctx, server, client.MergeFrom(before), options...)
	}
	f.eventually("an edit is refused", func() error {
		if err := annotate("yes", client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("an edit ends with %w", err)
		}
		return nil
	})
	// What the operator writes is not judged.
	f.sigCondition("older", "Accepted", metav1.ConditionTrue, "Valid")

	if err := f.client.Delete(f.ctx, server); err != nil {
		t.Fatal(err)
	}
	if err := f.get(server, "older"); err != nil {
		t.Fatal(err)
	}
	before := server.DeepCopy()
	server.Finalizers = nil
	if err := f.client.Patch(f.ctx, server, client.MergeFrom(before)); err != nil {
		t.Errorf("an object that is being deleted cannot go: %v", err)
	}
	var operations []string
	for _, line := range audit.of("older") {
		_, rest, _ := strings.Cut(line, `"operation"=`)
		operation, _, _ := strings.Cut(rest, ` "reason"`)
		operations = append(operations, operation)
	}
	// About the object that is being deleted it was not even asked: it may go while no operator answers.
	if diff := cmp.Diff([]string{`"UPDATE" "allowed"=false`}, slices.Compact(operations)); diff != "" {
		t.Errorf("the audit log (-want +got)\n%s", diff)
	}
}
