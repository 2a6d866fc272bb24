// Package progress prints what a long command is doing, one line per step with its time.
// On a terminal the line of the running step counts the seconds.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Printer writes lines; its methods may be called from several goroutines.
type Printer struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool
	start time.Time
}

// New writes to out. Lines are rewritten in place if out is a terminal.
func New(out *os.File) *Printer {
	info, err := out.Stat()
	live := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &Printer{out: out, live: live, start: time.Now()}
}

// Say prints a line, with the time since the printer was made.
func (p *Printer) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "%5.1fs  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// Plain prints a line as it is.
func (p *Printer) Plain(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// Elapsed is the time since the printer was made.
func (p *Printer) Elapsed() time.Duration { return time.Since(p.start) }

// Step prints "[i/n] title … ", runs do, and ends the line with the word do returned and its time.
// One step runs at a time.
func (p *Printer) Step(i, n int, title string, do func() (outcome string, err error)) error {
	head := fmt.Sprintf("[%d/%d] %s … ", i, n, title)
	begin := time.Now()
	p.print(head)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go p.count(head, begin, stop, stopped)
	outcome, err := do()
	close(stop)
	<-stopped
	took := fmt.Sprintf("%.1fs", time.Since(begin).Seconds())
	if err != nil {
		outcome = "failed"
	}
	if outcome != "" {
		took = outcome + ", " + took
	}
	if p.live {
		p.print("\r\033[K" + head)
	}
	p.print(took + "\n")
	return err
}

func (p *Printer) count(head string, begin time.Time, stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	if !p.live {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			p.print(fmt.Sprintf("\r\033[K%s%.0fs", head, time.Since(begin).Seconds()))
		}
	}
}

func (p *Printer) print(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.out, s)
}
