package mcpagent

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/observer"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/route"
)

const (
	// What is stored is carried over, after a restart of the operator or a change of all pods, until gateways answered, for at most this long.
	carryOver = 2 * time.Minute

	// tableGrace is how long gateways may take to serve a table that was just written.
	tableGrace = 10 * time.Second
)

// The words by which pods are diagnosed.
var (
	gatewaySubject = diagnose.Subject{
		Resources: "spec.gateway.resources", Security: "spec.gateway",
		Unready: "the gateway runs and is not ready; look at its container's log",
	}
	runtimeSubject = diagnose.Subject{
		Resources: "spec.runtime.resources", Security: "spec.runtime.podSecurity",
		Unready: "it runs and is not ready",
	}
)

// observePods says whether a pod of the gateway is ready, and if none is, why; and what is wrong with the agent's own workload.
func (s *scope) observePods(ctx context.Context) reconcile.Outcome {
	for _, look := range []struct {
		workload        *workload
		name, component string
		subject         diagnose.Subject
	}{
		{&s.gateway, desired.GatewayName(s.agent.Name), desired.ComponentGateway, gatewaySubject},
		{&s.runtime, desired.RuntimeName(s.agent.Name), desired.ComponentRuntime, runtimeSubject},
	} {
		if err := s.readWorkload(ctx, look.workload, look.name, look.component); err != nil {
			return reconcile.Retry(mcpv1alpha1.ReasonUnknown, err)
		}
		if look.workload.deployment != nil {
			look.workload.finding = look.subject.Workload(ctx, s.APIReader, &s.mounts, look.workload.deployment, look.workload.pods)
		}
	}
	s.seen = true
	status := &s.agent.Status
	status.Replicas, status.ReadyReplicas = 0, s.gateway.ready()
	if s.gateway.deployment == nil {
		message := "Waiting for the Deployment of the gateway to be created"
		if c := s.current(mcpv1alpha1.ConditionApplied); c.Status == metav1.ConditionFalse {
			message = "There is no Deployment of this agent's gateway: " + c.Message
		}
		return reconcile.Wait(mcpv1alpha1.ReasonInitializing, message, 0)
	}
	status.Replicas = s.gateway.deployment.Status.Replicas
	return s.availability()
}

// availability is the outcome of what was seen.
func (s *scope) availability() reconcile.Outcome {
	wanted, ready, finding := s.gateway.wanted(), s.gateway.ready(), s.gateway.finding
	switch {
	case wanted == 0:
		return reconcile.Unsettled(mcpv1alpha1.ReasonScaledToZero, "The gateway is scaled to 0 replicas", 0)
	case ready > 0:
		message := fmt.Sprintf("%d of %d pods of the gateway are ready", ready, wanted)
		if ready < wanted && finding.Reason != "" {
			message += "; " + finding.Message
		}
		if trouble := s.runtimeTrouble(); trouble != "" {
			message += "; the agent's own workload: " + trouble
		}
		out := reconcile.Done(mcpv1alpha1.ReasonAvailable, message)
		out.After = sooner(finding.After, s.runtime.finding.After)
		return out
	case finding.Reason != "":
		return reconcile.Unsettled(finding.Reason, finding.Message, finding.After)
	case s.wasAvailable():
		return reconcile.Unsettled(mcpv1alpha1.ReasonNotReady, "No pod of the gateway is ready", finding.After)
	}
	return reconcile.Wait(mcpv1alpha1.ReasonInitializing, "Waiting for pods of the gateway to become ready", finding.After)
}

// runtimeTrouble is what is wrong with the agent's own workload; empty if nothing is, or there is none.
func (s *scope) runtimeTrouble() string {
	if !desired.HasRuntime(s.agent) {
		return ""
	}
	return s.runtime.finding.Message
}

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// wasAvailable says whether pods were, or failed to be, ready before: then having none is a failure and not a beginning.
func (s *scope) wasAvailable() bool {
	was := s.stored(mcpv1alpha1.ConditionAvailable)
	return was.Status == metav1.ConditionTrue || was.Status == metav1.ConditionFalse && was.Reason != mcpv1alpha1.ReasonScaledToZero
}

// readWorkload reads a Deployment and its pods from the cache. A Deployment of somebody else counts as none.
func (s *scope) readWorkload(ctx context.Context, w *workload, name, component string) error {
	pods := &corev1.PodList{}
	selector := client.MatchingLabels(desired.AgentSelector(s.agent.Name, component))
	if err := s.Client.List(ctx, pods, client.InNamespace(s.agent.Namespace), selector); err != nil {
		return fmt.Errorf("list pods (%s) of MCPAgent %s: %w", component, client.ObjectKeyFromObject(s.agent), err)
	}
	for _, pod := range pods.Items {
		switch {
		case !diagnose.IsOver(&pod):
			w.pods = append(w.pods, pod)
		case !pod.DeletionTimestamp.IsZero():
			w.going++
		}
	}
	d, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: s.agent.Namespace, Name: name}
	err := s.Client.Get(ctx, key, d)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(d, s.agent) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Deployment %s: %w", key, err)
	}
	w.deployment = d
	return nil
}

// observeRoutes says whether all that is granted is served. It never asks a gateway: the observer does, and wakes the agent.
func (s *scope) observeRoutes(context.Context) reconcile.Outcome {
	if !s.seen {
		return reconcile.Keep(0) // there is no news of the pods, and they are not forgotten for that
	}
	pods := s.readyGateways()
	if err := s.tellObserver(pods); err != nil {
		return reconcile.Retry(mcpv1alpha1.ReasonUnknown, err)
	}
	s.answers = s.observer.Answers(s.agent.UID)
	newest, refusal, known := s.count()
	stored, status := s.stored(mcpv1alpha1.ConditionRouted), &s.agent.Status
	patience := s.patience(s.key())
	switch {
	case s.route.Table == nil || s.route.Table.Revision != status.TableRevision:
		return reconcile.Keep(0) // what is served is not what the specification asks for: Accepted or Applied tells why
	case len(pods) == 0:
		s.judge(nil)
		return reconcile.Wait(mcpv1alpha1.ReasonPending, "No pod of the gateway is ready to be asked", 0)
	case len(newest) > 0:
		return s.judge(newest)
	case known < len(pods) && stored.Reason != "" && patience > 0:
		return reconcile.Keep(patience)
	case refusal != "":
		return reconcile.Unsettled(mcpv1alpha1.ReasonTableRefused, "A gateway refuses the newest routing table and serves the one before: "+refusal, 0)
	}
	left := max(tableGrace-s.ageOfTable(), 0)
	if left > 0 && stored.Reason != "" && stored.Reason != mcpv1alpha1.ReasonPending {
		return reconcile.Keep(left)
	}
	if stored.Reason == "" {
		s.judge(nil)
	}
	return reconcile.Wait(mcpv1alpha1.ReasonPending, "No gateway serves the newest routing table yet", left)
}

// ageOfTable is for how long gateways could take the table over, as far as it is known: nobody says when it was written before a restart.
func (s *scope) ageOfTable() time.Duration {
	written := s.recall(s.key()).written
	if written.IsZero() {
		written = s.started
	}
	return time.Since(written)
}

// count sorts what the gateways said: the status of those that serve the newest table, why one refuses it, and how many are known.
func (s *scope) count() (newest []route.Heard, refusal string, known int) {
	revision, remembered := s.agent.Status.TableRevision, s.recall(s.key())
	// Which table was the one before is not known after a restart. Any may be, while gateways could be taking the newest over, and that of one
	// that refuses the newest.
	isRestarted, inTime := remembered.written.IsZero(), s.ageOfTable() < tableGrace
	for _, answer := range s.answers {
		if !answer.Known {
			continue
		}
		known++
		if answer.Err != nil || answer.Status == nil || answer.Status.Revision == "" {
			continue
		}
		switch {
		case answer.Status.Revision == revision:
			newest = append(newest, *answer.Status)
			s.serving++
		case remembered.isBefore(answer.Status.Revision, time.Now()) || isRestarted && (inTime || answer.Status.TableError != ""):
			s.serving++
		}
		if answer.Status.Revision != revision && answer.Status.TableError != "" {
			refusal = clean(answer.Status.TableError)
		}
	}
	s.newest = len(newest)
	if s.serving > 0 {
		s.remember(s.key(), func(m *memory) { m.heard = time.Now() })
	}
	return newest, refusal, known
}

// clean makes one short line of what a gateway said.
func clean(text string) string {
	const limit = 512
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(r rune) bool { return !strconv.IsPrint(r) || r == ' ' }), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

// judge writes the verdicts on all tools into the status, and sums them up.
func (s *scope) judge(newest []route.Heard) reconcile.Outcome {
	status := &s.agent.Status
	tools, served, problems := route.Effective(s.agent, s.route, newest)
	gaps, after := s.gaps(newest)
	problems = append(problems, gaps...)
	status.EffectiveTools, status.ToolCount, s.problems = tools, &served, problems
	if len(problems) > 0 {
		return reconcile.Unsettled(mcpv1alpha1.ReasonToolsUnavailable, strings.Join(problems, "; "), after)
	}
	for _, tool := range tools {
		if tool.Verdict == mcpv1alpha1.VerdictPending {
			const pending = "Not all that is granted is served yet; status.effectiveTools says what is pending, and why"
			return reconcile.Wait(mcpv1alpha1.ReasonPending, pending, after)
		}
	}
	message := fmt.Sprintf("%d tools are served", served)
	if cut := route.Cut(s.route, newest); len(cut) > 0 {
		message += "; more than a gateway takes of one server are offered by " + strings.Join(cut, ", ") + ": the rest is not served"
	}
	out := reconcile.Done(mcpv1alpha1.ReasonRouted, message)
	out.After = after
	return out
}

// tellObserver tells whom to ask for what.
func (s *scope) tellObserver(pods []probe.Pod) error {
	token, err := statusToken(s.MasterKey, s.agent.UID)
	if err != nil {
		return err
	}
	s.observer.Observe(observer.Agent{
		UID: s.agent.UID, Key: client.ObjectKeyFromObject(s.agent), Token: token, Revision: s.agent.Status.TableRevision, Pods: pods,
	})
	return nil
}

// readyGateways returns whom to ask.
func (s *scope) readyGateways() []probe.Pod {
	var pods []probe.Pod
	own := s.gateway.own()
	for i := range own {
		pod := &own[i]
		if !diagnose.IsReady(pod) || pod.Status.PodIP == "" {
			continue
		}
		address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(desired.GatewayHealthPort)))
		pods = append(pods, probe.Pod{UID: pod.UID, Name: pod.Name, Namespace: pod.Namespace, Address: address})
	}
	return pods
}
