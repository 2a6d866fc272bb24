package observer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	// timeout bounds one request.
	timeout = 3 * time.Second

	// maxStatus bounds an answer, in bytes.
	maxStatus = 4 << 20

	// maxTools is how many tools of one gateway are kept, all backends together: an agent is small, and what its servers offer may not be.
	maxTools = 2048
)

// fetch asks one gateway. Errors are stable sentences in our own words: a pod's bytes do not reach a status through them.
func (o *Observer) fetch(ctx context.Context, pod probe.Pod, token string) (*route.Heard, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Address+"/status", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask gateway pod %s: %w", pod.Name, err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	client := http.Client{Transport: o.opts.Transport(pod), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil { // its text names a port of ours, another one each time
		return nil, fmt.Errorf("gateway pod %s does not answer: does a NetworkPolicy keep the operator out?", pod.Name)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("gateway pod %s does not know the operator's token yet", pod.Name)
	default:
		return nil, fmt.Errorf("gateway pod %s answered its status with HTTP status %d", pod.Name, resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus+1))
	if err == nil && len(raw) > maxStatus {
		err = errors.New("too large")
	}
	heard := &route.Heard{}
	if err == nil {
		err = json.Unmarshal(raw, &heard.Status)
	}
	if err != nil { // its text quotes what was sent
		return nil, fmt.Errorf("gateway pod %s answered what is no status", pod.Name)
	}
	heard.Unlisted = strip(&heard.Status)
	return heard, nil
}

// strip drops what changes all the time, what is never told, and what is too much to be; and it sorts, since some servers list their tools
// in another order each time. It returns how many of the tools that it left out are served, by the name of their backend.
func strip(status *table.Status) map[string]int32 {
	sizes := make([]int, 0, len(status.Backends))
	texts := map[string]string{} // few, each of many tools
	once := func(text string) string {
		if known, ok := texts[text]; ok {
			return known
		}
		texts[text] = text
		return text
	}
	for i := range status.Backends {
		b := &status.Backends[i]
		*b = table.BackendStatus{
			Name: b.Name, State: b.State, ErrorClass: b.ErrorClass, ErrorDetail: b.ErrorDetail, Tools: b.Tools, Truncated: b.Truncated,
			Unread: unreadOf(b.Unread), Conflicts: conflictsOf(b.Conflicts), ConflictCount: b.ConflictCount,
		}
		sizes = append(sizes, len(b.Tools))
		for j := range b.Tools {
			t := &b.Tools[j]
			*t = table.ToolStatus{Name: t.Name, Digest: t.Digest, Verdict: table.ToolVerdict(once(string(t.Verdict))), Reason: once(t.Reason)}
		}
	}
	unlisted, limit := map[string]int32{}, longest(sizes, maxTools)
	for i := range status.Backends {
		b := &status.Backends[i]
		all := served(b)
		b.Tools = cutTools(b.Tools, limit)
		if left := all - served(b); left > 0 {
			unlisted[b.Name] = left
		}
	}
	return unlisted
}

// longest is how long a list may be when lists of these sizes share the room: short ones stay whole, and long ones share what is left.
func longest(sizes []int, room int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if share := room / (len(sizes) - i); size > share {
			return share
		}
		room -= size
	}
	return math.MaxInt
}

// served is how many tools of a backend are served.
func served(b *table.BackendStatus) (count int32) {
	for i := range b.Tools {
		if b.State == table.BackendReady && b.Tools[i].Verdict == table.ToolServed {
			count++
		}
	}
	return count
}

// cutTools sorts a list and cuts it: what is wrong stays, then what is served, then what is held back.
func cutTools(tools []table.ToolStatus, limit int) []table.ToolStatus {
	rank := func(verdict table.ToolVerdict) int {
		return slices.Index([]table.ToolVerdict{table.ToolServed, table.ToolDenied}, verdict)
	}
	slices.SortStableFunc(tools, func(a, b table.ToolStatus) int {
		return cmp.Or(cmp.Compare(rank(a.Verdict), rank(b.Verdict)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest))
	})
	if len(tools) <= limit {
		return tools
	}
	return slices.Clone(tools[:limit])
}

func same(a, b *route.Heard) bool {
	return a == b || a != nil && b != nil && reflect.DeepEqual(a, b)
}
