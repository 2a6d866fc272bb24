package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestEveryReasonWhyNoPodIsReadyIsToldWithTheFactThatHelps(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		server   builder
		reason   string
		words    []string
		promised time.Duration
		restarts int32 // for so many nothing else is told
	}{
		"an image that is not there": {
			server: server("broken").with(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Image = "registry.invalid/team/absent:1" }),
			reason: mcpv1alpha1.ReasonImagePullFailed, words: []string{"registry.invalid/team/absent:1"}, promised: podStart,
		},
		"a container that exits again and again": {
			server: server("broken").echo("exit", "3"),
			reason: mcpv1alpha1.ReasonCrashLooping, words: []string{"exit code 3", "restarts: "}, promised: podStart,
		},
		"a container that wants more memory than it may have": {
			server: server("broken").echo("eat").with(func(spec *mcpv1alpha1.MCPServerSpec) {
				spec.Resources = &mcpv1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}}
			}),
			reason: mcpv1alpha1.ReasonOOMKilled, words: []string{"exit code 137", "spec.resources.limits.memory"}, promised: podStart,
		},
		"a pod that fits no node": {
			server: server("broken").with(func(spec *mcpv1alpha1.MCPServerSpec) {
				spec.Scheduling = &mcpv1alpha1.Scheduling{NodeSelector: map[string]mcpv1alpha1.LabelValue{"example.com/gpu": "yes"}}
			}),
			reason: mcpv1alpha1.ReasonUnschedulable, words: []string{"node", "selector"}, promised: podStart,
		},
		"a readiness probe that fails": {
			server: server("broken").with(func(spec *mcpv1alpha1.MCPServerSpec) {
				spec.Probes = &mcpv1alpha1.Probes{Readiness: &mcpv1alpha1.Probe{Path: "/not-there"}}
			}),
			reason: mcpv1alpha1.ReasonNotReady, words: []string{"readiness probe", "spec.probes.readiness", "/not-there"},
			promised: podStart + 10*time.Second, // it may start for 10 s
		},
		"a startup probe that fails": {
			server: server("broken").with(func(spec *mcpv1alpha1.MCPServerSpec) {
				spec.Probes = &mcpv1alpha1.Probes{Startup: &mcpv1alpha1.Probe{Path: "/not-there"}}
			}),
			reason: mcpv1alpha1.ReasonNotReady, words: []string{"startup probe", "spec.probes.startup", "/not-there"}, promised: podStart + 10*time.Second,
		},
		"a liveness probe that fails": {
			server: server("broken").with(func(spec *mcpv1alpha1.MCPServerSpec) {
				failing := &mcpv1alpha1.Probe{Path: "/not-there", PeriodSeconds: 1, FailureThreshold: 1}
				spec.Probes = &mcpv1alpha1.Probes{Readiness: failing, Liveness: failing}
				spec.TerminationGracePeriodSeconds = new(int64(1))
			}),
			reason: mcpv1alpha1.ReasonCrashLooping, words: []string{"liveness probe", "spec.probes.liveness", "/not-there"}, promised: podStart,
		},
		"a server that listens on another port": {
			server: server("broken").echo("serve", "-addr", ":9999"),
			reason: mcpv1alpha1.ReasonNotReady, words: []string{"spec.port"}, promised: podStart + 10*time.Second,
		},
		"a command that is not in the image": {
			server: server("broken").with(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Command = []string{"/not-there"} }),
			reason: mcpv1alpha1.ReasonConfigError, words: []string{"/not-there"}, promised: podStart, restarts: 2,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			s := f.run(tt.server)
			s.awaitSince(s.created, "says "+tt.reason, tt.promised,
				has(mcpv1alpha1.ConditionAvailable, metav1.ConditionFalse, tt.reason, tt.words...),
				has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonDeploymentUnavailable, tt.words...),
				phaseIs(mcpv1alpha1.PhaseFailed))
			await(t, "a Warning event says so too", podStart, func() string { return f.warned("broken", tt.words...) })
			s.keepsSaying(tt.reason, tt.restarts)
			s.neverReady()
		})
	}
}

// keepsSaying reports each state, up to so many restarts of its container, in which another reason was told than the one that is told by now.
func (s *running) keepsSaying(reason string, restarts int32) {
	s.t.Helper()
	if restarts == 0 {
		return
	}
	begin := len(s.states(0)) - 1
	await(s.t, fmt.Sprintf("its container is started %d times again", restarts), time.Minute, func() string { // after 10 s, and after 20 s
		for _, pod := range s.pods() {
			for _, c := range pod.Status.ContainerStatuses {
				if c.RestartCount >= restarts {
					return ""
				}
			}
		}
		return "it is not"
	})
	for _, server := range s.states(begin) {
		if c := condition(server, mcpv1alpha1.ConditionAvailable); c.Reason != reason {
			s.t.Errorf("%s said %s: %s, and not %s all the time", s.name, c.Reason, c.Message, reason)
		}
	}
}

func TestServerGoesOnByItselfWhenItsSecretAppears(t *testing.T) {
	t.Parallel()
	key := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "late"}, Key: "TOKEN"}}
	f := start(t)
	s := f.run(server("waiting").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: key}}
		spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "late"}}}
	}))
	says := func(words ...string) []check {
		return []check{
			has(mcpv1alpha1.ConditionAccepted, metav1.ConditionFalse, mcpv1alpha1.ReasonInvalid, words...),
			has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonConfigurationInvalid, words...),
		}
	}
	s.awaitSince(s.created, "says that the Secret is missing", 2*time.Second, says("Secret 'late'", "not found")...)
	await(t, "a Warning event says so too", podStart, func() string { return f.warned("waiting", "Secret 'late'") })

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, StringData: map[string]string{"OTHER": "x"}}
	f.create(secret)
	s.await("says that the key is missing", 2*time.Second, says("Secret 'late'", "no key 'TOKEN'")...)
	s.neverReady()

	f.patch("late", secret, func() { secret.StringData = map[string]string{"TOKEN": "x"} })
	s.await("the key appears -> Ready", readySoon, readyAt(1))
}

func TestServerGoesOnByItselfWhenAQuotaIsLifted(t *testing.T) {
	t.Parallel()
	f := start(t)
	lift := f.admitNoPods()
	s := f.run(server("forbidden"))
	s.await("says that pods are refused", podStart,
		has(mcpv1alpha1.ConditionAvailable, metav1.ConditionFalse, mcpv1alpha1.ReasonPodRejected, "exceeded quota: no-pods"),
		has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonDeploymentUnavailable, "exceeded quota: no-pods"))
	await(t, "a Warning event says so too", podStart, func() string { return f.warned("forbidden", "exceeded quota") })
	s.neverReady()

	lift()
	s.await("the quota is lifted -> Ready", 2*podStart, readyAt(1)) // the ReplicaSet tries again in growing intervals
}

func TestServerAsRootIsRefusedUnlessSaidAloudAndThenByTheNamespace(t *testing.T) {
	t.Parallel()
	f := start(t)
	asRoot := server("root").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.PodSecurity = &mcpv1alpha1.PodSecurity{RunAsUser: new(int64(0))}
	})
	asRoot.object.Namespace = f.namespace
	err := cluster.client.Create(f.t.Context(), asRoot.object)
	if err == nil || !strings.Contains(err.Error(), "runAsUser 0 is root and requires runAsNonRoot: false") {
		t.Errorf("the API server says %v", err)
	}

	s := f.run(server("root").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.PodSecurity = &mcpv1alpha1.PodSecurity{RunAsUser: new(int64(0)), RunAsNonRoot: new(false)}
	}))
	s.await("says that Pod Security refuses it", podStart,
		has(mcpv1alpha1.ConditionAvailable, metav1.ConditionFalse, mcpv1alpha1.ReasonPodRejected, "PodSecurity", "restricted", "runAsNonRoot"))
	s.neverReady()
}
