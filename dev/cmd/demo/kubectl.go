package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mcp-operator/mcp-operator/dev/internal/gobuild"
)

// kubectl runs kubectl against the local cluster.
type kubectl struct{ path, kubeconfig, repository, images string }

func newKubectl() (*kubectl, error) {
	state := os.Getenv("DEVCLUSTER_DIR")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		state = filepath.Join(home, ".cache", "mcp-operator-devcluster")
	}
	source, err := gobuild.Source()
	if err != nil {
		return nil, err
	}
	return &kubectl{
		path: filepath.Join(state, "assets", "kubectl"), kubeconfig: filepath.Join(state, "kubeconfig"),
		repository: gobuild.Project(source), images: filepath.Join(state, "images-out"),
	}, nil
}

// run returns what a command prints; stdin may be empty.
func (k *kubectl) run(stdin string, args ...string) (string, error) {
	cmd := exec.Command(k.path, append([]string{"--kubeconfig=" + k.kubeconfig}, args...)...)
	cmd.Dir, cmd.Stdin = k.repository, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// all runs commands until one fails.
func (k *kubectl) all(commands ...[]string) error {
	for _, args := range commands {
		if _, err := k.run("", args...); err != nil {
			return err
		}
	}
	return nil
}

const operatorNamespace = "--namespace=mcp-operator-system"

func install(k *kubectl) error {
	// The image's tag is always the same: without this a new image would not be noticed.
	archive, err := os.Open(filepath.Join(k.images, "mcp-operator.tar"))
	if err != nil {
		return fmt.Errorf("the operator's image is not built, run `make images`: %w", err)
	}
	digest := sha256.New()
	_, err = io.Copy(digest, archive)
	if err := errors.Join(err, archive.Close()); err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"mcp.operator/image-archive":"%s"}}}}}`, hex.EncodeToString(digest.Sum(nil))[:16])
	fmt.Println("Installing the operator (config/default), and allowing tools at private addresses, since everything here has one.")
	return k.all(
		[]string{"apply", "--kustomize=config/default"},
		[]string{operatorNamespace, "patch", "deployment/mcp-operator", "--patch=" + patch},
		[]string{operatorNamespace, "set", "env", "deployment/mcp-operator", "MCP_OPERATOR_ALLOW_PRIVATE_ENDPOINTS=true"},
		[]string{operatorNamespace, "rollout", "status", "deployment/mcp-operator", "--timeout=2m"},
	)
}

func apply(k *kubectl) error {
	fmt.Println("Applying examples/dev-stack.yaml, and waiting until all of it is Ready.")
	return k.all(
		[]string{"apply", "--filename=examples/dev-stack.yaml"},
		[]string{
			namespace, "wait", "mcpserver/demo-server", "mcptool/find-pet", "mcptool/visits-of-pet", "mcpagent/demo-agent",
			"--for=condition=Ready", "--timeout=2m",
		},
		[]string{namespace, "wait", "mcpagent/demo-agent", "--for=condition=Routed", "--timeout=1m"},
		[]string{namespace, "rollout", "status", "deployment/demo-agent", "--timeout=1m"},
	)
}

func show(k *kubectl) error {
	for _, kind := range []string{"mcpservers", "mcptools", "mcpagents", "pods"} {
		out, err := k.run("", namespace, "get", kind)
		if err != nil {
			return err
		}
		fmt.Println("\n" + out)
	}
	return nil
}
