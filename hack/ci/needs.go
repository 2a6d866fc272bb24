package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A need is something a machine may lack without anything being wrong.
type need struct {
	// missing says in one clause what is lacking and what to do; empty if met.
	missing func(context.Context) string
	// forgiven needs concern the outside world: a run that demands
	// everything does not fail for them, but still says so.
	forgiven bool
}

var (
	linux = need{missing: func(context.Context) string {
		if runtime.GOOS == "linux" {
			return ""
		}
		return fmt.Sprintf("the local cluster runs on Linux only, this is %s", runtime.GOOS)
	}}
	root = need{missing: func(context.Context) string {
		if os.Geteuid() == 0 {
			return ""
		}
		return fmt.Sprintf("the local cluster needs root, this is user id %d; run it with sudo -E", os.Geteuid())
	}}
	// npm: where there is apt-get, the build of the images installs it.
	npm = need{missing: func(context.Context) string {
		for _, command := range []string{"npm", "apt-get"} {
			if _, err := exec.LookPath(command); err == nil {
				return ""
			}
		}
		return "npm is not in PATH; some of the MCP servers tested with come from npm"
	}}
	installedNPM = need{missing: func(context.Context) string {
		if _, err := exec.LookPath("npm"); err == nil {
			return ""
		}
		return "npm is not in PATH; the suites come from npm"
	}}
	// apiServer: our etcd and kube-apiserver build on Linux; elsewhere
	// KUBEBUILDER_ASSETS may name a folder that has both.
	apiServer = need{missing: func(context.Context) string {
		if runtime.GOOS == "linux" || os.Getenv("KUBEBUILDER_ASSETS") != os.Getenv("DEVCLUSTER_DIR")+"/assets" {
			return ""
		}
		return "no etcd and kube-apiserver for this system; let KUBEBUILDER_ASSETS name a folder that has them"
	}}
	// postgres: internal/gateway/toolset looks at the same places.
	postgres = need{missing: func(context.Context) string {
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
		if _, lookErr := exec.LookPath("initdb"); lookErr == nil || err == nil && len(found) > 0 {
			return ""
		}
		return "PostgreSQL is not installed, so tools of SQL statements were not tested; Debian's package postgresql has it"
	}}
	vulnerabilityDatabase = need{forgiven: true, missing: func(ctx context.Context) string {
		return databaseMissing(ctx, 20*time.Second, "go", "tool", "-modfile=tools/go.mod", "govulncheck", "-scan=package", "./hack/ci")
	}}
)

// databaseMissing runs a quick scan to learn whether the vulnerability
// database can be reached. Only a failure to fetch counts as unreachable; any
// other failure is left for the step itself to show.
func databaseMissing(ctx context.Context, timeout time.Duration, name string, args ...string) string {
	// The tool may have to be compiled first, which is not the network's fault.
	_ = exec.CommandContext(ctx, name, append(slices.Clip(args), "-h")...).Run()

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	switch {
	case err == nil:
		return ""
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("database unreachable: no answer within %s", timeout)
	case strings.Contains(string(out), "fetching vulnerabilities"):
		return "database unreachable from this machine"
	default:
		return ""
	}
}
