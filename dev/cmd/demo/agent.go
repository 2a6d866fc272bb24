package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	namespace = "--namespace=mcp-system"
	endpoint  = "http://demo-agent-gateway.mcp-system.svc.cluster.local:8080/mcp"
)

// inAgent executes a command in the pod of the agent's workload.
func (k *kubectl) inAgent(stdin string, command ...string) (string, error) {
	return k.run(stdin, append([]string{namespace, "exec", "--stdin", "deployment/demo-agent", "--", "/echo"}, command...)...)
}

func callTools(k *kubectl) error {
	list, err := k.inAgent("", "tools")
	if err != nil {
		return err
	}
	fmt.Println("\nThe agent's workload lists its tools at " + endpoint + ", with the token in its pod:")
	fmt.Println("  " + strings.ReplaceAll(list, "\n", "\n  "))
	fmt.Println("\nand calls three of them:")
	for _, call := range []struct{ tool, arguments, want string }{
		{"demo_test_simple_text", `{}`, "simple text"},
		{"find-pet", `{"petId": 1}`, "Rex"},
		{"visits-of-pet", `{"petId": 1}`, "a thorn in a paw"},
	} {
		out, err := k.inAgent("", "call", call.tool, call.arguments)
		if err != nil {
			return err
		}
		if !strings.Contains(out, call.want) {
			return fmt.Errorf("%s answers %s, which lacks %q", call.tool, out, call.want)
		}
		fmt.Printf("  %s %s\n    -> %s\n", call.tool, call.arguments, out)
	}
	return nil
}

// way is one that must be closed.
type way struct {
	what  string
	stdin string
	// command is executed in the agent's pod; one of the words must be in what it says.
	command []string
	words   []string
}

func tryClosedWays(k *kubectl) error {
	token := func(account string, args ...string) (string, error) {
		return k.run("", append([]string{namespace, "create", "token", account}, args...)...)
	}
	foreign, err := token("default", "--audience="+endpoint)
	if err != nil {
		return err
	}
	elsewhere, err := token("demo-agent", "--audience=https://example.com")
	if err != nil {
		return err
	}
	addresses := map[string]string{"demo-server-svc": "mcp-system", "demo-database": "mcp-system", "kubernetes": "default", "kube-dns": "kube-system"}
	for service, in := range addresses {
		addresses[service], err = k.run("", "--namespace="+in, "get", "service", service, "--output=jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
		if err != nil {
			return err
		}
	}
	unanswered := []string{"Client.Timeout exceeded", "connection refused", "no route to host"}
	get := func(address string) []string { return []string{"get", "-timeout", "2s", address} }
	ways := []way{
		{"without a token", "", []string{"call", "-token-file=", "find-pet"}, []string{"401"}},
		{"with a token of another account", foreign, []string{"call", "-token-file=/dev/stdin", "find-pet"}, []string{"403"}},
		{"with a token made out to somebody else", elsewhere, []string{"call", "-token-file=/dev/stdin", "find-pet"}, []string{"401"}},
		{"a tool that is not granted", "", []string{"call", "demo_test_error_handling"}, []string{"unknown tool"}},
		{"past the gateway, to the server", "", get("http://" + addresses["demo-server-svc"] + "/mcp"), unanswered},
		{"past the gateway, to the database", "", get("http://" + addresses["demo-database"]), unanswered},
		{"to the API server", "", get("https://" + addresses["kubernetes"]), unanswered},
		{"to DNS", "", get("http://" + addresses["kube-dns"]), unanswered},
	}
	fmt.Println("\nWhat is refused:")
	for _, w := range ways {
		out, err := k.inAgent(w.stdin, w.command...)
		if err == nil {
			return errors.New("open: " + w.what + ": " + out)
		}
		said := lineOf(out)
		if !slices.ContainsFunc(w.words, func(word string) bool { return strings.Contains(said, word) }) {
			return fmt.Errorf("%s: it failed, but not as meant (%q): %w", w.what, w.words, err)
		}
		fmt.Printf("  %s\n    -> %s\n", w.what, said)
	}
	return nil
}

// lineOf is the line in which echo says what went wrong.
func lineOf(out string) string {
	for line := range strings.Lines(out) {
		if said, ok := strings.CutPrefix(line, "echo: "); ok {
			return strings.TrimSpace(said)
		}
	}
	return out
}
