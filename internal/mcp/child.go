package mcp

// codeInternal is the JSON-RPC error of a server that is broken inside.
const codeInternal = -32603

// maxChildDetailBytes is how much is shown of how a process ended, such as "exit
// status 1".
const maxChildDetailBytes = 64

// childFailure is the failure that a bridge tells of the process it runs, in the
// data of an error: its class, and in what way. Nil for any other error.
func childFailure(step string, e *rpcError) *Error {
	if e == nil || e.code != codeInternal {
		return nil
	}
	detail := cleanLine(e.data.member("detail").text(4*maxChildDetailBytes), maxChildDetailBytes)
	if detail != "" {
		detail = " (" + detail + ")"
	}
	switch e.data.member("class").text(64) {
	case string(ChildExited):
		return failure(ChildExited, nil, "The server's process ended%s before it answered %s. "+
			"Look at the container's log, and check spec.command and spec.args.", detail, step)
	case string(ChildSilent):
		return failure(ChildSilent, nil, "The server's process runs, and did not answer %s over its standard output%s. "+
			"Look at the container's log; does spec.command start a server of standard input and output?", step, detail)
	}
	return nil
}
