package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

const metricsPort = 8443

// operatorPod waits for the operator's only pod to be ready, and returns it. except is the UID of one that is gone.
func (f *fixture) operatorPod(except corev1.Pod) corev1.Pod {
	f.t.Helper()
	var found corev1.Pod
	await(f.t, "the operator is ready", 3*podStart, func() string {
		list := &corev1.PodList{}
		err := cluster.client.List(f.t.Context(), list, client.InNamespace(operatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": operatorName})
		if err != nil {
			return err.Error()
		}
		for _, pod := range list.Items {
			if isReady(&pod) && pod.DeletionTimestamp.IsZero() && pod.UID != except.UID {
				found = pod
				return ""
			}
		}
		return fmt.Sprintf("of %d pods none is ready", len(list.Items))
	})
	return found
}

// scraper reads the metrics of an operator's pod, with a token or, if that is empty, without.
type scraper struct {
	pod   client.ObjectKey
	token string
}

func scraperOf(pod corev1.Pod) *scraper { return &scraper{pod: client.ObjectKeyFromObject(&pod)} }

// get forwards anew each time: one connection that is refused, by an operator that only starts, ends a forwarding.
func (s *scraper) get(ctx context.Context) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	address, err := forward(ctx, s.pod, metricsPort)
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} // its certificate is self-signed
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// series returns the lines of a metric whose labels contain all of these.
func (s *scraper) series(ctx context.Context, metric string, labels ...string) ([]string, error) {
	status, body, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("reading the metrics ends with status %d: %s", status, body)
	}
	var lines []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, metric+"{") && missing(line, labels) == nil {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines, nil
}

// metricsToken makes an account, gives it a role unless that is empty, and returns a token of it.
func (f *fixture) metricsToken(account, role string) string {
	f.t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	f.create(sa)
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.namespace, Name: account}},
		}
		if err := cluster.client.Create(f.t.Context(), binding); err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() {
			if err := cluster.client.Delete(context.Background(), binding); err != nil {
				f.t.Error(err)
			}
		})
		f.awaitRight(account)
	}
	request := &authenticationv1.TokenRequest{}
	if err := cluster.client.SubResource("token").Create(f.t.Context(), sa, request); err != nil {
		f.t.Fatalf("make a token of account %s: %v", account, err)
	}
	return request.Status.Token
}

// awaitRight waits until the API server knows that an account may read metrics: the operator remembers a refusal for half a minute.
func (f *fixture) awaitRight(account string) {
	f.t.Helper()
	user := fmt.Sprintf("system:serviceaccount:%s:%s", f.namespace, account)
	await(f.t, account+" may read metrics", podStart, func() string {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}}
		if err := cluster.client.Create(f.t.Context(), review); err != nil || !review.Status.Allowed {
			return fmt.Sprintf("%v, %+v", err, review.Status)
		}
		return ""
	})
}

func TestMetricsAreForWhoHasTheRoleAndForgetDeletedServers(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("measured"))
	s.awaitReady(readySoon)
	scraper := scraperOf(f.operatorPod(corev1.Pod{}))

	for account, want := range map[string]int{"": http.StatusUnauthorized, "nobody": http.StatusForbidden} {
		if scraper.token = ""; account != "" {
			scraper.token = f.metricsToken(account, "")
		}
		await(t, fmt.Sprintf("account %q gets status %d", account, want), readySoon, func() string { // rights are told by a watch
			if status, _, err := scraper.get(f.t.Context()); err != nil || status != want {
				return fmt.Sprintf("status %d, %v", status, err)
			}
			return ""
		})
	}

	scraper.token = f.metricsToken("prometheus", "mcp-operator-metrics-reader")
	ours := []string{`name="measured"`, fmt.Sprintf("namespace=%q", f.namespace)}
	want := []string{fmt.Sprintf(`mcpserver_condition_info{name="measured",namespace=%q,reason="Available",status="True",type="Ready"} 1`, f.namespace)}
	await(t, "the condition is told", readySoon, func() string { // a series is changed after the status is written
		lines, err := scraper.series(f.t.Context(), "mcpserver_condition_info", slices.Concat(ours, []string{`type="Ready"`})...)
		if diff := cmp.Diff(want, lines); err != nil || diff != "" {
			return fmt.Sprintf("%v (-want +got)\n%s", err, diff)
		}
		return ""
	})
	await(t, "handshakes are counted", readySoon, func() string {
		lines, err := scraper.series(f.t.Context(), "mcpserver_handshake_total", slices.Concat(ours, []string{`result="success"`})...)
		if err != nil || len(lines) != 1 {
			return fmt.Sprintf("%q, %v", lines, err)
		}
		return ""
	})

	f.kubectl("delete", "mcpserver", "measured")
	for _, metric := range []string{"mcpserver_condition_info", "mcpserver_handshake_total", "mcpserver_handshake_duration_seconds_count"} {
		await(t, "the series of "+metric+" are gone", 2*time.Second, func() string {
			lines, err := scraper.series(f.t.Context(), metric, ours...)
			if err != nil || len(lines) > 0 {
				return fmt.Sprintf("%q, %v", lines, err)
			}
			return ""
		})
	}
}

// Not parallel: it restarts the operator.
func TestRestartOfTheOperatorChangesNothing(t *testing.T) {
	f := start(t)
	servers := []*running{
		f.run(server("plain").replicas(2)),
		f.run(server("configured").with(inlineConfig)),
		f.run(server("stopped").replicas(0)),
		f.run(server("broken").echo("serve")),
	}
	servers[0].await("has two pods", podStart, readyAt(1), bothReady)
	servers[1].awaitReady(readySoon)
	servers[2].await("is stopped", podStart, phaseIs(mcpv1alpha1.PhaseScaledToZero))
	servers[3].await("is told to be no MCP server", podStart, has(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "NotMCP"))
	found := f.tool("find-pet", findPet(f.petstore("api"), nil))
	f.agent("team", granted("plain"), "find-pet").await("has all its pods", agentSoon, serves("plain_test_simple_text", "find-pet"),
		says[*agent]("Progressing", metav1.ConditionFalse, ""), says[*agent]("Routed", metav1.ConditionTrue, ""), func(object *agent) string {
			if object.Status.ReadyReplicas != 2 {
				return fmt.Sprintf("%d pods of its gateway are ready", object.Status.ReadyReplicas)
			}
			return ""
		})
	found.await("is verified by the gateway", agentSoon, says[*tool]("Verified", metav1.ConditionTrue, ""))
	token := f.metricsToken("prometheus", "mcp-operator-metrics-reader")
	old := f.operatorPod(corev1.Pod{})
	f.awaitRest(old, token)
	before := f.versionsAtRest(servers)
	if err := cluster.client.Delete(f.t.Context(), &old); err != nil {
		t.Fatal(err)
	}
	f.awaitRest(f.operatorPod(old), token, "plain", "configured", "broken")
	if diff := cmp.Diff(before, f.versions(servers)); diff != "" {
		t.Errorf("resource versions (-before +after the restart)\n%s", diff)
	}
}

// versionsAtRest waits until nothing of it was written for three seconds: what Kubernetes' own controllers tell of pods that are ready, as in
// the status of a Deployment and of a budget, comes a little later than that they are.
func (f *fixture) versionsAtRest(servers []*running) map[string]string {
	f.t.Helper()
	last, at := f.versions(servers), time.Now()
	await(f.t, "nothing is written any more", podStart, func() string {
		now := f.versions(servers)
		if diff := cmp.Diff(last, now); diff != "" {
			last, at = now, time.Now()
			return diff
		}
		if time.Since(at) < 3*time.Second {
			return "the last write may be of a moment ago"
		}
		return ""
	})
	return last
}

// versions returns the resource version of every server and child, and the UID of every pod.
func (f *fixture) versions(servers []*running) map[string]string {
	f.t.Helper()
	versions := map[string]string{}
	for _, s := range servers {
		object := &mcpv1alpha1.MCPServer{}
		f.read(s.name, object)
		versions["MCPServer "+s.name] = object.ResourceVersion
		for kind, child := range childrenOf(s.name) {
			if kind == "ConfigMap" && (object.Spec.Config == nil || object.Spec.Config.Inline == nil) {
				continue
			}
			f.read(child.GetName(), child)
			versions[kind+" "+child.GetName()] = child.GetResourceVersion()
		}
		for _, pod := range s.pods() {
			versions["Pod "+pod.Name] = string(pod.UID)
		}
	}
	others := f.kubectl("get", "mcpagents,mcptools,deployments,services,configmaps,secrets,serviceaccounts,networkpolicies,poddisruptionbudgets,"+
		"roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io",
		`--output=jsonpath={range .items[*]}{.kind} {.metadata.name}={.metadata.resourceVersion}{"\n"}{end}`)
	for line := range strings.Lines(others) {
		if object, version, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			versions[object] = version
		}
	}
	return versions
}

// awaitRest waits until an operator has asked these servers since it was started and has nothing more to do.
func (f *fixture) awaitRest(pod corev1.Pod, token string, asked ...string) {
	f.t.Helper()
	scraper := scraperOf(pod)
	scraper.token = token
	calm := 0
	await(f.t, "the operator has asked every server and is at rest", 3*podStart, func() string {
		if busy := f.busy(scraper, asked...); busy != "" {
			calm = 0
			return busy
		}
		if calm++; calm < 3 { // an answer may be between the prober and the queue
			return "it may have more to do"
		}
		return ""
	})
}

// busy says what the operator has still to do: a server that it has not asked since it started, or work in its queue.
func (f *fixture) busy(scraper *scraper, asked ...string) string {
	for _, name := range asked {
		lines, err := scraper.series(f.t.Context(), "mcpserver_handshake_total",
			fmt.Sprintf("name=%q", name), fmt.Sprintf("namespace=%q", f.namespace))
		// A pass in which no handshake was due counts as well, as skip.
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `result="skip"`) })
		if err != nil || len(lines) == 0 {
			return fmt.Sprintf("%s was not asked: %v", name, err)
		}
	}
	for _, controller := range []string{"mcpserver", "mcptool", "mcpagent"} {
		workers, err := scraper.series(f.t.Context(), "controller_runtime_active_workers", fmt.Sprintf("controller=%q", controller))
		if err != nil || len(workers) == 0 {
			return fmt.Sprintf("the controller %s does not work yet: %v", controller, err)
		}
		// A queue that has never held anything has no series.
		queued, err := scraper.series(f.t.Context(), "workqueue_depth", fmt.Sprintf("name=%q", controller))
		if err != nil {
			return err.Error()
		}
		for _, line := range slices.Concat(workers, queued) {
			if !strings.HasSuffix(line, " 0") {
				return line
			}
		}
	}
	return ""
}
