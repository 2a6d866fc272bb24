package gateway

import (
	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
)

// countFor has the restarts of the children of these servers counted, and of no others: who asks may go by a table from before.
func (t *tables) countFor(servers map[backend.Backend]bool) {
	t.counting.Lock()
	defer t.counting.Unlock()
	counted := map[backend.Backend]int{}
	for server := range servers {
		counted[server] = t.restarts[server]
	}
	t.restarts = counted
}

// newRestarts is how often the backend's children were started again since it was asked last. Of a server that has gone it is none.
func (t *tables) newRestarts(b *front.Backend) int {
	t.counting.Lock() // also while it is asked: an older count must not be noted after a newer one
	defer t.counting.Unlock()
	before, isCounted := t.restarts[b.Server]
	child := b.Status().Child
	if child == nil || !isCounted {
		return 0
	}
	t.restarts[b.Server] = child.Restarts
	return max(child.Restarts-before, 0)
}
