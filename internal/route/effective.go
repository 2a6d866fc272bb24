package route

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// maxEffective is how many tools a status has room for, maxProblems how many problems are told.
const (
	maxEffective = 512
	maxProblems  = 10
)

// Heard is what one gateway told, as far as it is kept.
type Heard struct {
	table.Status

	// Unlisted is how many tools of a backend are served beyond those that Status lists, by the name of the backend. One that lists all
	// that are served has no entry.
	Unlisted map[string]int32
}

// Effective says what became of everything that an agent is granted, by what each of its gateways learned under the table of out: the
// tools, sorted by name and source, at most 512 (see mostTelling); how many are served, listed or not; and sentences about what is neither
// served, nor held back as asked, nor pending. A tool is served if every gateway that knows of it serves it.
//
// Without any status everything that has a backend is pending. Who waits for gateways to take a new table over keeps what it knew.
func Effective(agent *mcpv1alpha1.MCPAgent, out Output, statuses []Heard) (tools []mcpv1alpha1.EffectiveTool, served int32, problems []string) {
	verdicts, origins := map[string]mcpv1alpha1.EffectiveTool{}, map[string]Origin{}
	for _, verdict := range out.Verdicts {
		verdicts[verdict.Source] = verdict
	}
	for _, origin := range out.Origins {
		origins[origin.Source] = origin
	}
	for _, g := range grantsOf(agent) {
		source := g.source()
		verdict, refused := verdicts[source]
		origin, routed := origins[source]
		switch {
		case refused:
			tools = append(tools, verdict)
		case routed:
			found, unlisted := merge(origin, statuses)
			tools, served = append(tools, found...), served+unlisted
		default:
			tools = append(tools, mcpv1alpha1.EffectiveTool{Source: source, Verdict: mcpv1alpha1.VerdictPending, Reason: "no table has it yet"})
		}
	}
	for _, tool := range tools {
		if tool.Verdict == mcpv1alpha1.VerdictServed {
			served++
		}
	}
	slices.SortFunc(tools, byName)
	return mostTelling(tools), served, problemsOf(tools)
}

// Cut returns the sources, sorted, that offer more tools than a gateway takes of one server.
func Cut(out Output, statuses []Heard) []string {
	var sources []string
	for _, origin := range out.Origins {
		for i := range statuses {
			isCut := func(b table.BackendStatus) bool {
				return b.Name == origin.Backend && slices.Contains(b.Truncated, "tools/list")
			}
			if slices.ContainsFunc(statuses[i].Backends, isCut) {
				sources = append(sources, origin.Source)
			}
		}
	}
	slices.Sort(sources)
	return slices.Compact(sources)
}

// mostTelling leaves out of a list that is too long what says least: one entry of each source stays, of a served tool if it has any,
// since by that the source is known to work; then what is wrong or not known yet; then what is served; then what is held back as asked.
func mostTelling(tools []mcpv1alpha1.EffectiveTool) []mcpv1alpha1.EffectiveTool {
	if len(tools) <= maxEffective {
		return tools
	}
	rank := func(tool mcpv1alpha1.EffectiveTool) int {
		switch tool.Verdict { //nolint:exhaustive // the others are all problems, or will be known
		case mcpv1alpha1.VerdictServed:
			return 1
		case mcpv1alpha1.VerdictDenied:
			return 2
		}
		return 0
	}
	kept := slices.Clone(tools)
	slices.SortStableFunc(kept, func(a, b mcpv1alpha1.EffectiveTool) int { return cmp.Compare(rank(a), rank(b)) })
	first := map[string]int{} // of each source, the entry that stays in any case
	for i, tool := range kept {
		at, has := first[tool.Source]
		if !has || rank(tool) == 1 && rank(kept[at]) != 1 {
			first[tool.Source] = i
		}
	}
	var ahead, others []mcpv1alpha1.EffectiveTool
	for i, tool := range kept {
		if first[tool.Source] == i {
			ahead = append(ahead, tool)
		} else {
			others = append(others, tool)
		}
	}
	ahead = append(ahead, others...)
	ahead = slices.Clip(ahead[:maxEffective])
	slices.SortFunc(ahead, byName)
	return ahead
}

func byName(a, b mcpv1alpha1.EffectiveTool) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Source, b.Source))
}

// finding is what one gateway has to say of a tool; the empty name stands for all tools of a backend.
type finding struct {
	name    string
	verdict mcpv1alpha1.ToolVerdict
	reason  string
	digest  string
}

// severity orders verdicts that gateways disagree about: the one that is told comes last.
var severity = []mcpv1alpha1.ToolVerdict{
	mcpv1alpha1.VerdictServed, mcpv1alpha1.VerdictPending, mcpv1alpha1.VerdictUnavailable,
	mcpv1alpha1.VerdictDenied, mcpv1alpha1.VerdictMissing, mcpv1alpha1.VerdictConflict, mcpv1alpha1.VerdictInvalid,
}

// merge makes one verdict for each tool of a backend out of those of all gateways. A gateway that has not asked the backend yet is
// not heard if another one has. Beside them it returns how many are served that are not listed, by the gateway that has fewest of them.
func merge(origin Origin, statuses []Heard) (out []mcpv1alpha1.EffectiveTool, unlisted int32) {
	pending := mcpv1alpha1.EffectiveTool{
		Name: origin.Tool, Source: origin.Source, SourceGeneration: origin.Generation,
		Verdict: mcpv1alpha1.VerdictPending, Reason: "no gateway serves the newest table yet",
	}
	byTool, know := map[string][]finding{}, 0
	for i := range statuses {
		found, knows := findings(origin, &statuses[i].Status)
		if !knows {
			pending.Reason = "no gateway has asked it yet"
			continue
		}
		if more := statuses[i].Unlisted[origin.Backend]; know == 0 || more < unlisted {
			unlisted = more
		}
		know++
		for _, f := range found {
			byTool[f.name] = append(byTool[f.name], f)
		}
	}
	if know == 0 {
		return []mcpv1alpha1.EffectiveTool{pending}, 0
	}
	for _, name := range sortedKeys(byTool) {
		worst := slices.MaxFunc(byTool[name], func(a, b finding) int {
			return cmp.Or(slices.Index(severity, a.verdict)-slices.Index(severity, b.verdict), strings.Compare(b.reason, a.reason))
		})
		agreed := 0
		for _, f := range byTool[name] {
			if f.verdict == worst.verdict {
				agreed++
			}
		}
		tool := mcpv1alpha1.EffectiveTool{
			Name: name, Source: origin.Source, SourceGeneration: origin.Generation, Verdict: worst.verdict, Reason: worst.reason,
			Digest: byTool[name][0].digest,
		}
		if slices.ContainsFunc(byTool[name], func(f finding) bool { return f.digest != tool.Digest }) {
			tool.Digest = ""
		}
		if agreed < know && worst.verdict != mcpv1alpha1.VerdictServed {
			tool.Reason = line(fmt.Sprintf("at %d of %d gateways: %s", agreed, know, worst.reason), maxReason)
		}
		out = append(out, tool)
	}
	return out, unlisted
}

// findings are what one gateway says of a backend, each tool once; knows is false if it has not asked it yet.
func findings(origin Origin, status *table.Status) (found []finding, knows bool) {
	i := slices.IndexFunc(status.Backends, func(b table.BackendStatus) bool { return b.Name == origin.Backend })
	if i < 0 {
		return nil, false
	}
	b := &status.Backends[i]
	failure := ""
	switch b.State {
	case table.BackendReady:
	case table.BackendFailed:
		failure = failureOf(origin, b)
	case table.BackendUnknown:
		return nil, false
	default:
		return nil, false
	}
	seen := map[string]bool{}
	for _, tool := range b.Tools {
		f := findingOf(&tool, failure)
		if !seen[f.name] {
			found = append(found, f)
		}
		seen[f.name] = true
	}
	switch whole := (finding{name: origin.Tool}); {
	case failure != "" && len(found) == 0:
		whole.verdict, whole.reason = mcpv1alpha1.VerdictUnavailable, failure
		found = append(found, whole)
	case failure == "" && b.ErrorDetail != "":
		if len(found) > 0 {
			whole.name = ""
		}
		whole.verdict, whole.reason = mcpv1alpha1.VerdictInvalid, line(Plain(b.ErrorDetail), maxReason)
		found = append(found, whole)
	case failure == "" && len(found) == 0 && origin.Tool != "":
		return nil, false // its list is still being read
	}
	return found, true
}

func findingOf(tool *table.ToolStatus, failure string) finding {
	f := finding{name: line(tool.Name, maxShown), reason: line(Plain(tool.Reason), maxReason)}
	if tool.Digest == line(tool.Digest, maxDigest) { // one that is cut would be another
		f.digest = tool.Digest
	}
	if f.name == "" {
		f.name = "?"
	}
	switch tool.Verdict {
	case table.ToolServed:
		f.verdict, f.reason = mcpv1alpha1.VerdictServed, ""
		if failure != "" {
			f.verdict, f.reason = mcpv1alpha1.VerdictUnavailable, failure
		}
	case table.ToolDenied:
		f.verdict = mcpv1alpha1.VerdictDenied
	case table.ToolConflict:
		f.verdict = mcpv1alpha1.VerdictConflict
	case table.ToolMissing:
		f.verdict = mcpv1alpha1.VerdictMissing
	case table.ToolInvalid:
		f.verdict = mcpv1alpha1.VerdictInvalid
	default:
		f.verdict, f.reason = mcpv1alpha1.VerdictPending, "the gateway told nothing of it that this operator knows"
	}
	return f
}

// classes say in words why a backend fails.
var classes = map[string]string{ //nolint:gosec // G101: tells of credentials, and holds none
	"DNS": "its host name has no address", "Connect": "nobody accepts connections there",
	"TLS": "its certificate is not trusted, or it speaks no TLS", "Timeout": "it does not answer in time",
	"Unauthorized": "it refuses the credential, or asks for one (401)", "Forbidden": "it refuses the gateway (403)",
	"Credential": "its credential cannot be read: the Secret or the key is missing, or has not reached the gateway's pod yet",
	"NotFound":   "there is nothing at its path (404)", "NotMCP": "what answers there does not speak MCP",
	"NotPostgres": "what answers there does not speak PostgreSQL",
	"ServerError": "it answers with errors", "TooLarge": "its answer is too large",
	"Denied": "its address may not be dialled", "Definition": "its definition cannot be used", "Statement": "the database refuses the statement",
}

// failureOf says why a backend fails: the gateway's details, else what the object itself knows, else the class.
func failureOf(origin Origin, b *table.BackendStatus) string {
	why := classes[b.ErrorClass]
	switch {
	case why == "":
		why = cmp.Or(line("it fails: "+b.ErrorClass, maxShown), "it fails")
	case b.ErrorDetail != "" && b.ErrorClass == "Credential":
		return line("its credential cannot be used: "+Plain(b.ErrorDetail), maxReason)
	case b.ErrorDetail != "" && (b.ErrorClass == "Denied" || b.ErrorClass == "Forbidden" || strings.Contains(b.ErrorDetail, why)):
		return line(Plain(b.ErrorDetail), maxReason)
	case b.ErrorDetail != "":
		return line(why+": "+Plain(b.ErrorDetail), maxReason)
	}
	return line(cmp.Or(origin.Note, why), maxReason)
}

// problemsOf are sentences about what should be served and is not. Tools of one source that have one problem make one sentence.
func problemsOf(tools []mcpv1alpha1.EffectiveTool) []string {
	const mostNames = 3
	type problem struct{ source, verdict, reason string }
	names := map[problem][]string{}
	for _, tool := range tools {
		switch tool.Verdict {
		case mcpv1alpha1.VerdictServed, mcpv1alpha1.VerdictDenied, mcpv1alpha1.VerdictPending:
			continue
		case mcpv1alpha1.VerdictConflict, mcpv1alpha1.VerdictMissing, mcpv1alpha1.VerdictInvalid, mcpv1alpha1.VerdictUnavailable:
		}
		p := problem{tool.Source, string(tool.Verdict), tool.Reason}
		names[p] = append(names[p], tool.Name)
	}
	out := make([]string, 0, len(names))
	for p, tools := range names {
		subject := p.source
		if tools = slices.DeleteFunc(tools, func(name string) bool { return name == "" || "tool/"+name == p.source }); len(tools) > 0 {
			if more := len(tools) - mostNames; more > 0 {
				tools = append(tools[:mostNames], fmt.Sprintf("%d more", more))
			}
			subject += " (" + strings.Join(tools, ", ") + ")"
		}
		out = append(out, line(subject+" is "+p.verdict+": "+p.reason, maxShown))
	}
	slices.Sort(out)
	if more := len(out) - maxProblems; more > 0 {
		out = append(out[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return out
}
