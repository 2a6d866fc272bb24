//go:build linux

// Package host is the machine the cluster runs on: what it must offer, and the few things the cluster
// changes on it. Whatever is missing is told in one sentence that says what to do. Each change is
// recorded before it is made, and undone by `down`.
package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Packages are the Debian packages that running the cluster needs, and building runc.
var Packages = []string{"iptables", "nftables", "ipset", "conntrack", "iproute2", "gcc", "libc6-dev", "libseccomp-dev", "pkg-config"}

// RequireRoot fails unless the effective user is root.
func RequireRoot(command string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("`devcluster %s` needs root, because nodes are network namespaces, cgroups and mounts: run it with sudo", command)
	}
	return nil
}

// EnsurePackages installs those of the given Debian packages that are missing. On another
// distribution it trusts that the commands are there and says so when one is not.
func EnsurePackages(names ...string) (outcome string, err error) {
	if !installed("dpkg-query") {
		return "not Debian: not checked", nil
	}
	missing, err := missingPackages(names)
	if err != nil || len(missing) == 0 {
		return "nothing to install", err
	}
	list := strings.Join(missing, " ")
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("missing Debian packages: run `sudo apt-get install %s`, or run this as root", list)
	}
	if err := apt("update", "-q"); err != nil {
		return "", fmt.Errorf("refresh the package lists to install %s: %w", list, err)
	}
	if err := apt(append([]string{"install", "-yq", "--no-install-recommends"}, missing...)...); err != nil {
		return "", fmt.Errorf("install the Debian packages %s: %w", list, err)
	}
	return "installed " + list, nil
}

func missingPackages(names []string) ([]string, error) {
	// An unknown package makes dpkg-query exit with 1 and still list the others.
	out, err := exec.Command("dpkg-query", append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"}, names...)...).Output()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
		return nil, fmt.Errorf("ask dpkg for installed packages: %w", err)
	}
	lines := strings.Split(string(out), "\n")
	var missing []string
	for _, n := range names {
		if !slices.Contains(lines, n+" installed") {
			missing = append(missing, n)
		}
	}
	return missing, nil
}

func apt(args ...string) error {
	cmd := exec.Command("apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("apt-get %s: %w: %s", args[0], err, lines[len(lines)-1])
	}
	return nil
}

// Commands that the daemons call by name.
var commands = []string{"iptables", "iptables-save", "iptables-restore", "ipset", "conntrack", "mount", "umount"}

// RequireCommands fails if a program that a daemon calls is missing.
func RequireCommands() error {
	for _, c := range commands {
		if !installed(c) {
			return fmt.Errorf("the command %q is missing: install your distribution's package of it (Debian: apt-get install %s)",
				c, strings.Join(Packages, " "))
		}
	}
	return nil
}

func installed(command string) bool {
	_, err := lookPath(command)
	return err == nil
}

// lookPath also looks where root's programs are: a user's PATH under sudo may not name these folders.
func lookPath(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if p, err := exec.LookPath(dir + name); err == nil {
			return p, nil
		}
	}
	return "", exec.ErrNotFound
}

// LoadModules asks the kernel for what the network of nodes needs. Kernels with everything built in
// have no modprobe and need none; what is truly missing shows when it is used.
func LoadModules() {
	modprobe, err := lookPath("modprobe")
	if err != nil {
		return
	}
	for _, m := range []string{"overlay", "br_netfilter", "veth", "ip_set", "xt_set", "nf_conntrack"} {
		_ = exec.Command(modprobe, "-q", m).Run()
	}
}
