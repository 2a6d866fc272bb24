//go:build linux

package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

const sysctlRoot = "/proc/sys"

// raised are limits we raise: every pod's log and every kubelet watch files.
var raised = map[string]int{
	"fs/inotify/max_user_instances": 8192,
	"fs/inotify/max_user_watches":   1 << 20,
}

// setByKubelet are settings of the whole machine that a kubelet writes at its start.
var setByKubelet = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// RaiseLimits records the settings of the machine that the cluster changes, and raises those that it
// needs higher. What the machine does not let us write stays as it is.
func RaiseLimits(r *record.Record) error {
	for name, value := range setByKubelet {
		if before, err := readSysctl(name); err == nil && before != value {
			r.AddSysctl(name, before, value)
		}
	}
	var write []string
	for name, value := range raised {
		before, err := readSysctl(name)
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(before); err == nil && n < value {
			r.AddSysctl(name, before, strconv.Itoa(value))
			write = append(write, name)
		}
	}
	if err := r.Save(); err != nil {
		return err
	}
	for _, name := range write {
		_ = writeSysctl(name, r.Sysctls[name].Caused)
	}
	return nil
}

// RestoreSysctls gives every recorded setting its old value, unless somebody has changed it since.
func RestoreSysctls(r *record.Record) error {
	var errs []error
	for name, s := range r.Sysctls {
		now, err := readSysctl(name)
		if err != nil || now != s.Caused {
			continue
		}
		errs = append(errs, writeSysctl(name, s.Before))
	}
	return errors.Join(errs...)
}

func readSysctl(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(sysctlRoot, name))
	if err != nil {
		return "", fmt.Errorf("read the kernel setting %s: %w", name, err)
	}
	return strings.TrimSpace(string(b)), nil
}

func writeSysctl(name, value string) error {
	if err := os.WriteFile(filepath.Join(sysctlRoot, name), []byte(value), 0o644); err != nil {
		return fmt.Errorf("set the kernel setting %s to %s: %w", name, value, err)
	}
	return nil
}
