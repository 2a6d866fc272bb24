package toolset

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// fetched are definitions of a test: what is set is there.
type fetched struct {
	content  []byte
	onItsWay []byte
	why      string
	arrival  chan struct{}
	reads    int
}

func (f *fetched) Read(table.ToolFile) ([]byte, error) {
	f.reads++
	if f.content == nil {
		return nil, errors.New(f.why)
	}
	return f.content, nil
}

func (f *fetched) Await(context.Context, table.ToolFile) {
	if f.onItsWay != nil {
		f.content = f.onItsWay
	}
}

func (f *fetched) Arrival(table.ToolFile) <-chan struct{} { return f.arrival }

func TestToolsMayComeFromConfigMaps(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	f := &fetched{why: "does not exist", arrival: make(chan struct{})}
	config := table.Backend{URL: server.URL, Toolset: &table.Toolset{
		Files: []table.ToolFile{{ConfigMap: "weather", Key: "tools.json", SHA256: strings.Repeat("0", 64)}},
	}}
	b := open(t, config, Options{Definitions: f})
	_, err := b.Describe(testContext(t))
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classDefinition || failure.Detail != "the ConfigMap weather does not exist" {
		t.Errorf("described with %v", err)
	}
	if b.Renewed() != (<-chan struct{})(f.arrival) {
		t.Error("nobody is told when it has come")
	}
	f.content = []byte(`{"http":[{"definition":{"name":"first","inputSchema":{"type":"object"}},"method":"GET","path":"/one"}]}`)
	if got := call(t, b, "first", `{}`).text(); !strings.HasPrefix(got, "GET /one\n") {
		t.Errorf("answered %q", got)
	}
	if b.Renewed() != nil || b.Check() != nil {
		t.Errorf("it waits for what has come: %v", b.Check())
	}

	_, err = open(t, config, Options{}).Describe(testContext(t))
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Detail != "the ConfigMap weather cannot be fetched here" {
		t.Errorf("without anybody who fetches: %v", err)
	}
}

func TestWhatIsOnItsWayIsMissedByNobody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	f := &fetched{onItsWay: []byte(`{"http":[{"definition":{"name":"first","inputSchema":{"type":"object"}},"method":"GET","path":"/one"}]}`)}
	b := open(t, table.Backend{URL: server.URL, Toolset: &table.Toolset{
		Files: []table.ToolFile{{ConfigMap: "weather", Key: "tools.json", SHA256: strings.Repeat("0", 64)}},
	}}, Options{Definitions: f})
	if got := call(t, b, "first", `{}`).text(); !strings.HasPrefix(got, "GET /one\n") {
		t.Errorf("answered %q", got)
	}
}

func TestContentThatCanOnlyBeWrongIsReadOnce(t *testing.T) {
	f := &fetched{content: []byte(`{"http":[{}]}`)}
	b := open(t, table.Backend{URL: "https://a.example", Toolset: &table.Toolset{
		Files: []table.ToolFile{{ConfigMap: "weather", Key: "tools.json", SHA256: strings.Repeat("0", 64)}},
	}}, Options{Definitions: f})
	for range 3 {
		_, err := b.Describe(testContext(t))
		failure, ok := errors.AsType[*backend.Error](err)
		if !ok || failure.Class != classDefinition || !strings.Contains(failure.Told, "http[0].method") || strings.Contains(failure.Detail, "http[0]") {
			t.Errorf("described with %v", err)
		}
	}
	if f.reads != 1 || b.Renewed() != nil {
		t.Errorf("it was read %d times", f.reads)
	}
}
