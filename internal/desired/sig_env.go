package desired

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxFilled is how many bytes the values may have in all that references were replaced in: each may double what it refers to.
const maxFilled = 256 << 10

// sigEnvironment is the user's variables, and the operator's, which win. Of a name that is given twice the last counts, as in Kubernetes.
// The earlier ones are left out, since server-side apply refuses two; a variable between them that refers to one gets its value, as the
// kubelet would give it. SIGEnvironmentProblem tells where that cannot be.
func sigEnvironment(asked, extra []corev1.EnvVar) []corev1.EnvVar {
	asked = slices.DeleteFunc(slices.Clone(asked), func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(extra, func(ours corev1.EnvVar) bool { return ours.Name == v.Name })
	})
	var vars []corev1.EnvVar
	left := noneLeftOut(asked)
	for i, v := range asked {
		v.Value, _ = left.fill(v.Value)
		if !left.take(v, i) {
			vars = append(vars, withDefaults(v))
		}
	}
	return append(vars, extra...)
}

// SIGEnvironmentProblem says which variable cannot be carried over by server-side apply as Kubernetes would read it; empty if all can. from is
// what else the container's variables come from.
func SIGEnvironmentProblem(asked []corev1.EnvVar, from ...corev1.EnvFromSource) string {
	left := noneLeftOut(asked)
	left.from = from
	for i, v := range asked {
		var problem string
		if v.Value, problem = left.fill(v.Value); problem != "" {
			return fmt.Sprintf("env var '%s' (env index %d) %s: give each name once", v.Name, i, problem)
		}
		left.take(v, i)
	}
	return ""
}

// leftOut are the variables that are given again further down.
type leftOut struct {
	// stands is what stands for a reference to them.
	stands map[string]standIn
	// first and last are the indexes at which each name is given.
	first, last map[string]int
	// room is for how many bytes references may be replaced.
	room int
	// from is where variables come from before any of these is given.
	from []corev1.EnvFromSource
}

// standIn is the text that stands for a reference to a variable, or what it is given by if that is not known here.
type standIn struct{ text, unknown string }

func noneLeftOut(asked []corev1.EnvVar) *leftOut {
	l := &leftOut{stands: map[string]standIn{}, first: map[string]int{}, last: map[string]int{}, room: maxFilled}
	for i, v := range asked {
		if _, given := l.first[v.Name]; !given {
			l.first[v.Name] = i
		}
		l.last[v.Name] = i
	}
	return l
}

// take notes a variable at its index, and says whether it is left out.
func (l *leftOut) take(v corev1.EnvVar, i int) bool {
	delete(l.stands, v.Name)
	if l.last[v.Name] <= i {
		return false
	}
	l.stands[v.Name] = l.standIn(v, i)
	return true
}

// standIn is what stands for a reference to a variable that is left out, after its own references were filled in.
func (l *leftOut) standIn(v corev1.EnvVar, i int) standIn {
	if v.ValueFrom != nil {
		return standIn{unknown: "valueFrom"}
	}
	var text strings.Builder
	for _, p := range partsOf(v.Value) {
		// What is given only from here on is not meant: the reference is to what the name stood for before that, or else it is text, also where
		// it will stand, after the name is given.
		if first, given := l.first[p.name]; p.name != "" && given && first >= i {
			if l.mayBeGiven(p.name) {
				return standIn{unknown: fmt.Sprintf("a value with $(%s), which envFrom or Kubernetes may give", p.name)}
			}
			p = part{text: "$(" + p.name + ")"}
		}
		text.WriteString(p.String())
	}
	return standIn{text: text.String()}
}

// mayBeGiven says whether a variable of that name may be there before any is given: by envFrom, or by Kubernetes, which tells containers of
// Services.
func (l *leftOut) mayBeGiven(name string) bool {
	if strings.HasSuffix(name, "_SERVICE_HOST") || strings.HasSuffix(name, "_PORT") || strings.Contains(name, "_PORT_") {
		return true
	}
	return slices.ContainsFunc(l.from, func(source corev1.EnvFromSource) bool { return strings.HasPrefix(name, source.Prefix) })
}

// fill replaces references to what was left out, and says why it cannot. A value without such references stays as it is.
func (l *leftOut) fill(value string) (filled, problem string) {
	parts := partsOf(value)
	if !slices.ContainsFunc(parts, func(p part) bool { _, out := l.stands[p.name]; return out }) {
		return value, ""
	}
	var text strings.Builder
	for _, p := range parts {
		piece := p.String()
		if stands, out := l.stands[p.name]; out && stands.unknown != "" {
			return value, fmt.Sprintf("refers to $(%s), which is given twice, and before it by %s", p.name, stands.unknown)
		} else if out {
			piece = stands.text
		}
		if l.room -= len(piece); l.room < 0 {
			return value, fmt.Sprintf("refers to what is given twice, with whose values the environment has more than %d bytes", maxFilled)
		}
		text.WriteString(piece)
	}
	return text.String(), ""
}

// part is a piece of a variable's value as the kubelet reads it: the name of a variable, or text.
type part struct{ name, text string }

// String is the piece as it is written, whatever comes before and after it.
func (p part) String() string {
	if p.name != "" {
		return "$(" + p.name + ")"
	}
	return strings.ReplaceAll(p.text, "$", "$$")
}

// partsOf reads a value by the rules of Kubernetes: "$(" name ")" is a reference, "$$" is a dollar, and any other dollar is one too.
func partsOf(value string) []part {
	var parts []part
	var text strings.Builder
	unclosed := len(value) - 1 - strings.LastIndexByte(value, ')') // in so many bytes at the end no reference begins
	for value != "" {
		dollar := strings.IndexByte(value, '$')
		if dollar < 0 || dollar == len(value)-1 {
			break
		}
		text.WriteString(value[:dollar])
		rest := value[dollar+1:]
		switch {
		case rest[0] == '$':
			text.WriteByte('$')
			value = rest[1:]
		case rest[0] == '(' && len(rest) > unclosed:
			end := strings.IndexByte(rest, ')')
			if end > 1 {
				parts = append(parts, part{text: text.String()}, part{name: rest[1:end]})
				text.Reset()
			} else {
				text.WriteString("$()") // it names nothing
			}
			value = rest[end+1:]
		default:
			text.WriteString("$" + rest[:1])
			value = rest[1:]
		}
	}
	text.WriteString(value)
	return append(parts, part{text: text.String()})
}
