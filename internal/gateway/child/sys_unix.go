//go:build unix && !linux

package child

import "syscall"

// attributes put a child in a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reapOrphans is for process 1 of a container.
func reapOrphans() {}
