// Package probe keeps the MCP verdict of every server up to date, away from the reconcile workers.
//
// It guarantees that a dead or slow server delays nobody else: new, healthy and failing servers wait in different lanes, the
// workers of each are bounded, and failing pods are asked less and less often. Namespaces come in turn, and one of them keeps at most half of
// the workers of a lane busy. A new server waits at most for one worker to come free, and for one server of each other namespace
// that has one waiting. A panic at what a server sent is a failed probe. It makes no request to the Kubernetes API.
package probe

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/fair"
	"github.com/mcp-operator/mcp-operator/internal/fault"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// Client does handshakes. *mcp.Client is one.
type Client interface {
	// Probe does a full handshake and reads all lists.
	Probe(ctx context.Context, target mcp.Target) (*mcp.Result, error)
	// Check asks cheaply whether a server still answers as last says.
	Check(ctx context.Context, target mcp.Target, last *mcp.Result) error
}

// Options are the parts and settings of a Scheduler. Zero settings mean their defaults.
type Options struct {
	// Client does the handshakes.
	Client Client

	// Transport returns how to reach a pod, or the Service when pod is nil. A fresh one for each probe.
	Transport func(server Server, pod *Pod) *http.Transport

	// Notify is called when the verdict of a server changed. It may block until ctx ends.
	Notify func(ctx context.Context, key types.NamespacedName)

	// Starting is told of every probe of a server that begins, Ended of every one that ended, how long it took, what it learned (nil if
	// the last result still holds) and its error; nil tells nobody. They must not block.
	Starting func(Attempt)
	Ended    func(attempt Attempt, took time.Duration, result *mcp.Result, err error)

	// Workers is how many probes run at once in each of the three lanes, at most half of them for one namespace. Default: 8, which with the limits of
	// internal/mcp bounds the memory that hostile servers can take at once.
	Workers int

	// Interval is the time between two probes of a healthy server, spread by a tenth. Default: 45 s.
	Interval time.Duration

	// FullInterval is the time after which a healthy server's lists are read again. Default: 10 min.
	FullInterval time.Duration
}

// Attempt is one probe of a server.
type Attempt struct {
	// Server is whom it is about, URL what is dialled.
	Server Server
	URL    string

	// Last is what is asked about, whether it still holds; nil for a full probe.
	Last *mcp.Result
}

// Scheduler probes servers. Make it with New, start it with Start, and tell it of servers with Observe.
type Scheduler struct {
	opts Options

	mu      sync.Mutex
	queues  [lanes]*fair.Lane[types.UID]
	entries map[types.UID]*entry
	uids    map[types.NamespacedName]types.UID // of the entries
}

// New returns a Scheduler.
func New(opts Options) *Scheduler {
	if opts.Workers == 0 {
		opts.Workers = 8
	}
	if opts.Interval == 0 {
		opts.Interval = 45 * time.Second
	}
	if opts.FullInterval == 0 {
		opts.FullInterval = 10 * time.Minute
	}
	s := &Scheduler{opts: opts, entries: map[types.UID]*entry{}, uids: map[types.NamespacedName]types.UID{}}
	for l := range s.queues {
		s.queues[l] = lane(l).queue(&s.mu, opts.Workers)
	}
	return s
}

// Start runs the workers until ctx ends, and returns when all have stopped.
func (s *Scheduler) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for l, queue := range s.queues {
		for range s.opts.Workers {
			workers.Go(func() { queue.Work(func(uid types.UID) { s.runOne(ctx, lane(l), uid) }) })
		}
	}
	<-ctx.Done()
	for _, queue := range s.queues {
		queue.Stop()
	}
	workers.Wait()
	return nil
}

// NeedLeaderElection says that only the leader probes.
func (s *Scheduler) NeedLeaderElection() bool { return true }

// Observe tells of a server as it is now. It is cheap, and probes at once what has not been probed.
func (s *Scheduler) Observe(server Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.entries[server.UID]
	if !known {
		e = &entry{pods: map[types.UID]*podState{}, since: time.Now(), attempts: server.Attempts}
		s.drop(server.Key) // an object of this name that was deleted and created again
		s.entries[server.UID], s.uids[server.Key] = e, server.UID
	}
	e.observe(server)
	s.schedule(e)
}

// Forget drops a server that is gone.
func (s *Scheduler) Forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

// drop forgets a server. The caller holds the lock.
func (s *Scheduler) drop(key types.NamespacedName) {
	uid, known := s.uids[key]
	if !known {
		return
	}
	s.entries[uid].stop()
	delete(s.entries, uid)
	delete(s.uids, key)
}

// Verdict returns what is known of a server.
func (s *Scheduler) Verdict(uid types.UID) Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, known := s.entries[uid]; known {
		return e.verdict()
	}
	return Verdict{}
}

// schedule puts an entry into each lane when it is time for its next task there. The caller holds the lock.
func (s *Scheduler) schedule(e *entry) {
	if e.running {
		return // the worker schedules anew when it is done
	}
	e.stop()
	for l, task := range e.next(s.opts) {
		if !task.exists() {
			continue
		}
		wait := time.Until(task.at)
		if wait <= 0 {
			s.enqueue(lane(l), e)
			continue
		}
		e.timers[l] = time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.enqueue(lane(l), e) // the worker looks whether it is still time
		})
	}
}

// enqueue puts an entry into a lane; one that waits there keeps its place. The caller holds the lock.
func (s *Scheduler) enqueue(l lane, e *entry) {
	if e.queued[l] {
		return
	}
	e.queued[l] = true
	s.queues[l].Push(e.server.Key.Namespace, e.server.UID)
}

func (s *Scheduler) runOne(ctx context.Context, l lane, uid types.UID) {
	s.mu.Lock()
	e, known := s.entries[uid]
	if known {
		e.queued[l] = false
	}
	if !known || e.running {
		s.mu.Unlock()
		return
	}
	task := e.next(s.opts)[l]
	if !task.exists() || task.at.After(time.Now()) {
		s.schedule(e)
		s.mu.Unlock()
		return
	}
	key := e.server.Key
	e.running = true
	s.mu.Unlock()

	attempt := Attempt{Server: task.server, URL: task.target().URL, Last: task.last}
	if s.opts.Starting != nil {
		s.opts.Starting(attempt)
	}
	start := time.Now()
	result, err := s.do(ctx, task)
	took := time.Since(start)

	s.mu.Lock()
	e.running = false
	if s.entries[uid] != e || ctx.Err() != nil { // forgotten meanwhile, or at the end
		s.mu.Unlock()
		return
	}
	if s.opts.Ended != nil {
		s.opts.Ended(attempt, took, result, err)
	}
	before := e.verdict() // not earlier: what Observe changed meanwhile, its caller has seen
	e.record(task, answer{result: result, err: asError(err), took: took}, s.jitter())
	changed := !before.equal(e.verdict())
	s.schedule(e)
	s.mu.Unlock()
	if changed {
		s.opts.Notify(ctx, key)
	}
}

// do runs one task outside the lock. A nil result with a nil error says that the last result still holds. A panic is an error.
func (s *Scheduler) do(ctx context.Context, task task) (result *mcp.Result, err error) {
	defer fault.Catch(task.server.Key.String(), &err)
	target := task.target()
	target.Transport = s.transport(task)
	if task.last != nil {
		err := s.opts.Client.Check(ctx, target, task.last)
		if !errors.Is(err, mcp.ErrStale) || task.pod == nil {
			return nil, ignoreStale(err)
		}
		target.Transport = s.transport(task)
	}
	return s.opts.Client.Probe(ctx, target)
}

// transport returns a fresh transport for one probe.
func (s *Scheduler) transport(task task) *http.Transport {
	transport := s.opts.Transport(task.server, task.pod)
	if task.tls != nil {
		transport.TLSClientConfig = task.tls.Clone()
	}
	return transport
}

// ignoreStale takes an MCP answer that differs from the last one for an answer.
func ignoreStale(err error) error {
	if errors.Is(err, mcp.ErrStale) {
		return nil
	}
	return err
}

// jitter returns the interval, up to a tenth longer or shorter, so that servers made at once are not probed at once.
func (s *Scheduler) jitter() time.Duration {
	return time.Duration(float64(s.opts.Interval) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // G404: spreads load, guards nothing
}
