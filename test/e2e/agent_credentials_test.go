package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRotatedCredentialIsUsedByTheNextCallsAndNoneFails(t *testing.T) {
	t.Parallel()
	f := start(t)
	api := f.petstore("api", "first", "second")
	credential := secret("key", "token", "first")
	f.create(credential)
	f.tool("find-pet", findPet(api, bearer()))
	a := f.agent("team", nil, "find-pet")
	a.awaitReady("find-pet")
	pods := namesOf(a.podsOf("gateway"))
	calling := a.keepCalling(a.caller(), "find-pet", `{"petId": 1}`, "-every", "20ms")
	sentBy := func(token string) bool {
		sent := api.requests("/v2/pet")
		return len(sent) > 20 && !slices.ContainsFunc(sent[len(sent)-20:], func(r asked) bool {
			return r.Headers.Get("Authorization") != digestOf("Bearer "+token)
		})
	}
	await(t, "calls carry the first token", podStart, func() string {
		if !sentBy("first") {
			return "they do not"
		}
		return ""
	})
	f.patch("key", credential, func() { credential.Data = map[string][]byte{"token": []byte("second")} })
	await(t, "calls carry the second token, of every replica", secretSoon, func() string {
		if !sentBy("second") {
			return "they do not"
		}
		return ""
	})
	calling.noneFailed()
	for name := range namesOf(a.podsOf("gateway")) {
		if !pods[name] {
			t.Errorf("a rotated credential replaced pods of the gateway: %s is new", name)
		}
	}
}

// Everything that anybody but the holder of a Secret can read is searched for what is in it, while calls succeed and fail.
func TestCredentialIsNowhereButInItsSecretAndAtItsEndpoint(t *testing.T) {
	t.Parallel()
	f := start(t)
	canary := "canary-" + strings.ToLower(rand.Text())
	api := f.petstore("api", "right")
	db := f.database("right")
	f.create(secret("key", "token", canary))
	held := &corev1.Secret{}
	f.patch("db-reader", held, func() { held.Data = map[string][]byte{"password": []byte(canary)} })
	f.tool("refused", findPet(api, bearer()))
	f.tool("echoed", echoTool(f.petstore("open")))
	f.tool("unreachable", findPet(&petstore{fixture: f, host: "nowhere." + f.namespace + ".svc.cluster.local"}, bearer()))
	wrong := f.tool("wrong-password", statement(db, "SELECT name FROM pets WHERE id = $1"))
	a := f.agent("team", nil, "refused", "echoed", "unreachable", "wrong-password")
	a.awaitReady("refused", "echoed")
	wrong.await("says that it cannot log in", agentSoon, says[*tool]("Verified", metav1.ConditionFalse, "CheckFailed"))

	a.letIn(a.caller(), "echoed", `{"delay": "0s"}`)
	a.fails("refused", `{"petId": 1}`, "401") // the credential was sent, and is not taken
	shown := map[string]string{}
	for name, arguments := range map[string]string{
		"refused": `{"petId": 1}`, "echoed": `{"delay": "0s"}`, "unreachable": `{"petId": 1}`, "wrong-password": `{"id": 1}`,
	} {
		out, err := a.call(name, arguments)
		if err != nil {
			out += err.Error()
		}
		shown["the answer of "+name] = out
	}
	if sent := api.requests("/v2"); len(sent) == 0 || sent[0].Headers.Get("Authorization") != digestOf("Bearer "+canary) {
		t.Errorf("the credential was not sent: %+v", sent)
	}
	for _, kind := range []string{
		"configmaps,services,pods,serviceaccounts", "roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io",
		"deployments,replicasets,poddisruptionbudgets", "networkpolicies,endpointslices", "mcptools,mcpagents,mcpservers", "events",
	} {
		shown[kind] = f.kubectl("get", kind, "--output=yaml", "--show-managed-fields")
	}
	shown["the Secret of sessions"] = f.kubectl("get", "secret", "team-session", "--output=yaml")
	for _, pod := range a.podsOf("gateway") {
		shown["the log of "+pod.Name] = f.kubectl("logs", pod.Name)
	}
	shown["the gateway's metrics"] = a.metrics()
	operator := f.operatorPod(corev1.Pod{})
	shown["the operator's log"] = (&fixture{t: t, namespace: operatorNamespace}).kubectl("logs", operator.Name)
	scraper := scraperOf(operator)
	scraper.token = f.metricsToken("prometheus", "mcp-operator-metrics-reader")
	status, metrics, err := scraper.get(t.Context())
	if err != nil || status != http.StatusOK {
		t.Fatalf("read the operator's metrics: %d %v", status, err)
	}
	shown["the operator's metrics"] = metrics
	for where, text := range shown {
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
			if strings.Contains(text, form) {
				t.Errorf("the credential is in %s:\n%s", where, strings.Join(linesWith(text, form), ""))
			}
		}
		if text == "" {
			t.Errorf("%s: there is nothing to search", where)
		}
	}
}

// metrics are those of one pod of the gateway.
func (a *runningAgent) metrics() string {
	a.t.Helper()
	body, err := page(a.t.Context(), "http://"+a.forward(a.gatewayPod(), 8081)+"/metrics")
	if err != nil {
		a.t.Fatal(err)
	}
	return body
}
