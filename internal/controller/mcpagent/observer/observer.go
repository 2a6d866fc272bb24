// Package observer asks the gateways of MCPAgents what they serve, away from the reconcile workers.
//
// It guarantees that a gateway that is dead or slow delays nobody else's reconcile, that its workers and what they read are bounded, and
// that nobody is woken unless an answer differs in something that is told.
package observer

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/mcp-operator/mcp-operator/internal/fault"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	// A gateway that serves what it should is asked every interval, spread by a tenth.
	interval = 15 * time.Second

	// One that does not serve the newest table yet, or has not asked all its backends, is asked again after eager, which doubles up to
	// eagerLimit.
	eager, eagerLimit = 100 * time.Millisecond, 5 * time.Second

	// One that does not answer is asked again after retry, which doubles up to retryLimit.
	retry, retryLimit = 500 * time.Millisecond, time.Minute

	// What it says against a table may be about the one before, until it was asked so often.
	refusals = 5

	// A backend that it could not use may be one that its pod could not connect to yet: it is asked so often, in growing pauses, within
	// about 20 s, before it is asked every interval only.
	troubles = 8
)

// Agent is what the observer has to know of an MCPAgent.
type Agent struct {
	UID types.UID
	Key types.NamespacedName

	// Token is what the gateways ask for.
	Token string

	// Revision is the table that they should serve.
	Revision string

	// Pods are the ready pods of the gateway, with the address of the port that tells the status.
	Pods []probe.Pod
}

// Answer is what the gateway of one pod said last.
type Answer struct {
	Pod probe.Pod

	// Status is the last answer; nil if there was none since the pod was first seen.
	Status *route.Heard

	// Err is why requests fail; nil if they do not, or did not often enough. Status then is older.
	Err error

	// Known says that the pod answered, or failed often enough.
	Known bool
}

// Options are the parts and settings of an Observer.
type Options struct {
	// Transport returns how to reach a pod. A fresh one for each request.
	Transport func(pod probe.Pod) *http.Transport

	// Changed is called when something of an agent's gateways changed. It may block until ctx ends.
	Changed func(ctx context.Context, key types.NamespacedName)

	// Workers is how many requests run at once. Default: 8.
	Workers int
}

// target is one pod of an agent.
type target struct{ agent, pod types.UID }

// entry is what is known of an agent.
type entry struct {
	agent Agent
	pods  map[types.UID]*podState
}

// podState is what is known of one pod.
type podState struct {
	pod      probe.Pod
	status   *route.Heard
	err      error
	known    bool
	running  bool
	renewed  bool // while it is running: it is to be asked at once
	failures int  // in a row
	attempts int  // in a row that found a gateway which is not there yet
	next     time.Time
}

// Observer asks gateways. Make it with New, start it with Start, and tell it of agents with Observe.
type Observer struct {
	opts  Options
	queue workqueue.TypedDelayingInterface[target]

	mu      sync.Mutex
	entries map[types.UID]*entry
	uids    map[types.NamespacedName]types.UID
}

// New returns an Observer.
func New(opts Options) *Observer {
	if opts.Workers == 0 {
		opts.Workers = 8
	}
	return &Observer{
		opts: opts, queue: workqueue.NewTypedDelayingQueue[target](),
		entries: map[types.UID]*entry{}, uids: map[types.NamespacedName]types.UID{},
	}
}

// Start runs the workers until ctx ends, and returns when all have stopped.
func (o *Observer) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range o.opts.Workers {
		workers.Go(func() { o.work(ctx) })
	}
	<-ctx.Done()
	o.queue.ShutDown()
	workers.Wait()
	return nil
}

// NeedLeaderElection says that only the leader asks.
func (o *Observer) NeedLeaderElection() bool { return true }

// Observe tells of an agent as it is now. It is cheap, and asks at once pods that are new, and all if the table is.
func (o *Observer) Observe(agent Agent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, known := o.entries[agent.UID]
	if !known {
		delete(o.entries, o.uids[agent.Key]) // an object of this name that was deleted and created again
		e = &entry{pods: map[types.UID]*podState{}}
		o.entries[agent.UID], o.uids[agent.Key] = e, agent.UID
	}
	renewed := e.agent.Revision != agent.Revision || e.agent.Token != agent.Token
	e.agent = agent
	present := map[types.UID]bool{}
	for _, pod := range agent.Pods {
		present[pod.UID] = true
		state, seen := e.pods[pod.UID]
		if !seen {
			state = &podState{}
			e.pods[pod.UID] = state
		}
		if !seen || renewed || state.pod.Address != pod.Address {
			state.attempts, state.next, state.renewed = 0, time.Time{}, state.running
		}
		state.pod = pod
		o.schedule(agent.UID, state)
	}
	for uid := range e.pods {
		if !present[uid] {
			delete(e.pods, uid)
		}
	}
}

// Forget drops an agent that is gone.
func (o *Observer) Forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.entries, o.uids[key])
	delete(o.uids, key)
}

// Answers returns what the gateways of an agent said, in the order in which its pods were told.
func (o *Observer) Answers(uid types.UID) []Answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, known := o.entries[uid]
	if !known {
		return nil
	}
	var answers []Answer
	for _, pod := range e.agent.Pods {
		if state := e.pods[pod.UID]; state != nil {
			answers = append(answers, Answer{Pod: state.pod, Status: state.status, Err: state.err, Known: state.known})
		}
	}
	return answers
}

// schedule puts a pod into the queue for the time when it is due. The caller holds the lock.
func (o *Observer) schedule(agent types.UID, state *podState) {
	if !state.running { // the worker schedules anew when it is done
		o.queue.AddAfter(target{agent, state.pod.UID}, time.Until(state.next))
	}
}

func (o *Observer) work(ctx context.Context) {
	for {
		t, shutdown := o.queue.Get()
		if shutdown {
			return
		}
		o.ask(ctx, t)
		o.queue.Done(t)
	}
}

// ask asks one pod, if it is due.
func (o *Observer) ask(ctx context.Context, t target) {
	o.mu.Lock()
	e := o.entries[t.agent]
	if e == nil || e.pods[t.pod] == nil || e.pods[t.pod].running {
		o.mu.Unlock()
		return
	}
	state := e.pods[t.pod]
	if state.next.After(time.Now()) {
		o.schedule(t.agent, state)
		o.mu.Unlock()
		return
	}
	state.running = true
	agent, pod := e.agent, state.pod
	o.mu.Unlock()

	status, err := o.tryFetch(ctx, pod, agent)

	o.mu.Lock()
	state.running = false
	if o.entries[t.agent] != e || e.pods[t.pod] != state || ctx.Err() != nil { // forgotten meanwhile, or at the end
		o.mu.Unlock()
		return
	}
	changed := state.record(status, err, e)
	if !state.renewed {
		state.plan(e.agent.Revision)
	}
	state.renewed = false
	o.schedule(t.agent, state)
	key := e.agent.Key
	o.mu.Unlock()
	if changed {
		o.opts.Changed(ctx, key)
	}
}

// tryFetch is fetch, of which a panic at what a gateway sent is a failure like any other.
func (o *Observer) tryFetch(ctx context.Context, pod probe.Pod, agent Agent) (heard *route.Heard, err error) {
	defer fault.Catch(agent.Key.String(), &err)
	return o.fetch(ctx, pod, agent.Token)
}

// A pod that answered before has to fail so often in a row before that is told, a new one so often.
const (
	toldFailures    = 2
	toldFailuresNew = 3
)

// record notes an answer, and says whether it tells something else than the last one. Equal answers of several pods are kept once.
func (p *podState) record(status *route.Heard, err error, e *entry) bool {
	was, wasErr, wasKnown := p.status, p.err, p.known
	if err != nil {
		p.failures++
		if p.failures >= toldFailuresNew || was != nil && p.failures >= toldFailures {
			p.err, p.known = err, true
		}
		return p.known != wasKnown || !sameError(wasErr, p.err)
	}
	for _, other := range e.pods {
		if other.status != nil && same(other.status, status) {
			status = other.status
			break
		}
	}
	p.status, p.err, p.known, p.failures = status, nil, true, 0
	return !wasKnown || wasErr != nil || !same(was, status)
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == b //nolint:errorlint // whether both are nil
	}
	return a.Error() == b.Error()
}

// plan says when the pod is asked next.
func (p *podState) plan(revision string) {
	now := time.Now()
	isSettled := p.failures == 0 && settled(p.status, revision)
	troubled := isSettled && slices.ContainsFunc(p.status.Backends, func(b table.BackendStatus) bool { return b.State == table.BackendFailed })
	switch {
	case p.failures > 0:
		p.next, p.attempts = now.Add(doubled(retry, p.failures-1, retryLimit)), 0
	case !isSettled && (p.status.TableError == "" || p.attempts < refusals), troubled && p.attempts < troubles:
		p.next = now.Add(doubled(eager, p.attempts, eagerLimit))
		p.attempts++
	default:
		p.next = now.Add(time.Duration(float64(interval) * (0.9 + 0.2*rand.Float64()))) //nolint:gosec // G404: spreads load, guards nothing
	}
	if isSettled && !troubled {
		p.attempts = 0
	}
}

func doubled(first time.Duration, times int, limit time.Duration) time.Duration {
	return min(first<<min(times, 16), limit)
}

// settled says whether a gateway serves the table that it should, and has asked every backend.
func settled(status *route.Heard, revision string) bool {
	if status.Revision != revision {
		return false
	}
	for i := range status.Backends {
		if status.Backends[i].State == table.BackendUnknown {
			return false
		}
	}
	return true
}
