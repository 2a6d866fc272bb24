package toolset

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	defaultInterval = 5 * time.Minute
	// checkTime bounds one check, failureMemory is how long one that failed answers for the next.
	checkTime     = 15 * time.Second
	failureMemory = time.Second

	defaultRows     = 100
	defaultRowBytes = 1 << 20
)

// database offers one SQL statement.
type database struct {
	*Backend

	config   *table.PostgresTool
	pool     *pool
	tool     *tool
	interval time.Duration
	maxRows  int
	maxBytes int

	closed chan struct{} // ends a check
	once   sync.Once

	mu      sync.Mutex
	checked time.Time // of the last check; zero has the next caller wait for another
	plan    *plan     // what the last check that succeeded found; nil if the last one failed
	err     error     // of the last check
	running chan struct{}
	// forgotten says that what the check that runs will find is to be looked at again: it may have looked before.
	forgotten bool
}

// plan is what the server says of the statement.
type plan struct {
	params []uint32 // the OIDs of the parameters' types
}

func newDatabase(b *Backend, config *table.PostgresTool, o Options) *database {
	d := &database{
		Backend: b, config: config, pool: newPool(b, config, o), interval: o.CheckInterval, maxRows: config.MaxRows, maxBytes: config.MaxBytes,
		closed: make(chan struct{}),
	}
	if d.interval == 0 {
		d.interval = defaultInterval
	}
	if d.maxRows == 0 {
		d.maxRows = defaultRows
	}
	if d.maxBytes == 0 {
		d.maxBytes = defaultRowBytes
	}
	var err error
	if d.tool, err = newTool(config.Definition); err != nil {
		d.log.Warn("a tool is not offered", "error", err)
		d.tool, d.err = nil, b.failure(classDefinition, false, "not offered: "+err.Error(), err)
	}
	return d
}

// tools is the statement, once the server has taken it. Who comes while that is known waits for nobody: what is old is
// looked at again beside.
func (d *database) tools(ctx context.Context) ([]*tool, error) {
	if d.tool == nil {
		return nil, d.err
	}
	if _, err := d.planned(ctx); err != nil {
		return nil, err
	}
	return []*tool{d.tool}, nil
}

// planned is what the server says of the statement. Who waits for a check whose findings are to be looked at again waits for the next,
// which has begun after all that was forgotten by then.
func (d *database) planned(ctx context.Context) (*plan, error) {
	found, isForgotten, err := d.look(ctx)
	if isForgotten {
		found, _, err = d.look(ctx)
	}
	return found, err
}

// look returns what is known, or what the next check finds; isForgotten says that this was forgotten during the check.
func (d *database) look(ctx context.Context) (found *plan, isForgotten bool, err error) {
	d.mu.Lock()
	age := time.Since(d.checked)
	switch {
	case d.plan != nil && age >= d.interval && !d.checked.IsZero():
		d.start(ctx)
		defer d.mu.Unlock()
		return d.plan, false, nil
	case d.plan != nil && !d.checked.IsZero(), d.err != nil && age < failureMemory:
		defer d.mu.Unlock()
		return d.plan, false, d.err
	}
	d.start(ctx)
	running := d.running
	d.mu.Unlock()
	select {
	case <-running:
	case <-ctx.Done():
		return nil, false, d.failure(classTimeout, false, "", context.Cause(ctx))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.plan, d.checked.IsZero(), d.err
}

// start begins a check unless one runs. The caller holds the lock.
func (d *database) start(ctx context.Context) {
	if d.running != nil {
		return
	}
	running := make(chan struct{})
	d.running, d.forgotten = running, false
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
		defer cancel()
		go func() {
			select {
			case <-d.closed:
				cancel()
			case <-ctx.Done():
			}
		}()
		found, err := d.inspect(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		if err != nil && (d.err == nil || d.err.Error() != err.Error()) {
			d.log.Warn("the statement is not offered", "error", err)
		}
		d.plan, d.err, d.checked, d.running = found, err, time.Now(), nil
		if d.forgotten {
			d.checked = time.Time{}
		}
		close(running)
	}()
}

func (d *database) check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// renewed says nothing: a database is asked again in time.
func (*database) renewed() <-chan struct{} { return nil }

func (d *database) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checked, d.forgotten = time.Time{}, true
}

func (d *database) close(ctx context.Context) {
	d.once.Do(func() { close(d.closed) })
	d.pool.close(ctx)
}

// call runs the statement.
func (d *database) call(ctx context.Context, t *tool, args arguments) (*result, error) {
	known, err := d.planned(ctx)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(d.config.Params))
	for i, p := range d.config.Params {
		if values[i], err = encodeParam(p.Argument, known.params[i], args[p.Argument]); err != nil {
			return failed("nothing was sent: %v", err), nil
		}
	}
	l, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer d.pool.reclaim(ctx, l)
	found, err := d.execute(ctx, l.connection, known.params, values)
	switch {
	case err == nil && found.abandoned:
		d.pool.drop(ctx, l)
		return found.result(t), nil
	case err == nil:
		err = d.finish(ctx, l)
	}
	if err != nil {
		d.pool.drop(ctx, l)
		return d.refused(ctx, err)
	}
	return found.result(t), nil
}

// refused is the result of a statement that failed. The connection is not used again: an error is rare, and what state it leaves
// behind is not worth finding out.
func (d *database) refused(ctx context.Context, err error) (*result, error) {
	state, ok := sqlState(err)
	switch {
	case ctx.Err() != nil, state == queryCanceled, errors.Is(err, os.ErrDeadlineExceeded): // a write's deadline is ctx's, and may be first
		return nil, d.failure(classTimeout, true, "", errors.Join(context.Cause(ctx), err))
	case errors.Is(err, errRowTooLarge):
		return failed("%v", err), nil
	case answerErrorOf(err) != nil:
		return nil, d.failure(classServerError, true, answerErrorOf(err).Error(), err)
	case !ok:
		return nil, d.failure(classServerError, true, "the connection to the database broke off", err)
	case isOutage(state):
		return nil, d.failure(classServerError, true, explain(err), err)
	}
	if isStatement(state) {
		d.forget()
	}
	return failed("the database refused the statement, and nothing was changed: %s", explain(err)), nil
}
