package child

import "syscall"

// attributes put a child in a process group of its own, and let the kernel kill it if the gateway dies without a word. The latter is
// bound to the thread that starts the child, which is why none of the gateway's threads may end: Go ends one only when a
// goroutine returns that is locked to it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
