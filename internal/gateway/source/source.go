// Package source brings routing tables to the gateway, from a file and from a ConfigMap. The file is there at the start, with
// the API server away; the watch of the ConfigMap is there within milliseconds of a change, where the kubelet takes a minute.
package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// pollInterval is how often the file is looked at. A look is one stat, and reads the file only if it is another than before, was so first
// less than a pollInterval ago, or could not be read.
const pollInterval = time.Second

// Options say where tables come from and who takes them.
type Options struct {
	// File is the path of the table. With ConfigMap it is the mounted key of the same ConfigMap, and may be empty. A file that
	// is written in place rather than replaced may be read half written: it is refused, and read again a second later.
	File string
	// ConfigMap is watched besides; nil watches none.
	ConfigMap *ConfigMap
	// Logger is told when the watch is lost and when it is back; nil tells nobody.
	Logger *slog.Logger
	// Panics tells of faults of the gateway's own; default the default logger.
	Panics *panics.Recorder
	// Table takes each new table.
	Table func(*table.Table)
	// Refused takes why what is there now is no table: an *table.InvalidError or an error of reading is in it. The table
	// before it stays in force, until Table is called, be it with an equal one.
	Refused func(error)
}

// Run calls Table and Refused, never concurrently, each time that what is there changes, until ctx ends. What the file
// holds comes first, since the watcher waits to be heard. The error is about the Options.
//
// Of file and ConfigMap the newer wins. Only the API server knows which that is, so its word counts once it has spoken, and the
// file, which lags behind it, counts again when the watch was lost for a minute.
func Run(ctx context.Context, o Options) error {
	if o.File == "" && o.ConfigMap == nil {
		return errors.New("no source of tables: neither a file nor a ConfigMap is named")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := source{Options: o, file: file{path: o.File}}
	if o.ConfigMap == nil {
		s.run(ctx, nil)
		return nil
	}
	w, err := newWatcher(*o.ConfigMap, o.Logger, o.Panics)
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.Go(func() { w.run(ctx) })
	s.run(ctx, w.updates)
	return nil
}

type source struct {
	Options
	arbiter

	file file
}

func (s *source) run(ctx context.Context, updates <-chan update) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	s.look(time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			s.look(now)
		case u := <-updates:
			switch {
			case u.lost:
				s.apiLost(time.Now())
			case u.content == nil:
				s.apiBack()
			case s.fromAPI(u.content.id()):
				s.deliver(u.content)
			}
		}
	}
}

// look looks at the file.
func (s *source) look(now time.Time) {
	if s.File == "" {
		return
	}
	if c := s.file.read(); s.fromFile(c.id(), now) {
		s.deliver(c)
	}
}

func (s *source) deliver(c *content) {
	if err := s.take(c); err != nil {
		s.Refused(fmt.Errorf("%s: %w", c.origin, err))
	}
}

// take hands over a table. The error is about the content.
func (s *source) take(c *content) (err error) {
	defer s.Panics.Catch("", &err)
	t, err := (*table.Table)(nil), c.err
	if err == nil {
		t, err = table.Parse(c.data)
	}
	if err != nil {
		return err
	}
	s.Table(t)
	return nil
}

// content is what a source has to say: data, or why there is none.
type content struct {
	// origin is for messages.
	origin string
	data   []byte
	err    error
}

// contentID is equal for what is delivered once.
type contentID string

func (c *content) id() contentID {
	if c.err != nil {
		return contentID("error " + c.err.Error())
	}
	sum := sha256.Sum256(c.data)
	return contentID(sum[:])
}
