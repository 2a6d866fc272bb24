//go:build linux

package host

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// RequireFree fails if somebody listens on the TCP address, and says who.
func RequireFree(component, host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err == nil {
		return l.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s cannot listen on %s:%d: %w", component, host, port, err)
	}
	return fmt.Errorf("%s needs port %d on %s, which is taken by %s: stop that first", component, port, host, listener(port))
}

// listener names the process that listens on a TCP port, as far as /proc tells.
func listener(port int) string {
	inode := ""
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if inode == "" {
			inode = listeningInode(table, port)
		}
	}
	if inode == "" {
		return "another process"
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != "socket:["+inode+"]" {
			continue
		}
		pid := strings.Split(link, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			return "process " + pid
		}
		return fmt.Sprintf("%q (pid %s)", strings.TrimSpace(string(name)), pid)
	}
	return "another process (not visible from here)"
}

// listeningInode finds the socket in a table of the form described in proc(5): the local address is
// the second column, the state the fourth (0A is LISTEN), the inode the tenth.
func listeningInode(table string, port int) string {
	f, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	suffix := fmt.Sprintf(":%04X", port)
	for s := bufio.NewScanner(f); s.Scan(); {
		col := strings.Fields(s.Text())
		if len(col) > 9 && col[3] == "0A" && strings.HasSuffix(col[1], suffix) {
			return col[9]
		}
	}
	return ""
}
