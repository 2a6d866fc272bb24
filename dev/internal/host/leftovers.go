//go:build linux

package host

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// shimFolder is where containerd's shims have their sockets.
const shimFolder = "/run/containerd/s"

// outsideFolders are where containerd, CNI and the kubelet write no matter what they are told.
var outsideFolders = []string{
	"/opt/containerd", "/opt/containerd/bin", "/opt/containerd/lib",
	"/run/containerd", shimFolder, "/run/mount",
	"/var/lib/cni", "/var/lib/cni/results",
	"/var/lib/kubelet", "/var/lib/kubelet/device-plugins",
	"/var/log/containers", "/var/log/pods",
}

// NoteFolders records those of the folders outside that are not there yet.
func NoteFolders(r *record.Record) {
	for _, dir := range outsideFolders {
		if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
			r.AddFolder(dir)
		}
	}
}

// LinkVolumes makes the fixed path of hostpath volumes lead into the state folder. A folder that is
// already there is somebody else's choice and is used as it is.
func LinkVolumes(l layout.Layout) error {
	if err := os.MkdirAll(l.Volumes(), 0o755); err != nil {
		return fmt.Errorf("create the folder of volumes: %w", err)
	}
	if to, err := os.Readlink(layout.VolumeLink); err == nil && to != l.Volumes() {
		if _, err := os.Stat(to); err == nil {
			return fmt.Errorf("%s leads to %s, another state folder's: remove the link", layout.VolumeLink, to)
		}
		if err := os.Remove(layout.VolumeLink); err != nil {
			return fmt.Errorf("replace the link %s: %w", layout.VolumeLink, err)
		}
	}
	if err := os.Symlink(l.Volumes(), layout.VolumeLink); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("link the folder of volumes: %w", err)
	}
	return nil
}

// Unmount releases every mount below the given folders, the innermost first.
func Unmount(below ...string) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	defer func() { _ = f.Close() }()
	var points []string
	for s := bufio.NewScanner(f); s.Scan(); {
		col := strings.Fields(s.Text())
		point := unescapeMount(col[4])
		if slices.ContainsFunc(below, func(dir string) bool { return strings.HasPrefix(point, dir+"/") }) {
			points = append(points, point)
		}
	}
	slices.Reverse(points) // the kernel lists a mount after the one it lies in
	var errs []error
	for _, p := range points {
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

// unescapeMount undoes the kernel's octal escapes of blanks in mount points.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// RemoveLeftovers removes the cluster's files outside the state folder, and then the recorded folders
// that are empty. Files of other programs in the same folders stay.
func RemoveLeftovers(l layout.Layout, r *record.Record) error {
	doomed := cniResults("/var/lib/cni/results")
	doomed = append(doomed, linksInto("/var/log/containers", l.Dir)...)
	doomed = append(doomed, linksInto(filepath.Dir(layout.VolumeLink), l.Volumes())...)
	if slices.Contains(r.Folders, "/var/lib/kubelet/device-plugins") {
		plugins, _ := filepath.Glob("/var/lib/kubelet/device-plugins/*")
		doomed = append(doomed, plugins...)
	}
	if slices.Contains(r.Folders, shimFolder) {
		dead, err := deadSockets(shimFolder)
		if err != nil {
			return err
		}
		doomed = append(doomed, dead...)
	}
	var errs []error
	for _, path := range doomed {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a leftover: %w", err))
		}
	}
	if err := removeTree(layout.RunDir); err != nil {
		errs = append(errs, err)
	}
	folders := slices.Clone(r.Folders)
	slices.Sort(folders)
	slices.Reverse(folders) // children first
	for _, dir := range folders {
		_ = os.Remove(dir) // only if it is empty; otherwise another program uses it by now
	}
	return errors.Join(errs...)
}

func linksInto(dir, target string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var links []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		to, err := os.Readlink(path)
		if err == nil && (to == target || strings.HasPrefix(to, target+"/")) {
			links = append(links, path)
		}
	}
	return links
}

// cniResults are the files that CNI keeps of pods whose network namespaces are in our runtime folder.
func cniResults(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	return slices.DeleteFunc(files, func(f string) bool {
		b, err := os.ReadFile(f)
		return err != nil || !strings.Contains(string(b), `"`+layout.RunDir+"/")
	})
}

// deadSockets are the Unix sockets in a folder that no process listens on. A shim that is killed
// leaves its own behind.
func deadSockets(dir string) ([]string, error) {
	open, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("list open sockets: %w", err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	return slices.DeleteFunc(files, func(f string) bool {
		info, err := os.Lstat(f)
		return err != nil || info.Mode()&os.ModeSocket == 0 || strings.Contains(string(open), f)
	}), nil
}

// removeTree removes a folder but stops at a mount that could not be released: what is below is not ours.
func removeTree(dir string) error {
	f, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	if strings.Contains(string(f), " "+dir+"/") {
		return fmt.Errorf("%s still contains a mount, so it is not removed: see /proc/self/mountinfo", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// RemoveState removes folders of the state folder, after a look that nothing is mounted there.
func RemoveState(paths ...string) error {
	var errs []error
	for _, p := range paths {
		errs = append(errs, removeTree(p))
	}
	return errors.Join(errs...)
}
