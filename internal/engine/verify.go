package engine

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/version"
)

const (
	// A stored verdict is carried over, after a restart of the operator or a change of pods, for at most this long.
	carryOver = 2 * time.Minute

	// trustRetry is when certificates to trust are read again that could not be.
	trustRetry = 10 * time.Second

	// inlineTimeout bounds a handshake on the reconcile worker. It is tried again after inlineRetry, which doubles up to inlineRetryLimit
	// where failures are counted.
	inlineTimeout, inlineRetry, inlineRetryLimit = 15 * time.Second, 10 * time.Second, 2 * time.Minute
)

// verify says whether the server answered MCP. It never dials: the prober does, and wakes the object.
func (s *scope) verify(ctx context.Context) reconcile.Outcome {
	if !s.seen {
		return reconcile.Keep(0) // there is no news of the pods, and they are not forgotten for that
	}
	if s.readyReplicas() == 0 {
		s.observe(nil, trust{})
		return reconcile.Wait(mcpv1alpha1.ReasonNoReadyPod, "No pod is ready to be asked", 0)
	}
	if s.prober == nil {
		return s.verifyInline(ctx)
	}
	trusted, err := s.trust(ctx, s.server)
	if err != nil {
		return untrusted(err)
	}
	s.observe(s.readyPods(), trusted)
	s.verdict = s.prober.Verdict(s.server.UID)
	out := judge(s.verdict, s.stored(mcpv1alpha1.ConditionVerified), s.server.Generation, time.Now())
	if s.verdict.Result != nil && out.IsDone() && out.Generation == s.server.Generation {
		s.learn(s.verdict.Result)
	}
	return s.warned(out)
}

// untrusted is the outcome while it is not known how to verify the server: the condition Accepted tells it, and pods are not asked by what
// they were not meant to be asked. What is up to the author wakes when it changes. All else is tried again, also where nothing else does
// that: while reconciling is paused.
func untrusted(err error) reconcile.Outcome {
	if _, invalid := errors.AsType[*ValidationError](err); invalid {
		return reconcile.Keep(0)
	}
	return reconcile.Keep(trustRetry)
}

// keepsSessions is said where a server was called stateless and is not: then nothing leads callers to the pod that their session lives on.
const keepsSessions = "; it hands out sessions although sessions is Stateless: use Auto"

// warned says with a good verdict that it is one about whoever answered, and of a server that is otherwise than its author says.
func (s *scope) warned(out reconcile.Outcome) reconcile.Outcome {
	if out.IsDone() && isUnverified(s.server) {
		out.Message += unverified
	}
	denied := s.server.Spec.Sessions == mcpv1alpha1.SessionsStateless && s.server.Status.Sessions == mcpv1alpha1.SessionsStateful
	isNow := out.Generation == 0 || out.Generation == s.server.Generation
	isSaid := strings.HasSuffix(s.stored(mcpv1alpha1.ConditionVerified).Message, keepsSessions) // stands through a rollout: the event tells it once
	if out.IsDone() && denied && (isNow || isSaid) {
		out.Message += keepsSessions
	}
	return out
}

// judge turns what the prober knows into the condition Verified. An answer counts for the generation that it was given for;
// until one is there for the current generation, an older one stands. While nothing is known, after a restart of the operator
// or a change of all pods, the stored verdict is carried over: a good one of any generation, a bad one of the current. A
// Service that did not answer stays so until it answered for the current generation.
func judge(v probe.Verdict, stored metav1.Condition, generation int64, now time.Time) reconcile.Outcome {
	stands := stored.Status == metav1.ConditionTrue
	carried := stands || stored.Reason == mcpv1alpha1.ReasonServiceUnreachable ||
		stored.Status == metav1.ConditionFalse && stored.ObservedGeneration == generation
	switch {
	case !v.Known && carried && now.Sub(v.Since) < carryOver:
		return reconcile.Keep(carryOver - now.Sub(v.Since))
	case !v.Known:
		return reconcile.Wait(mcpv1alpha1.ReasonProbing, "The first MCP handshake is under way", 0)
	case !v.Serving && v.Failure != nil:
		return reconcile.Unsettled(string(v.Failure.Reason), fmt.Sprintf("%s (pod: %s)", v.Failure.Message, v.FailedPod), 0)
	case v.ServiceFailure != nil:
		return reconcile.Unsettled(mcpv1alpha1.ReasonServiceUnreachable, ServiceUnreachable, 0)
	case v.Generation < generation && stands:
		return standing(v, stored)
	case v.Generation < generation && stored.Reason == mcpv1alpha1.ReasonServiceUnreachable:
		return reconcile.Keep(0)
	case v.Generation == 0 || v.Result == nil:
		return reconcile.Wait(mcpv1alpha1.ReasonProbing, "The first MCP handshake is under way", 0)
	}
	out := answered(v.Result)
	if n := v.Result.DroppedTools; n > 0 {
		out.Message += fmt.Sprintf("; %d of its tools have names or definitions that no client can use", n)
	}
	out.Message += silence(v, stored)
	out.Generation = v.Generation
	return out
}

// standing is what was verified of an older generation, with what is known of the pods now.
func standing(v probe.Verdict, stored metav1.Condition) reconcile.Outcome {
	answer, _ := parted(stored.Message)
	out := reconcile.Done(stored.Reason, answer+silence(v, stored))
	out.Generation = stored.ObservedGeneration
	return out
}

// silence tells, after what a pod answered, of those that do not; empty if all do. After a restart, what was told stands until all were asked.
func silence(v probe.Verdict, stored metav1.Condition) string {
	switch {
	case v.Failure == nil && v.Undecided && silentPods(stored) > 0:
		_, told := parted(stored.Message)
		return told
	case v.Failure == nil:
		return ""
	case v.Failed > 1:
		return fmt.Sprintf("; %d of its pods, among them %s, do not: %s", v.Failed, v.FailedPod, v.Failure.Message)
	}
	return fmt.Sprintf("; pod %s does not: %s", v.FailedPod, v.Failure.Message)
}

// parted returns what a message of Verified tells of a pod that answered, and what of those that do not.
func parted(message string) (answer, silence string) {
	message = strings.TrimSuffix(strings.TrimSuffix(message, keepsSessions), unverified)
	if at := silent.FindStringIndex(message); at != nil {
		return message[:at[0]], message[at[0]:]
	}
	return message, ""
}

// silent is how silence begins.
var silent = regexp.MustCompile(`; (?:pod \S+ does|(\d+) of its pods, among them \S+, do) not: `)

// silentPods is how many ready pods do not answer while others do, as Verified says: it outlives a restart, which what the prober knows
// does not.
func silentPods(verified metav1.Condition) int32 {
	found := silent.FindStringSubmatch(verified.Message)
	if verified.Status != metav1.ConditionTrue || found == nil {
		return 0
	}
	n, err := strconv.ParseInt(cmp.Or(found[1], "1"), 10, 32)
	if err != nil {
		return 0 // we wrote no such number
	}
	return int32(n)
}

// answered is the outcome of an answer: a handshake, or the demand for a token.
func answered(result *mcp.Result) reconcile.Outcome {
	if result.AuthRequired {
		return reconcile.Done(mcpv1alpha1.ReasonAuthRequired, "The server is up and asks callers for a Bearer token; its tools are not known")
	}
	return reconcile.Done(mcpv1alpha1.ReasonVerified, "Answered MCP "+result.ProtocolVersion)
}

// ServiceUnreachable tells no more, since whoever can add endpoints to a Service could else learn what they are.
const ServiceUnreachable = "A pod answers MCP, but not through the Service: " +
	"do other EndpointSlices belong to the Service, or does a NetworkPolicy keep the operator out?"

// observe tells the prober how the server is now.
func (s *scope) observe(pods []probe.Pod, trusted trust) {
	if s.prober != nil {
		s.prober.Observe(s.probed(pods, trusted))
	}
}

// probed is the server as the prober sees it.
func (s *scope) probed(pods []probe.Pod, trusted trust) probe.Server {
	service := s.serviceHost()
	host := service
	if s.settings.Forwarded {
		host = net.JoinHostPort("localhost", strconv.Itoa(int(desired.Port(s.server))))
	}
	attempts, counts := s.kind().Attempts(s.stale)
	server := probe.Server{
		UID: s.server.UID, Key: client.ObjectKeyFromObject(s.server), Generation: s.server.Generation,
		ResourceVersion: s.server.ResourceVersion, Attempts: attempts, CountAttempts: counts,
		Settled: s.isSettled(), Host: cmp.Or(s.server.Spec.HostHeader, host), Path: desired.Path(s.server), Pods: pods,
		SSE: s.server.Spec.Transport == mcpv1alpha1.TransportSSE, TLS: trusted.config, Trust: trusted.id,
	}
	// All that are not asked, also one that is ready and of which the Deployment does not know that yet.
	for i := range s.pods {
		uid := s.pods[i].UID
		if !slices.ContainsFunc(pods, func(asked probe.Pod) bool { return asked.UID == uid }) {
			server.Others = append(server.Others, uid)
		}
	}
	if !s.settings.Forwarded && s.MCPDialer == nil {
		server.Service = service
	}
	return server
}

// readyPods returns whom to ask. A replaced dialer asks the Service, which is all that it is told of.
func (s *scope) readyPods() []probe.Pod {
	if s.MCPDialer != nil {
		service := s.kind().ServiceName(s.server.Name)
		return []probe.Pod{{UID: types.UID(s.server.Name), Name: service, Address: s.serviceHost()}}
	}
	var pods []probe.Pod
	own := s.ownPods()
	for i := range own {
		pod := &own[i]
		if !diagnose.IsReady(pod) || pod.Status.PodIP == "" {
			continue
		}
		port := cmp.Or(podPort(pod), desired.Port(s.server))
		pods = append(pods, probe.Pod{
			UID: pod.UID, Name: pod.Name, Namespace: pod.Namespace, Address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))),
		})
	}
	return pods
}

// podPort is the port that a pod itself listens on: during a rollout it may differ from the specification's.
func podPort(pod *corev1.Pod) int32 {
	for _, c := range pod.Spec.Containers {
		if c.Name == desired.WorkloadName && len(c.Ports) > 0 {
			return c.Ports[0].ContainerPort
		}
	}
	return 0
}

// handshaker returns what does handshakes: the replaced dialer, or a real client.
func (r *Reconciler) handshaker() probe.Client {
	if r.MCPDialer != nil {
		return r.kind().Handshaker(dialed{r.MCPDialer})
	}
	return r.kind().Handshaker(&mcp.Client{Name: "mcp-operator", Version: ClientVersion})
}

// ClientVersion is the version that the operator tells in handshakes: that of the build.
var ClientVersion = version.String()

// directTransport dials addresses as they are, without proxies, and never this host or its links.
func (r *Reconciler) directTransport() *http.Transport {
	guard := mcp.Guard{Allow: mcp.AllowCluster}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return guard.DialContext(ctx, network, rooted(address))
	}}
	if r.TLSProfile != nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		r.TLSProfile(transport.TLSClientConfig)
	}
	return transport
}

// rooted ends a DNS name with a dot, so that no search domain is tried, which could lead elsewhere.
func rooted(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil || strings.HasSuffix(host, ".") {
		return address
	}
	return net.JoinHostPort(host+".", port)
}

// learn copies what a handshake told into the status, and notes what changed.
func (s *scope) learn(result *mcp.Result) {
	status := &s.server.Status
	if result.AuthRequired {
		// What was not told: if it is known of this generation it stands, of another program it does not.
		forget := s.learnedAt() != s.server.Generation
		if result.ProtocolVersion != "" {
			s.identify(result)
			s.capabilityChange = s.changeOf(result)
		} else if forget {
			status.ServerInfo, status.Sessions = nil, ""
		}
		if forget {
			status.Tools, status.ToolCount, status.PromptCount, status.ResourceCount = nil, nil, nil, nil
		}
		return
	}
	s.identify(result)
	status.Tools = nil
	for _, tool := range result.Tools {
		status.Tools = append(status.Tools, mcpv1alpha1.ToolStatus{Name: tool.Name, Digest: tool.Digest})
	}
	status.ToolCount, status.PromptCount, status.ResourceCount = result.ToolCount, result.PromptCount, result.ResourceCount
	s.capabilityChange = s.changeOf(result)
}

// identify copies what a server told of itself.
func (s *scope) identify(result *mcp.Result) {
	status, c := &s.server.Status, result.Capabilities
	status.ServerInfo = &mcpv1alpha1.MCPServerInfo{
		Name: result.Server.Name, Version: result.Server.Version,
		ProtocolVersion: result.ProtocolVersion, ProtocolVersions: slices.Clone(result.ProtocolVersions),
		Instructions: result.Instructions,
		Capabilities: &mcpv1alpha1.MCPServerCapabilities{
			Tools: c.Tools, Resources: c.Resources, Prompts: c.Prompts, Logging: c.Logging, Completions: c.Completions,
		},
	}
	status.Sessions = mcpv1alpha1.SessionsStateless
	if result.Stateful {
		status.Sessions = mcpv1alpha1.SessionsStateful
	}
}
