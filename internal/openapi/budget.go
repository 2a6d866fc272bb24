package openapi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxTime bounds the time that a document takes. The other bounds hold first, but for what nobody thought of.
const maxTime = 5 * time.Second

// ErrTime says that a document takes too long: on a machine with less to do it may not.
var ErrTime = fmt.Errorf("it takes more than %s to read, which is the limit: cut out what is not needed, or choose fewer operations by include "+
	"and exclude", maxTime)

// errBudget says that a document costs too much.
var errBudget = fmt.Errorf("the schemas of the operations before it have more than %d parts together: choose fewer by include and exclude", maxParts)

// budget is what a document may cost yet.
type budget struct {
	left  int // parts, for the whole document
	clock clock
	// blind says that something of a schema was not looked at for want of parts, so that what was made of it may be wrong.
	blind bool
}

func newBudget(ctx context.Context) *budget { return &budget{left: maxParts, clock: clock{ctx: ctx}} }

// spend takes parts off. What costs none is never refused, but when the time is over.
func (b *budget) spend(parts int) error {
	if b.left -= parts; parts > 0 && b.left < 0 {
		return errBudget
	}
	return b.clock.check()
}

// note remembers an error of spend that nobody is told.
func (b *budget) note(err error) { b.blind = b.blind || errors.Is(err, errBudget) }

// clock looks every now and then whether the time is over.
type clock struct {
	ctx  context.Context //nolint:containedctx // of one call of Compile, which makes it
	seen int
	err  error
}

func (c *clock) check() error {
	const pause = 64
	if c.seen++; c.seen%pause == 0 {
		return c.now()
	}
	return c.err
}

// now looks at once: for what is long by itself.
func (c *clock) now() error {
	if c.err != nil || c.ctx.Err() == nil {
		return c.err
	}
	c.err = context.Cause(c.ctx)
	if !errors.Is(c.err, ErrTime) {
		c.err = fmt.Errorf("it was given up: %w", c.err)
	}
	return c.err
}
