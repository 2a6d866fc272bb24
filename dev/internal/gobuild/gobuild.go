// Package gobuild runs `go build` for the cluster's binaries and images, and turns what goes wrong with
// it into a sentence.
package gobuild

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const modulePath = "github.com/mcp-operator/mcp-operator/dev"

// Source finds the folder dev/ of the repository: the one that holds the current folder, or else the
// one that this program was compiled from.
func Source() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the source of devcluster: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "dev")} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Join(filepath.Dir(file), "..", ".."); isSource(dir) {
			return dir, nil
		}
	}
	return "", errors.New("the source of devcluster (the folder dev/ of the mcp-operator repository) is not here: run it from inside the repository")
}

func isSource(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && bytes.HasPrefix(b, []byte("module "+modulePath+"\n"))
}

// Project is the folder of the repository, given that of dev/.
func Project(source string) string { return filepath.Dir(source) }

// LeanFlags leave out all debug information, which makes a cold build cheaper by a quarter. Whatever is
// built with the same flags shares the compiler's cache, the standard library above all.
var LeanFlags = []string{"-trimpath", "-gcflags=all=-dwarf=false"}

// goEnv is the environment of every build: no version control stamp, which would make each commit a
// change, and a lazier garbage collector for the compiler, which saves a quarter of its time.
func goEnv(cgo string) []string {
	return append(os.Environ(), "CGO_ENABLED="+cgo, "GOFLAGS=-buildvcs=false", "GOGC=400", "GOWORK=off")
}

// RequireGo says in one sentence what is wrong with the Go installation, if anything.
func RequireGo(source string) (version string, err error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("there is no `go` in PATH: install Go 1.26 or newer")
	}
	cmd := exec.Command(path, "env", "GOVERSION")
	cmd.Dir = source
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("the Go at %s cannot build this module, which needs the version named in %s: %w: %s",
			path, filepath.Join(source, "go.mod"), err, lastLine(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// Build describes one run of `go build`.
type Build struct {
	// Dir is the folder of the module, Packages its main packages (or those it names as tools).
	Dir      string
	Packages []string
	// Output is a file, or with a trailing slash a folder.
	Output string
	// CGO is "0" or "1".
	CGO string
	// Flags stand before the packages, for example -tags.
	Flags []string
}

// Run builds. What the compiler says goes to the log; an error shows the end of it.
func (g Build) Run(log string) error {
	args := append([]string{"build"}, g.Flags...)
	args = append(args, "-o", g.Output)
	cmd := exec.Command("go", append(args, g.Packages...)...)
	cmd.Dir = g.Dir
	cmd.Env = goEnv(g.CGO)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if writeErr := os.WriteFile(log, out, 0o644); writeErr != nil {
		err = errors.Join(err, writeErr)
	}
	return fmt.Errorf("go build %s: %w%s (all of it: %s)\n%s", strings.Join(g.Packages, " "), err, hint(string(out)), log, tail(string(out), 12))
}

// hint adds the sentence that a download failure deserves.
func hint(out string) string {
	for _, s := range []string{"dial tcp", "i/o timeout", "no such host", "connection refused", "module lookup disabled", "TLS handshake"} {
		if strings.Contains(out, s) {
			return ": a Go module could not be downloaded; check the network and `go env GOPROXY`"
		}
	}
	if strings.Contains(out, "no space left on device") {
		return ": the disk is full; a cold build takes 5 GB in `go env GOCACHE` and 1.2 GB in `go env GOMODCACHE`"
	}
	return ""
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func lastLine(s string) string { return tail(s, 1) }
