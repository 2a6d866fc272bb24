package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

const (
	maxQueue = 2048
	maxBatch = 512
	// batchDelay is how long a span waits at most for others to go with it.
	batchDelay = 5 * time.Second
	// maxPatience is how long a batch is tried while the collector says to come back.
	maxPatience = 30 * time.Second
)

// exporter sends spans over OTLP/HTTP (OpenTelemetry Protocol 1.x). OpenTelemetry's own exporter over HTTP links gRPC into the
// binary, which doubles it.
type exporter struct {
	to      *endpoint
	log     *slog.Logger
	dropped *metrics.Counter
	// resource and scope are what every request says before its spans.
	resource, scope []byte

	// queue holds spans as they go out. What does not fit is dropped and counted.
	queue chan []byte
	// closing ends the worker, done tells that it ended. abort gives up what is on its way.
	closing, done chan struct{}
	closeOnce     sync.Once
	ctx           context.Context //nolint:containedctx // the worker's own, ended by Shutdown
	abort         context.CancelFunc
	failing       bool
}

func newExporter(to *endpoint, resource []attribute, version string, log *slog.Logger, dropped *metrics.Counter) *exporter {
	ctx, abort := context.WithCancel(context.Background())
	e := &exporter{
		to: to, log: log, dropped: dropped, resource: encodeResource(resource), scope: encodeScope(serviceName, version),
		queue: make(chan []byte, maxQueue), closing: make(chan struct{}), done: make(chan struct{}), ctx: ctx, abort: abort,
	}
	go e.work()
	return e
}

// add queues a span. It never waits.
func (e *exporter) add(span []byte) {
	select {
	case e.queue <- span:
	default:
		e.dropped.Inc()
	}
}

// Shutdown sends what is queued, until ctx ends.
func (e *exporter) Shutdown(ctx context.Context) error {
	e.closeOnce.Do(func() { close(e.closing) })
	defer e.abort()
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		e.abort()
		<-e.done
		return fmt.Errorf("export the last spans: %w", ctx.Err())
	}
}

// work sends batches until closing, and then what is left.
func (e *exporter) work() {
	defer close(e.done)
	defer e.to.client.CloseIdleConnections()
	for open := true; open; {
		var batch [][]byte
		batch, open = e.collect()
		for len(batch) > 0 {
			e.send(batch)
			batch = nil
			if !open { // More than one batch may be left.
				batch = e.take(nil)
			}
		}
	}
}

// collect waits for a first span and then for its batch to fill up. It is false once no more is waited for.
func (e *exporter) collect() (batch [][]byte, open bool) {
	select {
	case span := <-e.queue:
		batch = append(batch, span)
	case <-e.closing:
		return e.take(batch), false
	}
	timer := time.NewTimer(batchDelay)
	defer timer.Stop()
	for len(batch) < maxBatch {
		select {
		case span := <-e.queue:
			batch = append(batch, span)
		case <-timer.C:
			return batch, true
		case <-e.closing:
			return e.take(batch), false
		}
	}
	return batch, true
}

// take fills a batch up from the queue without waiting.
func (e *exporter) take(batch [][]byte) [][]byte {
	for len(batch) < maxBatch {
		select {
		case span := <-e.queue:
			batch = append(batch, span)
		default:
			return batch
		}
	}
	return batch
}

// send sends a batch, again while the collector says so, and counts it as dropped in the end.
func (e *exporter) send(batch [][]byte) {
	body := encodeRequest(e.resource, e.scope, batch)
	err := e.post(body)
	for delay, start := time.Second, time.Now(); err != nil && time.Since(start) < maxPatience; delay *= 2 {
		again, ok := errors.AsType[*againError](err)
		if !ok || !e.wait(max(delay, min(again.after, maxPatience))) {
			break
		}
		err = e.post(body)
	}
	if err != nil {
		e.dropped.Add(len(batch))
	}
	switch {
	case err != nil && !e.failing:
		e.log.Warn("Spans cannot be exported; those that do not fit the queue are dropped", "error", err.Error())
	case err == nil && e.failing:
		e.log.Info("Spans are exported again", "droppedInAll", e.dropped.Get())
	}
	e.failing = err != nil
}

// wait is false if it was given up.
func (e *exporter) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.closing: // Once told to end, an attempt each must do.
		return false
	case <-e.ctx.Done():
		return false
	}
}

// againError is an answer that says to come back.
type againError struct {
	status int
	after  time.Duration
}

func (e *againError) Error() string { return fmt.Sprintf("the collector answers %d", e.status) }

func (e *exporter) post(body []byte) error {
	ctx, cancel := context.WithTimeout(e.ctx, e.to.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.to.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	request.Header = e.to.headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "OTel-OTLP-Exporter-mcp-gateway")
	response, err := e.to.client.Do(request)
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	switch status := response.StatusCode; status {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return &againError{status, time.Duration(seconds) * time.Second}
	default:
		return fmt.Errorf("send spans: the collector answers %d", status)
	}
}
