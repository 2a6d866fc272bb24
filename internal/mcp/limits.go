package mcp

import "time"

// Limits bounds what a probe spends on one server. A field that is zero means
// the value of [DefaultLimits].
type Limits struct {
	// Total is the time for a whole Probe or Check.
	Total time.Duration
	// Request is the time for one request, from dialling to the last byte read.
	Request time.Duration
	// Connect is the time for a TCP connect, and again for a TLS handshake.
	Connect time.Duration
	// SessionEnd is the time for ending sessions, spent on top of Total.
	SessionEnd time.Duration

	// HeaderBytes bounds the header of one response.
	HeaderBytes int64
	// BodyBytes bounds the body of one response. Bodies are never decompressed.
	BodyBytes int64
	// TotalBytes bounds all that is read from the server in one Probe or Check.
	TotalBytes int64
	// EventBytes bounds one server-sent event.
	EventBytes int
	// Events bounds the server-sent events of one response.
	Events int
	// Depth bounds how deep JSON may be nested.
	Depth int
	// Members bounds the members of one JSON object.
	Members int

	// Pages bounds the pages of one list.
	Pages int
	// Entries bounds the entries of one list, all pages together.
	Entries int
	// DigestBytes bounds the bytes looked at to digest the definitions of all
	// tools; what is inside nested containers counts once for each of them.
	DigestBytes int64
	// Tools bounds the tools kept in a Result; more than that are counted only.
	Tools int
	// InstructionsBytes bounds Result.Instructions.
	InstructionsBytes int
	// IdentityBytes bounds each string of ServerInfo and the resource metadata
	// address.
	IdentityBytes int
}

// DefaultLimits returns the limits the operator uses.
func DefaultLimits() Limits {
	return Limits{
		Total:      15 * time.Second,
		Request:    5 * time.Second,
		Connect:    2 * time.Second,
		SessionEnd: time.Second,

		HeaderBytes: 64 << 10,
		BodyBytes:   4 << 20,
		TotalBytes:  16 << 20,
		EventBytes:  1 << 20,
		Events:      10_000,
		Depth:       64,
		Members:     10_000,

		Pages:             100,
		Entries:           10_000,
		DigestBytes:       64 << 20,
		Tools:             512,
		InstructionsBytes: 4 << 10,
		IdentityBytes:     256,
	}
}

// withDefaults fills what is zero.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	orDefault(&l.Total, d.Total)
	orDefault(&l.Request, d.Request)
	orDefault(&l.Connect, d.Connect)
	orDefault(&l.SessionEnd, d.SessionEnd)
	orDefault(&l.HeaderBytes, d.HeaderBytes)
	orDefault(&l.BodyBytes, d.BodyBytes)
	orDefault(&l.TotalBytes, d.TotalBytes)
	orDefault(&l.EventBytes, d.EventBytes)
	orDefault(&l.Events, d.Events)
	orDefault(&l.Depth, d.Depth)
	orDefault(&l.Members, d.Members)
	orDefault(&l.Pages, d.Pages)
	orDefault(&l.Entries, d.Entries)
	orDefault(&l.DigestBytes, d.DigestBytes)
	orDefault(&l.Tools, d.Tools)
	orDefault(&l.InstructionsBytes, d.InstructionsBytes)
	orDefault(&l.IdentityBytes, d.IdentityBytes)
	return l
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
