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

	// What a pod's events said is told for memoryAge if they cannot be listed any more, and forgotten so long after a look at the pod.
	memoryAge = 5 * eventsInterval
)

// Memory is what the events of pods that wait for a volume said when they were last asked for: no cache has them, so each question is
// one to the API server. The zero value is empty. It is used concurrently, and holds no more pods than were looked at in memoryAge.
type Memory struct {
	mu   sync.Mutex
	pods map[types.UID]heard
}

// heard is what a pod's events said; nothing if none told of a volume.
type heard struct {
	told   string
	at     time.Time // when they said it
	asked  time.Time // when they were last asked for, whatever came of it
	looked time.Time // when the pod was last looked at
}

// isFresh says that it is too early to ask again.
func (h heard) isFresh(now time.Time) bool {
	return !h.asked.IsZero() && now.Sub(h.asked) < eventsInterval
}

// recall returns what was heard of a pod that is looked at: the zero value if it was never asked about.
func (m *Memory) recall(pod types.UID, now time.Time) heard {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.pods[pod]
	if ok {
		last.looked = now
		m.pods[pod] = last
	}
	return last
}

// keep notes what was heard of a pod, and forgets what nobody looked at for long: that of pods which are gone, too.
func (m *Memory) keep(pod types.UID, what heard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, last := range m.pods {
		if what.asked.Sub(last.looked) >= memoryAge {
			delete(m.pods, uid)
		}
	}
	if m.pods == nil {
		m.pods = map[types.UID]heard{}
	}
	m.pods[pod] = what
}

// ask lists the events of one of the pods of a workload that wait for a volume: of the one that was asked about longest ago, so that each has
// its turn. It asks nothing if all were asked about a short while ago, or one of them that tells.
func (m *Memory) ask(ctx context.Context, events client.Reader, waiting []*corev1.Pod) {
	now := time.Now()
	var due *corev1.Pod
	var before heard // of due
	told := false
	for _, pod := range waiting { // all of them, so that none is forgotten
		last := m.recall(pod.UID, now)
		told = told || last.isFresh(now) && last.told != ""
		if !told && !last.isFresh(now) && (due == nil || last.asked.Before(before.asked)) {
			due, before = pod, last
		}
	}
	if due == nil {
		return
	}
	message, ok := newestOfMounts(ctx, events, due)
	next := heard{told: message, at: now, asked: now, looked: now}
	if !ok && now.Sub(before.at) < memoryAge { // there is no news
		next.told, next.at = before.told, before.at
	}
	m.keep(due.UID, next)
}

// explain tells what a pod waits for by its events: nothing else knows. Without such an event it is only slow. Until they
// are listed again, what was heard before stands.
func (m *Memory) explain(pod *corev1.Pod, d Finding) Finding {
	now := time.Now()
	last := m.recall(pod.UID, now)
	again := nextPodInterval
	if last.isFresh(now) {
		again = eventsInterval - now.Sub(last.asked)
	}
	if last.told == "" {
		return Finding{After: again}
	}
	d.Message, d.After = fmt.Sprintf("%s (pod: %s)", last.told, pod.Name), again
	return d
}

// newestOfMounts returns what the newest event of a pod says that is about its volumes or its network, empty if there is none, and whether
// they could be listed. Who may not list events is told less, and nothing else fails.
func newestOfMounts(ctx context.Context, events client.Reader, pod *corev1.Pod) (told string, ok bool) {
	list := &corev1.EventList{}
	err := events.List(ctx, list, client.InNamespace(pod.Namespace), client.Limit(100),
		client.MatchingFields{"involvedObject.uid": string(pod.UID), "type": corev1.EventTypeWarning})
	if err != nil {
		return "", false
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
		return "", true
	}
	return newest.Reason + ": " + newest.Message, true
}
