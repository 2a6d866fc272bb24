package child

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Sessions says who shares a process; the package comment has the reasons.
type Sessions string

const (
	// Auto gives a legacy client that can be asked something a process of its own, and lets everybody else share one.
	Auto Sessions = "Auto"
	// Stateful gives every legacy session a process of its own.
	Stateful Sessions = "Stateful"
	// Stateless lets all clients share one process.
	Stateless Sessions = "Stateless"
)

// Options configure a Backend. Zero values are replaced by the defaults named.
type Options struct {
	// Name is the backend's in the table.
	Name string
	// Version is the gateway's, told to the child.
	Version string
	// Command is the program and its arguments; no shell.
	Command []string
	// Env is the environment of the child; nil is the gateway's own.
	Env []string
	// Dir is the working directory of the child; empty is the gateway's own.
	Dir string
	// Sessions says who shares a process; default Auto.
	Sessions Sessions
	// ProtocolVersion pins the era that is spoken to that of 2025-11-25 or of 2026-07-28; empty finds out.
	ProtocolVersion string
	// Logger gets state changes and noise, never arguments or results; default slog.Default().
	Logger *slog.Logger
	// Panics tells of faults of the gateway's own; default the default logger.
	Panics *panics.Recorder
	// Stderr gets the children's stderr, line by line; default os.Stderr.
	Stderr io.Writer
	// MaxChildren bounds the processes that belong to one session; default 8.
	MaxChildren int
	// MaxSessions bounds the sessions known; beyond it the one unused for longest is forgotten. Default 10000.
	MaxSessions int
	// StartTimeout bounds the time from the start of a process to its first answer; default 30 s.
	StartTimeout time.Duration
	// DiscoverTimeout is how long a process may be silent after server/discover before a second one is asked initialize
	// instead; default 3 s.
	DiscoverTimeout time.Duration
	// HoldTimeout is how long calls wait for a process that restarts; default 10 s.
	HoldTimeout time.Duration
	// CallTimeout bounds a call; default 60 s.
	CallTimeout time.Duration
	// HangTimeout is how long a process may owe an answer without saying anything; default twice CallTimeout.
	HangTimeout time.Duration
	// IdleTimeout ends sessions, and their processes, that are not used; default 30 min.
	IdleTimeout time.Duration
	// StopGrace is how long a process may take to end: half of it after its stdin was closed, half after SIGTERM; default 5 s.
	StopGrace time.Duration
	// LineLimit bounds one message on stdout, in bytes; default 16 MiB.
	LineLimit int
}

// withDefaults checks the options and fills in defaults.
func (o *Options) withDefaults() error {
	if len(o.Command) == 0 || o.Command[0] == "" {
		return errors.New("child: the command is empty: give the program and its arguments")
	}
	for _, word := range o.Command {
		if strings.ContainsRune(word, 0) {
			return errors.New("child: the command has a NUL byte in it")
		}
	}
	o.Sessions = cmp.Or(o.Sessions, Auto)
	if o.Sessions != Auto && o.Sessions != Stateful && o.Sessions != Stateless {
		return fmt.Errorf("child: sessions %q is none of Auto, Stateful, Stateless", o.Sessions)
	}
	if v := o.ProtocolVersion; v != "" && v != wire.Version20251125 && v != wire.Version20260728 {
		return fmt.Errorf("child: protocol version %q is neither %s nor %s", v, wire.Version20251125, wire.Version20260728)
	}
	o.Version = cmp.Or(o.Version, "dev")
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = o.Logger.With("backend", o.Name)
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	o.MaxChildren = cmp.Or(o.MaxChildren, 8)
	o.MaxSessions = cmp.Or(o.MaxSessions, 10000)
	o.StartTimeout = cmp.Or(o.StartTimeout, 30*time.Second)
	o.DiscoverTimeout = cmp.Or(o.DiscoverTimeout, 3*time.Second)
	o.HoldTimeout = cmp.Or(o.HoldTimeout, 10*time.Second)
	o.CallTimeout = cmp.Or(o.CallTimeout, time.Minute)
	o.HangTimeout = cmp.Or(o.HangTimeout, 2*o.CallTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 30*time.Minute)
	o.StopGrace = cmp.Or(o.StopGrace, 5*time.Second)
	o.LineLimit = cmp.Or(o.LineLimit, 16<<20)
	return nil
}

// limits are what a message of the child's may be like. They are wider than those for clients: a catalog of 512 tools has many
// members, and the child is the user's own program.
func (o *Options) limits() wire.Limits {
	return wire.Limits{Bytes: o.LineLimit, Depth: 512, Members: 100_000}
}
