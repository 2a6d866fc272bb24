//go:build linux

package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

const netnsDir = "/run/netns"

// ensureNetNS makes a named network namespace, as `ip netns add` does. A name that a killed run left
// without a namespace behind it is taken over.
func ensureNetNS(name string) error {
	path := filepath.Join(netnsDir, name)
	if isNetNS(path) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the stale network namespace %s: %w", name, err)
	}
	errs := make(chan error)
	go func() {
		// The thread ends with this goroutine: it is never unlocked, so no other goroutine runs in
		// the new namespace.
		runtime.LockOSThread()
		_, err := netns.NewNamed(name)
		errs <- err
	}()
	if err := <-errs; err != nil {
		return fmt.Errorf("create network namespace %s: %w (this needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN; a container usually lacks them)", name, err)
	}
	return nil
}

func isNetNS(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

func removeNetNS(name string) error {
	path := filepath.Join(netnsDir, name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("release network namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	return nil
}

// Ours lists the named network namespaces that this package made.
func ours() ([]string, error) {
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list network namespaces: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "mcpdev-") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Inode identifies the named network namespace; 0 if there is none.
func Inode(name string) uint64 {
	path := filepath.Join(netnsDir, name)
	var st syscall.Stat_t
	if !isNetNS(path) || syscall.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// Enter runs do on a thread inside the named network namespace: processes it starts live there.
func Enter(name string, do func() error) error {
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is not fit for anything else afterwards
		errs <- func() error {
			ns, err := netns.GetFromName(name)
			if err != nil {
				return fmt.Errorf("open network namespace %s: %w", name, err)
			}
			defer func() { _ = ns.Close() }()
			if err := netns.Set(ns); err != nil {
				return fmt.Errorf("enter network namespace %s: %w", name, err)
			}
			return do()
		}()
	}()
	return <-errs
}

// in gives do a netlink handle that works inside the named network namespace.
func in(name string, do func(*netlink.Handle) error) error {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", name, err)
	}
	defer func() { _ = ns.Close() }()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("talk to the kernel in network namespace %s: %w", name, err)
	}
	defer h.Close()
	if err := do(h); err != nil {
		return fmt.Errorf("network namespace %s: %w", name, err)
	}
	return nil
}

// setSysctl writes a setting of the namespace that the calling thread is in.
func setSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", name)
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		return fmt.Errorf("set %s to %s: %w (is the kernel module there? try: modprobe br_netfilter)", name, value, err)
	}
	return nil
}

func peerNamespace() (netlink.NsFd, func(), error) {
	ns, err := netns.GetFromName(layout.SwitchNetNS)
	if err != nil {
		return 0, nil, fmt.Errorf("open network namespace %s: %w", layout.SwitchNetNS, err)
	}
	return netlink.NsFd(ns), func() { _ = ns.Close() }, nil
}
