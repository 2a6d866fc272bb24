package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// answers is a network that answers each request with the next status, and then with 200. Status 0 is no answer before the
// request is given up.
type answers struct {
	statuses []int
	after    string

	mu    sync.Mutex
	spans []int
}

// batches are the numbers of spans in the requests that came.
func (a *answers) batches() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.spans)
}

// next is the status of the next answer.
func (a *answers) next(spans int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spans = append(a.spans, spans)
	if len(a.statuses) == 0 {
		return http.StatusOK
	}
	status := a.statuses[0]
	a.statuses = a.statuses[1:]
	return status
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	request := new(collectorv1.ExportTraceServiceRequest)
	if err := proto.Unmarshal(body, request); err != nil {
		return nil, err
	}
	status := a.next(len(request.ResourceSpans[0].ScopeSpans[0].Spans))
	if status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {a.after}}, Body: http.NoBody}, nil
}

// exporting is a Telemetry in the test's bubble that exports to a.
func exporting(t *testing.T, a *answers) (tel *Telemetry, logged *bytes.Buffer) {
	t.Helper()
	logged = new(bytes.Buffer)
	tel = New(Options{})
	to := &endpoint{url: "http://collector", headers: http.Header{}, timeout: 10 * time.Second, client: &http.Client{Transport: a}}
	tel.traces.exporter = newExporter(to, nil, "", slog.New(slog.NewTextHandler(logged, nil)), tel.spansDropped)
	tel.traces.sampler = sampler{bound: all}
	t.Cleanup(func() {
		if err := tel.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return tel, logged
}

func calls(t *testing.T, tel *Telemetry, n int) {
	t.Helper()
	for range n {
		call(t, tel, CallInfo{Method: "ping"}, Outcome{Status: StatusOK})
	}
}

func TestSpansGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{}
		tel, _ := exporting(t, a)
		calls(t, tel, 3)
		synctest.Wait()
		if len(a.batches()) != 0 {
			t.Errorf("%v went at once", a.batches())
		}
		<-time.After(batchDelay)
		calls(t, tel, maxBatch+1)
		synctest.Wait()
		<-time.After(batchDelay)
		synctest.Wait()
		if diff := cmp.Diff([]int{3, maxBatch, 1}, a.batches()); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestABatchIsSentAgainWhileTheCollectorSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		answers  *answers
		attempts int
		dropped  uint64
	}{
		"once busy":           {&answers{statuses: []int{503}}, 2, 0},
		"busy, with a time":   {&answers{statuses: []int{429}, after: "20"}, 2, 0},
		"always busy":         {&answers{statuses: []int{502, 503, 504, 429, 503, 503, 503, 503, 503}}, 6, 1},
		"told to come late":   {&answers{statuses: []int{503, 503}, after: "86400"}, 2, 1},
		"refused for good":    {&answers{statuses: []int{400}}, 1, 1},
		"redirected":          {&answers{statuses: []int{307}}, 1, 1},
		"silent, and dropped": {&answers{statuses: []int{0}}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tel, _ := exporting(t, tc.answers)
				calls(t, tel, 1)
				<-time.After(5 * time.Minute)
				synctest.Wait()
				if got := len(tc.answers.batches()); got != tc.attempts {
					t.Errorf("%d attempts, want %d", got, tc.attempts)
				}
				if got := tel.spansDropped.Get(); got != tc.dropped {
					t.Errorf("%d dropped, want %d", got, tc.dropped)
				}
			})
		})
	}
}

func TestSpansThatDoNotFitAreDroppedAndCountedAndNoCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{statuses: []int{0}}
		tel, logged := exporting(t, a)
		calls(t, tel, maxBatch)
		synctest.Wait() // The batch is on its way to a collector that does not answer.
		start := time.Now()
		calls(t, tel, maxQueue+100)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the calls took %s", waited)
		}
		if got := tel.spansDropped.Get(); got != 100 {
			t.Errorf("%d dropped", got)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if got := tel.spansDropped.Get(); got != 100+maxBatch {
			t.Errorf("%d dropped in the end", got)
		}
		if diff := cmp.Diff([]int{maxBatch, maxBatch, maxBatch, maxBatch, maxBatch}, a.batches()); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		for _, want := range []string{"level=WARN msg=\"Spans cannot be exported", "level=INFO msg=\"Spans are exported again\" droppedInAll=612"} {
			if strings.Count(logged.String(), want) != 1 {
				t.Errorf("logged is not once %q:\n%s", want, logged)
			}
		}
	})
}

func TestCloseExportsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{}
		tel, _ := exporting(t, a)
		calls(t, tel, 2*maxBatch+1)
		if err := tel.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{maxBatch, maxBatch, 1}, a.batches()); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel, _ := exporting(t, &answers{statuses: []int{0}})
		calls(t, tel, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := tel.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
