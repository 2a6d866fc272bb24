//go:build linux

package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/kwok"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

// Status is how the cluster is.
type Status struct {
	// Up is true when every component runs and every node is Ready.
	Up         bool        `json:"up"`
	Kubeconfig string      `json:"kubeconfig"`
	Server     string      `json:"server"`
	Components []Component `json:"components"`
	Nodes      []Node      `json:"nodes"`
	// Problem says why the nodes could not be asked for.
	Problem string `json:"problem,omitempty"`
}

// Component is one daemon.
type Component struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
	PID  int    `json:"pid,omitempty"`
	Log  string `json:"log"`
}

// Node is one node as the API server knows it.
type Node struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	IP    string `json:"ip"`
	// Reason is the kubelet's or the node controller's when the node is not Ready.
	Reason string `json:"reason,omitempty"`
	// reported is when the kubelet last said so, to the second.
	reported time.Time
}

// Status looks at every part.
func (c *Cluster) Status() (Status, error) {
	r, err := c.open()
	if err != nil {
		return Status{}, err
	}
	s := Status{Up: r.Nodes > 0, Kubeconfig: c.layout.Kubeconfig(), Server: layout.APIServerURL()}
	names := c.components(r.Nodes)
	if r.Nodes == 0 {
		names = nil
	}
	if _, ok, err := c.processes.Find(kwok.Component); err == nil && ok {
		names = append(names, kwok.Component)
	}
	for _, name := range names {
		p, ok, err := c.processes.Find(name)
		if err != nil {
			return Status{}, err
		}
		s.Components = append(s.Components, Component{Name: name, Up: ok, PID: p.PID, Log: c.layout.Log(name)})
		s.Up = s.Up && ok
	}
	if r.Nodes == 0 {
		return s, nil
	}
	s.addNodes(c, r.Nodes)
	return s, nil
}

// addNodes asks for the nodes; that the API server does not answer is part of the status.
func (s *Status) addNodes(c *Cluster, want int) {
	nodes, err := c.nodeStates()
	if err != nil {
		s.Problem = err.Error()
	}
	s.Nodes = nodes
	s.Up = s.Up && len(nodes) >= want
	for _, n := range nodes {
		s.Up = s.Up && n.Ready
	}
}

// nodeStates asks the API server for the real nodes.
func (c *Cluster) nodeStates() ([]Node, error) {
	out, err := c.Kubectl(nil, "get", "nodes", "-l", layout.RealNodeLabel+"=true", "-o", "json", "--request-timeout=5s")
	if err != nil {
		return nil, err
	}
	return parseNodes([]byte(out))
}

// nodeList is the little we read of a v1 NodeList: this module's tools do not link Kubernetes.
type nodeList struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status struct {
			Addresses []struct {
				Type    string `json:"type"`
				Address string `json:"address"`
			} `json:"addresses"`
			Conditions []struct {
				Type              string    `json:"type"`
				Status            string    `json:"status"`
				Message           string    `json:"message"`
				LastHeartbeatTime time.Time `json:"lastHeartbeatTime"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

func parseNodes(list []byte) ([]Node, error) {
	var nodes nodeList
	if err := json.Unmarshal(list, &nodes); err != nil {
		return nil, fmt.Errorf("read the list of nodes: %w", err)
	}
	var states []Node
	for _, item := range nodes.Items {
		n := Node{Name: item.Metadata.Name, Reason: "the kubelet has not reported yet"}
		for _, a := range item.Status.Addresses {
			if a.Type == "InternalIP" {
				n.IP = a.Address
			}
		}
		for _, cond := range item.Status.Conditions {
			if cond.Type == "Ready" {
				n.Ready, n.Reason, n.reported = cond.Status == "True", cond.Message, cond.LastHeartbeatTime
			}
		}
		if n.Ready {
			n.Reason = ""
		}
		states = append(states, n)
	}
	return states, nil
}

// Print writes the status as a table for people.
func (s *Status) Print(out io.Writer) error {
	if len(s.Components) == 0 {
		_, err := fmt.Fprintln(out, "The cluster is down. Start it with `devcluster up`.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "COMPONENT\tSTATE\tPID\tLOG")
	for _, c := range s.Components {
		state, pid := "up", fmt.Sprint(c.PID)
		if !c.Up {
			state, pid = "DOWN", "-"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, state, pid, c.Log)
	}
	_, _ = fmt.Fprintln(w, "\t\t\t\nNODE\tSTATE\tADDRESS\t")
	for _, n := range s.Nodes {
		state := "Ready"
		if !n.Ready {
			state = "NOT READY: " + n.Reason
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t\n", n.Name, state, n.IP)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	hint := ""
	if s.Problem != "" {
		hint = "\nThe API server does not tell the nodes: " + s.Problem
	}
	if !s.Up {
		hint += "\nNot everything is up: `devcluster up` mends it."
	}
	_, err := fmt.Fprintf(out, "\nexport KUBECONFIG=%s%s\n", s.Kubeconfig, hint)
	return err
}
