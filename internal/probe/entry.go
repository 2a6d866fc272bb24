package probe

import (
	"cmp"
	"crypto/tls"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// Server is what the scheduler has to know of an MCP server.
type Server struct {
	UID types.UID
	Key types.NamespacedName

	// Generation is the generation of the object.
	Generation int64

	// Settled says that the Deployment is observed at Generation and that no pod of an older one is left. Only probes that
	// begin and end settled count for the generation.
	Settled bool

	// Host is the Host header, Path the path of the MCP endpoint.
	Host, Path string

	// SSE says that the server speaks HTTP with SSE (2024-11-05), and Path is that of its event stream.
	SSE bool

	// TLS is how to verify the certificate of a server that speaks HTTPS; nil is plain HTTP. Trust names what it trusts:
	// servers are asked anew when that changes.
	TLS   *tls.Config
	Trust string

	// Pods are the ready pods.
	Pods []Pod

	// Others are the other pods that exist, ready or not: what is known of them is kept.
	Others []types.UID

	// Service is the host and port of the Service, asked once a generation; empty asks never.
	Service string

	// ResourceVersion is the version of the object; it is only told.
	ResourceVersion string

	// Attempts is how many handshakes of this generation failed in a row as far as was known before the scheduler was told of the server.
	Attempts int32

	// CountAttempts makes each failed handshake a change of the verdict.
	CountAttempts bool
}

// Pod is a ready pod.
type Pod struct {
	UID       types.UID
	Name      string
	Namespace string
	// Address is the IP address and port.
	Address string
}

// Verdict is what is known of a server. The zero value knows nothing.
type Verdict struct {
	// Known says that a probe of a present pod ended.
	Known bool

	// Since is when a server, or its present pods, became unknown; the zero time when known.
	Since time.Time

	// Serving says that at least one present pod answered MCP.
	Serving bool

	// Generation is the last one that the answer of a pod counted for which is ready and answers still; 0 if there is none.
	Generation int64

	// Result is what the last full probe learned; nil before.
	Result *mcp.Result

	// Failure is why a present pod does not answer, FailedPod its name; nil if all do. Failed is how many do not. While others answer, one
	// that just came does not count.
	Failure   *mcp.Error
	FailedPod string
	Failed    int32

	// Undecided says that of a present pod it is not known yet whether it answers.
	Undecided bool

	// ServiceFailure is why the Service does not answer though a pod does; nil if it does, was not asked, or is given time still.
	ServiceFailure *mcp.Error

	// Attempts is how many handshakes of this generation failed in a row; 0 unless they are counted.
	Attempts int32
}

// equal compares what is said, not the errors below it: those name a port that is another one each time.
func (v Verdict) equal(other Verdict) bool {
	return v.Known == other.Known && v.Since.Equal(other.Since) && v.Serving == other.Serving && v.Generation == other.Generation &&
		v.FailedPod == other.FailedPod && v.Failed == other.Failed && v.Undecided == other.Undecided && v.Attempts == other.Attempts &&
		sameFailure(v.Failure, other.Failure) && sameFailure(v.ServiceFailure, other.ServiceFailure) &&
		reflect.DeepEqual(v.Result, other.Result)
}

func sameFailure(a, b *mcp.Error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.Message == b.Message
}

type podState struct {
	streak

	pod    Pod
	since  time.Time   // when it came
	asked  endpoint    // what it is asked for
	tls    *tls.Config // how; of asked
	full   time.Time   // when all lists were read
	result *mcp.Result // what they said

	counted int64 // the last generation that its answer counted for
}

// answers says that the pod answered, and does still.
func (p *podState) answers() bool { return p.answered && !p.failed() }

// endpoint is what a pod is asked for.
type endpoint struct {
	scheme, host, path, trust string
	sse                       bool
}

func (s Server) endpoint() endpoint {
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
	}
	return endpoint{scheme: scheme, host: s.Host, path: s.Path, trust: s.Trust, sse: s.SSE}
}

// entry is one server's state. Its methods are pure but for the clock; the scheduler's lock guards it.
type entry struct {
	server  Server
	pods    map[types.UID]*podState
	running bool
	queued  [lanes]bool        // waits there
	timers  [lanes]*time.Timer // until it does; nil if there is none

	since     time.Time               // when it became unknown
	others    map[types.UID]*podState // of pods that exist and are not asked
	result    *mcp.Result
	resultAt  time.Time // when result was read
	nextRound time.Time // when the next healthy pod is asked

	current        time.Time // since when pods answer for the server's generation; zero while none does
	service        streak
	serviceCounted int64

	attempts int32 // that failed in a row
}

// stop ends the timers.
func (e *entry) stop() {
	for l, timer := range e.timers {
		if timer != nil {
			timer.Stop()
			e.timers[l] = nil
		}
	}
}

func (e *entry) observe(server Server) {
	if e.server.Service != server.Service || e.server.Generation != server.Generation {
		e.service = streak{}
	}
	if e.server.Generation != server.Generation && e.server.Generation != 0 {
		e.attempts = 0
	}
	e.server = server
	present := map[types.UID]*podState{}
	for _, pod := range server.Pods {
		state := cmp.Or(e.pods[pod.UID], e.others[pod.UID])
		if state == nil || state.pod != pod {
			state = &podState{pod: pod, since: time.Now()}
		}
		// A pod that answered is asked as before until the rollout is over: it serves the clients of the old generation.
		if wanted := server.endpoint(); state.asked != wanted && (server.Settled || !state.answered) {
			// One that failed starts anew, as if it had never answered: only an answer makes it good again.
			state.streak, state.full, state.asked = streak{answered: state.answered && state.failures == 0, slow: state.slow}, time.Time{}, wanted
			state.tls = server.TLS
		}
		present[pod.UID] = state
	}
	others := map[types.UID]*podState{}
	for _, uid := range server.Others {
		if state := cmp.Or(e.pods[uid], e.others[uid]); state != nil {
			others[uid] = state
		}
	}
	wasKnown := e.known()
	e.pods, e.others = present, others
	if wasKnown && !e.known() {
		e.since = time.Now()
	}
	e.noteCurrent(time.Now())
}

func (e *entry) known() bool {
	for _, p := range e.pods {
		if p.known() {
			return true
		}
	}
	return false
}

// generation is the last one that the answer of a pod counted for which is ready and answers still.
func (e *entry) generation() int64 {
	var last int64
	for _, p := range e.pods {
		if p.answers() {
			last = max(last, p.counted)
		}
	}
	return last
}

func (e *entry) sorted() []*podState {
	list := make([]*podState, 0, len(e.pods))
	for _, p := range e.pods {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *podState) int { return strings.Compare(a.pod.Name, b.pod.Name) })
	return list
}

func (e *entry) verdict() Verdict {
	v := Verdict{Known: e.known(), Generation: e.generation(), Result: e.result}
	if e.server.CountAttempts {
		v.Attempts = e.attempts
	}
	if !v.Known {
		v.Since = e.since
	}
	pods := e.sorted()
	v.Serving = slices.ContainsFunc(pods, (*podState).answers)
	for _, p := range pods {
		if !p.failed() || v.Serving && p.early {
			v.Undecided = v.Undecided || !p.answers()
			continue
		}
		if v.Failure == nil {
			v.Failure, v.FailedPod = p.err, p.pod.Name
		}
		v.Failed++
	}
	if e.server.Service != "" {
		v.Generation = min(v.Generation, e.serviceCounted)
		if e.service.failed() {
			v.ServiceFailure = e.service.err
		}
	}
	return v
}

// record notes the end of a task.
func (e *entry) record(task task, a answer, interval time.Duration) {
	now := time.Now()
	stillAsked := e.server.Generation == task.server.Generation
	if task.pod == nil {
		if !stillAsked || e.server.Service != task.server.Service {
			return
		}
		e.countAttempt(a)
		if a.err != nil {
			e.service.fail(now, e.settled(now), a)
			return
		}
		e.service.succeed(now, a)
		e.serviceCounted = task.server.Generation
		return
	}
	p := e.pods[task.pod.UID]
	if p == nil || p.pod != *task.pod || p.asked != task.asked {
		return
	}
	e.countAttempt(a)
	defer e.noteCurrent(now)
	if a.err != nil {
		e.failPod(p, now, a)
		return
	}
	p.succeed(now, a)
	e.nextRound = now.Add(interval)
	if a.result != nil {
		p.result, p.full = a.result, now
	}
	if stillAsked && task.server.Settled && e.server.Settled {
		e.count(task.server.Generation, p)
	}
}

// failPod notes a failure of a pod. One that comes to a server that answered has until it settled to take a connection.
func (e *entry) failPod(p *podState, now time.Time, a answer) {
	var settled time.Time
	switch {
	case a.err.Unreached && e.result != nil && !p.answered:
		settled = p.since.Add(settles)
	case p.excused:
		p.failures = 0 // those before were the network's: it is given as many of its own as any other
	}
	p.fail(now, settled, a)
	started := p.since.Add(starts)
	p.early = p.failed() && !p.answered && now.Before(started)
	if p.early && slices.ContainsFunc(e.sorted(), (*podState).answers) {
		p.next = earlier(p.next, started)
	}
}

// settled is when the network has learned of the Service: its pods answer by then, and have for a while.
func (e *entry) settled(now time.Time) time.Time {
	if e.current.IsZero() { // none does, and no wonder that the Service does not either
		return now.Add(settles)
	}
	return e.current.Add(settles)
}

// noteCurrent notes whether pods answer for the server's generation. Call it when that may have changed.
func (e *entry) noteCurrent(now time.Time) {
	switch {
	case e.generation() < e.server.Generation:
		e.current = time.Time{}
	case e.current.IsZero():
		e.current = now
	}
}

// count takes the answer of a pod for a generation. What is told of the server is what was read last: a cheap check of
// another pod does not bring back what that one said minutes ago.
func (e *entry) count(generation int64, p *podState) {
	p.counted = generation
	if e.result == nil || p.full.After(e.resultAt) {
		e.result, e.resultAt = p.result, p.full
	}
}

// countAttempt counts failures in a row, whichever pod they are of.
func (e *entry) countAttempt(a answer) {
	if a.err == nil {
		e.attempts = 0
	} else if e.attempts < math.MaxInt32 {
		e.attempts++
	}
}

func asError(err error) *mcp.Error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*mcp.Error](err); ok {
		return known
	}
	return &mcp.Error{Reason: mcp.ProtocolError, Message: err.Error()}
}
