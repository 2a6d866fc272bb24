package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	// awaitTime is how long a new table waits for what it names.
	awaitTime = 2 * time.Second
	// fetchTime bounds one attempt.
	fetchTime = 10 * time.Second
)

// Definitions are the ConfigMaps that tables name beside the one that holds the table: fetched by name, verified by their
// digest, kept in a folder. Their content never changes, so nothing watches them. It is safe for concurrent use.
type Definitions struct {
	api    *api // nil if nothing can be fetched; else used by run alone
	folder folder
	log    *slog.Logger
	panics *panics.Recorder
	wake   chan struct{}

	mu    sync.Mutex
	known map[table.ToolFile]*definition
}

// definition is one that a table names.
type definition struct {
	file table.ToolFile
	// there is closed once it can be read.
	there chan struct{}
	// content is nil until it is there, and where the folder has it.
	content []byte
	// why says in a stable sentence why it is not there.
	why string
	// awaited is how long it is waited for.
	awaited time.Time
	// failures are those in a row, and due is when to try again.
	failures int
	due      time.Time
}

func (d *definition) isThere() bool {
	select {
	case <-d.there:
		return true
	default:
		return false
	}
}

// NewDefinitions fetches from the namespace of a ConfigMap, which is that of the table; with nil it has only what the folder
// has. Without a folder what is fetched is held in memory.
func NewDefinitions(c *ConfigMap, path string, log *slog.Logger, faults *panics.Recorder) (*Definitions, error) {
	d := &Definitions{folder: folder{path, log}, log: log, panics: faults, wake: make(chan struct{}, 1), known: map[table.ToolFile]*definition{}}
	if c == nil {
		return d, nil
	}
	var err error
	d.api, err = newAPI(*c)
	return d, err
}

// Begin begins to fetch those that are new. It waits for nothing: a table that names them may have taken away something else.
func (d *Definitions) Begin(files []table.ToolFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	isBegun := false
	for _, file := range files {
		if d.known[file] != nil {
			continue
		}
		next := &definition{file: file, there: make(chan struct{}), why: "was not fetched yet", awaited: time.Now().Add(awaitTime)}
		d.known[file] = next
		switch {
		case d.folder.read(file.SHA256) != nil:
			close(next.there)
		case d.api == nil:
			next.why, next.awaited = "cannot be fetched, since the gateway was started without --configmap", time.Time{}
		default:
			isBegun = true
		}
	}
	if isBegun {
		d.kick()
	}
}

// Await returns when a file can be read, and 2 s after it was begun at the latest: so that what is only on its way is missed by
// nobody who asks meanwhile.
func (d *Definitions) Await(ctx context.Context, file table.ToolFile) {
	d.mu.Lock()
	found := d.known[file]
	if found == nil || found.isThere() || !time.Now().Before(found.awaited) {
		d.mu.Unlock()
		return
	}
	there, left := found.there, time.Until(found.awaited)
	d.mu.Unlock()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-there:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (d *Definitions) kick() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Keep forgets all but the files of the tables in use, and removes them from the folder.
func (d *Definitions) Keep(files []table.ToolFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for file := range d.known {
		if !slices.Contains(files, file) {
			delete(d.known, file)
		}
	}
	d.folder.keep(files)
}

// Read returns the content. The error is a stable sentence without Go's words: why it is not there, or not any more.
func (d *Definitions) Read(file table.ToolFile) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.known[file]
	if found == nil {
		return nil, errors.New("is not one of the table in use")
	}
	if !found.isThere() {
		return nil, errors.New(found.why)
	}
	if found.content != nil {
		return found.content, nil
	}
	if content := d.folder.read(file.SHA256); content != nil {
		return content, nil
	}
	found.there, found.why, found.due = make(chan struct{}), "has gone from the gateway's folder, and is fetched again", time.Time{}
	d.kick()
	return nil, errors.New(found.why)
}

// Arrival is closed when the file can be read.
func (d *Definitions) Arrival(file table.ToolFile) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.known[file]; found != nil {
		return found.there
	}
	return nil
}

// Run fetches what is missing, again and again with growing pauses, until ctx ends.
func (d *Definitions) Run(ctx context.Context) {
	if d.api == nil {
		return
	}
	defer d.api.close()
	for ctx.Err() == nil {
		due, waiting := d.next()
		for _, missing := range due {
			d.attempt(ctx, missing)
		}
		if len(due) > 0 {
			continue
		}
		d.api.close()
		timer := time.NewTimer(waiting)
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next returns what is to be fetched now, and when to look again if nothing is.
func (d *Definitions) next() (due []*definition, waiting time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting = maxDelay
	for _, found := range d.known {
		switch left := time.Until(found.due); {
		case found.isThere():
		case left <= 0:
			due = append(due, found)
		default:
			waiting = min(waiting, left)
		}
	}
	return due, waiting
}

// attempt fetches one once.
func (d *Definitions) attempt(ctx context.Context, missing *definition) {
	content, err := d.fetch(ctx, missing.file)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case ctx.Err() != nil || d.known[missing.file] != missing:
		return
	case err == nil:
		missing.failures = 0
		if !d.folder.write(missing.file.SHA256, content) {
			missing.content = content
		}
		close(missing.there)
		return
	}
	missing.due = time.Now().Add(delay(missing.failures, rand.Float64())) //nolint:gosec // spreads load, keeps no secret
	missing.failures++
	if why := sentence(err); why != missing.why {
		missing.why = why
		d.log.Warn("tools of the table cannot be fetched, which is tried again", "configMap", d.api.Namespace+"/"+missing.file.ConfigMap, "error", err)
	}
}

// contentError says what is wrong with a ConfigMap that was fetched.
type contentError string

func (e contentError) Error() string { return string(e) }

// sentence is an error in words that stay the same.
func sentence(err error) string {
	if wrong, ok := errors.AsType[contentError](err); ok {
		return wrong.Error()
	}
	switch {
	case errors.Is(err, errMissing):
		return "does not exist"
	case errors.Is(err, errForbidden):
		return "may not be read: the gateway's service account lacks get on it"
	}
	return "cannot be fetched from the API server, which is tried again"
}

func (d *Definitions) fetch(ctx context.Context, file table.ToolFile) (content []byte, err error) {
	defer d.panics.Catch("", &err)
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	o, err := d.api.named(ctx, file.ConfigMap)
	if err != nil {
		return nil, err
	}
	var ok bool
	content, ok = o.BinaryData[file.Key]
	if text, isText := o.Data[file.Key]; isText {
		content, ok = []byte(text), true
	}
	if !ok {
		return nil, contentError(fmt.Sprintf("has no key %q", file.Key))
	}
	if strings.HasSuffix(file.Key, ".gz") {
		if content, err = unpack(content); err != nil {
			return nil, contentError(fmt.Sprintf("has under the key %q what cannot be unpacked by gzip", file.Key))
		}
	}
	switch {
	case len(content) > table.MaxToolFileBytes:
		return nil, contentError(fmt.Sprintf("has more than %d bytes under the key %q", table.MaxToolFileBytes, file.Key))
	case !hasDigest(content, file.SHA256):
		return nil, contentError(fmt.Sprintf("has under the key %q another SHA-256 than the table says", file.Key))
	}
	return content, nil
}

func hasDigest(content []byte, digest string) bool {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]) == digest
}

// unpack reads no more than shows that it is too much.
func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, table.MaxToolFileBytes+1))
}
