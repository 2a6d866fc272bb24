package source

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
)

const (
	minDelay = 250 * time.Millisecond
	maxDelay = 30 * time.Second
	// settled is how long a watch must have lasted for the next one to begin without a growing delay.
	settled = 10 * time.Second
)

// update is what a watcher tells: content, or that the API server is lost, or (neither) that it is back.
type update struct {
	content *content
	lost    bool
}

// errExpired is returned when the API server has forgotten what came after a resourceVersion: list again.
var errExpired = errors.New("the resourceVersion is too old")

// watcher follows one ConfigMap: list, then watch from there, for ever.
type watcher struct {
	*api

	updates chan update
	log     *slog.Logger
	panics  *panics.Recorder
	// trouble is the error that was logged last, empty while all is well.
	trouble string
}

func newWatcher(c ConfigMap, log *slog.Logger, faults *panics.Recorder) (*watcher, error) {
	a, err := newAPI(c)
	if err != nil {
		return nil, err
	}
	return &watcher{api: a, panics: faults, updates: make(chan update), log: log.With("configMap", a.Namespace+"/"+a.Name)}, nil
}

func (w *watcher) run(ctx context.Context) {
	defer w.close()
	version, failures := "", 0
	for ctx.Err() == nil {
		start := time.Now()
		err := w.follow(ctx, &version)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errExpired):
			version = ""
		case err != nil:
			w.lost(ctx, err)
		}
		if time.Since(start) >= settled {
			failures = 0
		}
		backend.Pause(ctx, delay(failures, rand.Float64())) //nolint:gosec // spreads load, keeps no secret
		failures++
	}
}

// follow lists if there is no version to go on from, and watches until the watch ends, which it does in the normal course of
// things (nil). It keeps version up to date.
func (w *watcher) follow(ctx context.Context, version *string) (err error) {
	defer w.panics.Catch("", &err)
	if *version == "" {
		object, listed, err := w.list(ctx)
		if err != nil {
			return err
		}
		w.back()
		w.tell(ctx, update{content: w.contentOf(object)})
		*version = listed
	}
	events, err := w.watch(ctx, *version)
	if err != nil {
		return err
	}
	defer events.Close()
	w.back()
	w.tell(ctx, update{})
	for {
		e, err := events.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		*version = e.Object.Metadata.ResourceVersion
		switch {
		case e.Type == "BOOKMARK" || e.Object.Metadata.Name != w.Name:
		case e.Type == "DELETED":
			w.tell(ctx, update{content: w.contentOf(nil)})
		default:
			w.tell(ctx, update{content: w.contentOf(&e.Object)})
		}
	}
}

func (w *watcher) tell(ctx context.Context, u update) {
	select {
	case w.updates <- u:
	case <-ctx.Done():
	}
}

// lost tells that the API server cannot be heard, and logs why when that is new.
func (w *watcher) lost(ctx context.Context, err error) {
	w.tell(ctx, update{lost: true})
	if text := err.Error(); text != w.trouble {
		w.trouble = text
		w.log.Warn("The watch of the ConfigMap is lost; the table in force goes on, and the watch is tried again", "error", text)
	}
}

func (w *watcher) back() {
	if w.trouble != "" {
		w.trouble = ""
		w.log.Info("The ConfigMap is watched again")
	}
}

// delay is how long to wait after so many failures in a row: doubling, in the upper half at random, so that gateways which lost
// the same API server do not come back at the same moment.
func delay(failures int, random float64) time.Duration {
	whole := maxDelay
	if failures < 8 {
		whole = min(maxDelay, 2*minDelay<<failures)
	}
	return whole/2 + time.Duration(random*float64(whole/2))
}
