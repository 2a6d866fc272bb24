package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestContainerHasWhatTheSpecificationGivesItAndNothingElse(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"TOKEN": "token-of-the-secret"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"LEVEL": "level-of-the-configmap"}},
	)
	token := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "TOKEN"}
	all := &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}
	s := f.run(server("furnished").echo("serve").with(inlineConfig).with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}}}
		spec.Env = []corev1.EnvVar{
			{Name: "PLAIN", Value: "a plain value"},
			{Name: "FROM_SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: token}},
		}
		spec.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: all}}
	}))
	pod := s.runningPod()
	tests := []struct {
		name    string
		command []string
		want    []string // parts of the output, or of the error
		not     []string
		fails   bool
	}{
		{name: "the inline configuration is a file", command: []string{"cat", "/etc/mcp/config/config.json"}, want: []string{`{"log":"info"}`}},
		{name: "the Secret is a folder of files", command: []string{"cat", "/etc/mcp/secrets/keys/TOKEN"}, want: []string{"token-of-the-secret"}},
		{
			name: "the environment is what was asked for", command: []string{"env"},
			want: []string{
				"MCP_CONFIG=/etc/mcp/config\n", "HOME=/tmp\n", "PLAIN=a plain value\n",
				"FROM_SECRET=token-of-the-secret\n", "LEVEL=level-of-the-configmap\n",
			},
			not: []string{"FURNISHED_SVC"}, // the links of old: one variable for each Service of the namespace
		},
		{
			name: "the process is not root, has no capabilities, gains no privileges and is filtered", command: []string{"cat", "/proc/self/status"},
			want: []string{"Uid:\t65532\t65532", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n"},
		},
		{
			name: "the root is read-only, /tmp is not, and Secrets are", command: []string{"cat", "/proc/self/mountinfo"},
			want: []string{" / / ro,", " /tmp rw,", " /etc/mcp/secrets/keys ro,", " /etc/mcp/config ro,"},
		},
		{
			name: "there is no token of a service account", command: []string{"ls", "/var/run/secrets/kubernetes.io"},
			want: []string{"no such file or directory"}, fails: true,
		},
	}
	for _, tt := range tests {
		out, err := execute(f.t.Context(), pod, append([]string{"/echo"}, tt.command...)...)
		if (err != nil) != tt.fails {
			t.Errorf("%s: %v\n%s", tt.name, err, out)
			continue
		}
		if err != nil {
			out = err.Error()
		}
		if err := missing(out, tt.want); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, word := range tt.not {
			if strings.Contains(out, word) {
				t.Errorf("%s: %q is in %q", tt.name, word, out)
			}
		}
	}
}

func TestConfigMapIsMountedAndItsChangeReachesNewPods(t *testing.T) {
	t.Parallel()
	f := start(t)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"app.yaml": "level: info\n"}}
	f.create(settings)
	s := f.run(server("configured").echo("serve").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Config = &mcpv1alpha1.ServerConfig{ConfigMapRef: &mcpv1alpha1.ObjectName{Name: "settings"}, MountPath: "/opt/app"}
	}))
	reads := func(pod string) string {
		out, err := execute(f.t.Context(), f.key(pod), "/echo", "cat", "/opt/app/app.yaml")
		if err != nil {
			return err.Error()
		}
		return out
	}
	old := s.runningPod()
	if got := reads(old.Name); got != "level: info\n" {
		t.Errorf("the file says %q", got)
	}
	f.patch("settings", settings, func() { settings.Data["app.yaml"] = "level: debug\n" })
	await(t, "a new pod reads the new file", rollingSoon, func() string {
		pods := s.pods()
		if len(pods) != 1 || pods[0].Name == old.Name || !isReady(&pods[0]) {
			return "the old pod is there"
		}
		if got := reads(pods[0].Name); got != "level: debug\n" {
			return "the file says " + got
		}
		return ""
	})
}

func TestPausedServerIsObservedAndNotChanged(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("paused"))
	s.awaitReady(readySoon)
	f.kubectl("annotate", "mcpserver", "paused", mcpv1alpha1.AnnotationPaused+"=true")
	s.await("says that it is paused", podStart, has(mcpv1alpha1.ConditionPaused, metav1.ConditionTrue, mcpv1alpha1.ReasonPaused), readyAt(1))

	before := s.deployment().ResourceVersion
	generation := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Args = []string{"-http", ":8080"} })
	s.await("sees the edit and leaves it", podStart, func(server *mcpv1alpha1.MCPServer) string {
		if server.Status.ObservedGeneration != generation {
			return "the edit was not seen"
		}
		return has(mcpv1alpha1.ConditionProgressing, metav1.ConditionUnknown, mcpv1alpha1.ReasonPaused)(server)
	})
	if after := s.deployment().ResourceVersion; after != before {
		t.Errorf("the Deployment was written: its resource version was %s and is %s", before, after)
	}

	f.kubectl("annotate", "mcpserver", "paused", mcpv1alpha1.AnnotationPaused+"-")
	resumed := s.await("goes on", rollingSoon, readyAt(generation))
	if c := condition(resumed, mcpv1alpha1.ConditionPaused); c.Reason != "NotThere" {
		t.Errorf("it is still told to be paused: %+v", c)
	}
}
