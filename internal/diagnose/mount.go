package diagnose

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// A pod's events are asked for at most once in eventsInterval.
	eventsInterval = time.Minute

	// The events of one pod are asked for in a look at a workload. Those of the next are asked for in another one, so much later.
	nextPodInterval = 10 * time.Second

	// What was heard of a pod is forgotten after memoryAge. It is longer than it takes until several pods were asked about again.
	memoryAge = 5 * eventsInterval
)

// Memory is what the events of pods that wait for a volume said when they were last asked for: no cache has them, so each question is
// one to the API server. The zero value is empty. It is used concurrently, and holds no more pods than were asked about in memoryAge.
type Memory struct {
	mu   sync.Mutex
	pods map[types.UID]heard
}

// heard is what a pod's events said at a time; nothing if none told of a volume.
type heard struct {
	at   time.Time
	told string
}

// recall returns what was heard of a pod, and whether it is too early to ask again.
func (m *Memory) recall(pod types.UID, now time.Time) (last heard, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.pods[pod]
	return last, ok && now.Sub(last.at) < eventsInterval
}

// keep notes what was heard of a pod, and forgets whatever is too old to be of use: that of pods which are gone, too.
func (m *Memory) keep(pod types.UID, what heard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, last := range m.pods {
		if what.at.Sub(last.at) >= memoryAge {
			delete(m.pods, uid)
		}
	}
	if m.pods == nil {
		m.pods = map[types.UID]heard{}
	}
	m.pods[pod] = what
}

// mounts explains the pods of one look at a workload that wait for a volume.
type mounts struct {
	events client.Reader
	memory *Memory
	asked  bool // the API server, in this look
}

// explain tells what a pod waits for by its events: nothing else knows. Without such an event it is only slow. Until they
// are listed again, what was heard before stands.
func (m *mounts) explain(ctx context.Context, pod *corev1.Pod, d Finding) Finding {
	now := time.Now()
	last, fresh := m.memory.recall(pod.UID, now)
	again := eventsInterval - now.Sub(last.at)
	switch {
	case fresh:
	case m.asked:
		again = nextPodInterval
	default:
		m.asked = true
		told, err := newestOfMounts(ctx, m.events, pod)
		if err != nil {
			told = last.told // there is no news
		}
		last, again = heard{at: now, told: told}, eventsInterval
		m.memory.keep(pod.UID, last)
	}
	if last.told == "" {
		return Finding{After: again}
	}
	d.Message, d.After = fmt.Sprintf("%s (pod: %s)", last.told, pod.Name), again
	return d
}

// newestOfMounts returns what the newest event of a pod says that is about its volumes or its network; empty if there is none.
func newestOfMounts(ctx context.Context, events client.Reader, pod *corev1.Pod) (string, error) {
	list := &corev1.EventList{}
	err := events.List(ctx, list, client.InNamespace(pod.Namespace), client.Limit(100),
		client.MatchingFields{"involvedObject.uid": string(pod.UID), "type": corev1.EventTypeWarning})
	if err != nil {
		return "", fmt.Errorf("list the events of pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	var newest *corev1.Event
	for i := range list.Items {
		event := &list.Items[i]
		if event.Reason != "FailedMount" && event.Reason != "FailedAttachVolume" && event.Reason != "FailedCreatePodSandBox" {
			continue
		}
		if newest == nil || newest.LastTimestamp.Before(&event.LastTimestamp) {
			newest = event
		}
	}
	if newest == nil {
		return "", nil
	}
	return newest.Reason + ": " + newest.Message, nil
}
