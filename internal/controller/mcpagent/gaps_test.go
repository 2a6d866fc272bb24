package mcpagent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// hearing is what one gateway tells of the backends server-web, server-files and tool-remote.
func hearing(web, files, remote table.BackendStatus) route.Heard {
	web.Name, files.Name, remote.Name = "server-web", "server-files", "tool-remote"
	heard := route.Heard{Status: table.Status{Backends: []table.BackendStatus{web, files, remote}}}
	for i := range heard.Backends {
		if b := &heard.Backends[i]; b.State == "" {
			b.State = table.BackendReady
		}
	}
	return heard
}

var threeOrigins = route.Output{Origins: []route.Origin{
	{Backend: "server-web", Source: "server/web"}, {Backend: "server-files", Source: "server/files"}, {Backend: "tool-remote", Source: "tool/remote"},
}}

func TestWhatIsNoToolAndIsNotServedIsTold(t *testing.T) {
	t.Parallel()
	conflict := func(kind, name string, backends ...string) table.NameConflict {
		return table.NameConflict{Kind: kind, Name: name, Backends: backends}
	}
	both := []string{"server-web", "server-files"}
	greet := table.BackendStatus{Conflicts: []table.NameConflict{conflict("prompt", "greet", both...)}, ConflictCount: 1}
	none := table.BackendStatus{}
	unread := table.BackendStatus{Unread: []string{"prompts/list", "resources/templates/list"}}
	const untold = "server/web: its prompts could not be read (prompts/list fails): those that it listed before are served"
	const untoldToo = "server/web: its resource templates could not be read (resources/templates/list fails): those that it listed before are served"
	tests := map[string]struct {
		heard  []route.Heard
		before string        // the message of Routed
		since  time.Duration // for how long lists are unread, as far as is remembered
		want   []string
		again  bool
	}{
		"nothing": {heard: []route.Heard{hearing(none, none, none)}},
		"a prompt, that both tell of and both gateways": {
			heard: []route.Heard{hearing(greet, greet, none), hearing(greet, greet, none)},
			want:  []string{"prompt 'greet': offered by server/files, server/web, so it is not served: give one a prefix"},
		},
		"one gateway alone tells": {
			heard: []route.Heard{hearing(none, none, none), hearing(greet, none, none)},
			want:  []string{"prompt 'greet': offered by server/files, server/web, so it is not served: give one a prefix"},
		},
		"a resource and templates, of several objects": {
			heard: []route.Heard{hearing(none, none, table.BackendStatus{Conflicts: []table.NameConflict{
				conflict("resource", "file:///a", "tool-remote", "server-web"), conflict("resourceTemplate", "db://{t}", "tool-remote", "server-web"),
				conflict("resourceTemplate", "db://{t}/{id}", "tool-remote", "server-web"),
			}, ConflictCount: 3})},
			want: []string{
				"resource 'file:///a': offered by server/web, tool/remote, so it is not served: grant one of them in another MCPAgent",
				"resource templates 'db://{t}', 'db://{t}/{id}': offered by server/web, tool/remote, so none of these is served: " +
					"grant one of them in another MCPAgent",
			},
		},
		"more than are named, and more than are told": {
			heard: []route.Heard{hearing(table.BackendStatus{Conflicts: []table.NameConflict{
				conflict("prompt", "a", both...), conflict("prompt", "b", both...), conflict("prompt", "c", both...), conflict("prompt", "d", both...),
			}, ConflictCount: 9}, none, none)},
			want: []string{
				"prompts 'a', 'b', 'c', 1 more: offered by server/files, server/web, so none of these is served: give one a prefix",
				"server/web has 9 names of prompts and resources in conflict",
			},
		},
		"of a backend that is granted no more nothing is told": {heard: []route.Heard{{Status: table.Status{Backends: []table.BackendStatus{{
			Name: "server-gone", State: table.BackendReady, Conflicts: greet.Conflicts, ConflictCount: 1, Unread: unread.Unread,
		}}}}}},
		"a list that was just not read": {heard: []route.Heard{hearing(unread, none, none)}, again: true},
		"lists that are unread for a while": {
			heard: []route.Heard{hearing(unread, none, none)}, since: 2 * unreadGrace, want: []string{untold, untoldToo},
		},
		"one that was told of before the operator was restarted": {
			heard: []route.Heard{hearing(unread, none, none)}, before: "x; " + untold, want: []string{untold}, again: true,
		},
		"of one that fails, that is told": {
			heard: []route.Heard{hearing(table.BackendStatus{State: table.BackendFailed, Unread: unread.Unread}, none, none)}, since: 2 * unreadGrace,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
				agent.Status.Conditions = []metav1.Condition{condition(mcpv1alpha1.ConditionRouted, "False", "ToolsUnavailable", tt.before)}
			})
			r, _ := makeReconciler(t)
			s := newScope(r, agent, known)
			s.route = threeOrigins
			if tt.since > 0 {
				r.remember(s.key(), func(m *memory) {
					m.unread = map[string]time.Time{untold: time.Now().Add(-tt.since), untoldToo: time.Now().Add(-tt.since)}
				})
			}
			got, after := s.gaps(tt.heard)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("sentences (-want +got)\n%s", diff)
			}
			if (after > 0) != tt.again || after > unreadGrace {
				t.Errorf("looked at again after %s, want so: %t", after, tt.again)
			}
		})
	}
}

func TestAListThatIsReadAgainIsForgotten(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t)
	s := newScope(r, makeAgent(), known)
	s.route = threeOrigins
	s.gaps([]route.Heard{hearing(table.BackendStatus{Unread: []string{"prompts/list"}}, table.BackendStatus{}, table.BackendStatus{})})
	if n := len(r.recall(s.key()).unread); n != 1 {
		t.Errorf("%d lists are remembered, want 1", n)
	}
	s.gaps([]route.Heard{hearing(table.BackendStatus{}, table.BackendStatus{}, table.BackendStatus{})})
	if n := len(r.recall(s.key()).unread); n != 0 {
		t.Errorf("%d lists are remembered, want none", n)
	}
}
