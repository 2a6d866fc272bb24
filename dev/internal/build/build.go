package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/gobuild"
	"github.com/mcp-operator/mcp-operator/dev/internal/image"
	"github.com/mcp-operator/mcp-operator/dev/internal/kwok"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/progress"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// Options choose what is built.
type Options struct {
	// EnvtestOnly builds the Kubernetes binary and the assets folder, which needs neither root nor a
	// C compiler.
	EnvtestOnly bool
	// Packages installs Debian packages; it returns what it did. Not called if EnvtestOnly.
	Packages func() (outcome string, err error)
	// Quiet prints nothing when there is nothing to do.
	Quiet bool
}

// Run brings every binary and base image up to date.
func Run(l layout.Layout, source string, o Options, p *progress.Printer) error {
	goVersion, err := gobuild.RequireGo(source)
	if err != nil {
		return err
	}
	for _, dir := range []string{l.Bin(""), l.CNIBin(), l.BaseImages(), l.Log("")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create a folder for the build: %w", err)
		}
	}
	done, err := readDone(l)
	if err != nil {
		return err
	}
	steps := choose(l, source, o)
	stale := 0
	for i := range steps {
		if steps[i].inputs, err = steps[i].digest(goVersion); err != nil {
			return err
		}
		if !steps[i].fresh(steps[i].inputs, done) {
			stale++
		}
	}
	if stale == 0 && o.Quiet {
		return nil
	}
	for i, s := range steps {
		if err := p.Step(i+1, len(steps), s.title, func() (string, error) { return s.run(l, done) }); err != nil {
			return err
		}
	}
	p.Plain("built in %s: %s", p.Elapsed().Round(100*time.Millisecond), l.Bin(""))
	return nil
}

func choose(l layout.Layout, source string, o Options) []step {
	var chosen []step
	if !o.EnvtestOnly {
		chosen = append(chosen, step{title: "Debian packages", always: o.Packages})
	}
	for _, s := range plan(l, source) {
		if s.envtest || !o.EnvtestOnly {
			chosen = append(chosen, s)
		}
	}
	if !o.EnvtestOnly {
		chosen = append(chosen, baseImages(l)...)
	}
	return chosen
}

// baseImages are the images of pods that are there before any user's.
func baseImages(l layout.Layout) []step {
	one := func(ref, binary string, user string) step {
		archive := filepath.Join(l.BaseImages(), binary+".tar")
		return step{
			title: "image " + ref, sources: []string{l.Bin(binary)}, outputs: []string{archive},
			after: func() error {
				_, err := image.WriteBinary(archive, ref, l.Bin(binary), image.Config{User: user})
				return err
			},
		}
	}
	return []step{one(layout.PauseImage, "pause", image.User), one(layout.CoreDNSImage, "coredns", image.User)}
}

// fresh reports whether the step need not run for these inputs.
func (s step) fresh(inputs string, done map[string]string) bool {
	if s.always != nil {
		return true // looks for itself, and does so in no time
	}
	if done[s.title] != inputs {
		return false
	}
	for _, f := range s.outputs {
		if _, err := os.Stat(f); err != nil {
			return false
		}
	}
	return true
}

func (s step) run(l layout.Layout, done map[string]string) (outcome string, err error) {
	if s.always != nil {
		return s.always()
	}
	// A step's sources may be the outputs of an earlier one, so they are looked at again.
	inputs := s.inputs
	if s.build == nil {
		if inputs, err = s.digest(""); err != nil {
			return "", err
		}
	}
	if s.fresh(inputs, done) {
		return "unchanged", nil
	}
	if s.build != nil {
		if err := s.build.Run(l.Log("build")); err != nil {
			return "", err
		}
	}
	if s.after != nil {
		if err := s.after(); err != nil {
			return "", err
		}
	}
	done[s.title] = inputs
	return "", writeDone(l, done)
}

// digest is over everything the step's result depends on.
func (s step) digest(goVersion string) (string, error) {
	h := sha256.New()
	files := s.sources
	if s.build != nil {
		fmt.Fprintf(h, "%s %q %q %s\n", goVersion, s.build.Packages, s.build.Flags, s.build.CGO)
		files = append([]string{filepath.Join(s.build.Dir, "go.mod"), filepath.Join(s.build.Dir, "go.sum")}, files...)
	}
	for _, root := range files {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			fmt.Fprintf(h, "%s %x\n", filepath.Base(path), sha256.Sum256(b))
			return err
		})
		if os.IsNotExist(err) {
			fmt.Fprintf(h, "%s is missing\n", root)
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read the inputs of %q: %w", s.title, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// stages asks Go where KWOK's module is, and collects its stages.
func stages(l layout.Layout, source string) error {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("find KWOK's module for its stages: %w", err)
	}
	return kwok.WriteStages(l, strings.TrimSpace(string(out)))
}

func readDone(l layout.Layout) (map[string]string, error) {
	done := map[string]string{}
	b, err := os.ReadFile(l.BuildRecord())
	if os.IsNotExist(err) {
		return done, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of builds: %w", err)
	}
	if err := json.Unmarshal(b, &done); err != nil {
		return nil, fmt.Errorf("read the record of builds %s: %w: remove the file", l.BuildRecord(), err)
	}
	return done, nil
}

func writeDone(l layout.Layout, done map[string]string) error {
	b, err := json.MarshalIndent(done, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the record of builds: %w", err)
	}
	return record.WriteFile(l.BuildRecord(), b, 0o644)
}
