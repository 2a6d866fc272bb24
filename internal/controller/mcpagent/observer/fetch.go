package observer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/probe"
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
func (o *Observer) fetch(ctx context.Context, pod probe.Pod, token string) (*table.Status, error) {
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
	status := &table.Status{}
	if err == nil {
		err = json.Unmarshal(raw, status)
	}
	if err != nil { // its text quotes what was sent
		return nil, fmt.Errorf("gateway pod %s answered what is no status", pod.Name)
	}
	strip(status)
	return status, nil
}

// strip drops what changes all the time, what is never told, and what is too much to be.
func strip(status *table.Status) {
	tools := 0
	for i := range status.Backends {
		b := &status.Backends[i]
		tools += len(b.Tools)
		*b = table.BackendStatus{Name: b.Name, State: b.State, ErrorClass: b.ErrorClass, ErrorDetail: b.ErrorDetail, Tools: b.Tools, Truncated: b.Truncated}
	}
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
		if tools > maxTools {
			b.Tools = mostTelling(b.Tools, max(1, maxTools/len(status.Backends)))
		}
		for j := range b.Tools {
			t := &b.Tools[j]
			*t = table.ToolStatus{Name: t.Name, Digest: t.Digest, Verdict: table.ToolVerdict(once(string(t.Verdict))), Reason: once(t.Reason)}
		}
	}
}

// mostTelling cuts a list: what is wrong stays, then what is served, then what is held back.
func mostTelling(tools []table.ToolStatus, limit int) []table.ToolStatus {
	if len(tools) <= limit {
		return tools
	}
	rank := func(verdict table.ToolVerdict) int {
		return slices.Index([]table.ToolVerdict{table.ToolServed, table.ToolDenied}, verdict)
	}
	slices.SortStableFunc(tools, func(a, b table.ToolStatus) int { return cmp.Compare(rank(a.Verdict), rank(b.Verdict)) })
	return slices.Clone(tools[:limit])
}

func same(a, b *table.Status) bool {
	return a == b || a != nil && b != nil && reflect.DeepEqual(a, b)
}
