// Package child is a backend over child processes that speak MCP on stdin and stdout.
//
// Which versions a program speaks is found out on fresh processes, since some exit on a first message they do not know and some
// stay silent: one is asked server/discover (2026-07-28), another initialize (up to 2025-11-25). A program that speaks both gets
// a process for each, so that a client of either version is served natively; what was found out holds across restarts, until
// a process answers otherwise.
//
// # Who shares a process
//
// Protocol version 2026-07-28 has no sessions: state that outlives a request is named by the client in its arguments, so one
// process serves everybody. A legacy session over stdio is the process itself. By default (Auto) a client that declares a
// capability a server could use (sampling, elicitation, roots) gets a process of its own, because the server's requests and log
// messages on a pipe do not say whom they are for; so at most MaxChildren clients at a time, of whom one that is
// idle, without a stream, makes room for another. Everybody else shares one process
// that was told of no such capability, and of which nothing but answers, progress, changes of lists and of resources subscribed to
// reaches a client: its log messages may be about anybody's call and are dropped, its tasks cannot be listed.
//
// Stateful gives every legacy session, and every subject of Shared, a process of its own: for servers that keep a client's state in
// memory, such as a train of thought or a browser. Beyond MaxChildren a session is refused rather than shared, unless
// one has been without its client for a minute. It does not
// change what 2026-07-28 means: those requests share a process. Stateless never starts more than one process per protocol version:
// for servers that must not run twice, because of a lock, a port or their size, at the price that no client can be asked.
//
// A session that has its own process ends with it (backend.ErrSession): what the process knew is gone, and the caller decides
// whether to go on. Sessions of a shared process outlive it.
//
// # Supervision
//
// A shared process that ends is started again, 0.1 to 5 s later. Calls that were not written to its stdin wait for that; those
// that were, even in part, fail and are not sent twice. A process that owes an answer and says nothing at all is pinged, and killed if
// it stays silent. Lines on stdout that are no MCP message are counted and dropped. Nobody waits for a slow reader:
// what one call may hold back is bounded, and the call is cut. Arguments and results are not logged.
package child
