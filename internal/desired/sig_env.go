package desired

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sigEnvironment is the user's variables, and the operator's, which win. Of a name that is given twice the last counts, as in Kubernetes.
// The earlier ones are left out, since server-side apply refuses two; a variable between them that refers to one gets its value, as the
// kubelet would give it. SIGEnvironmentProblem tells where that is not known.
func sigEnvironment(asked, extra []corev1.EnvVar) []corev1.EnvVar {
	asked = slices.DeleteFunc(slices.Clone(asked), func(v corev1.EnvVar) bool { return names(extra, v.Name) })
	var vars []corev1.EnvVar
	left := leftOut{}
	for i, v := range asked {
		v.Value, _ = left.fill(v.Value)
		if !left.take(v, asked[:i], asked[i+1:]) {
			vars = append(vars, withDefaults(v))
		}
	}
	return append(vars, extra...)
}

// SIGEnvironmentProblem says which variable cannot be carried over by server-side apply as Kubernetes would read it; empty if all can.
func SIGEnvironmentProblem(asked []corev1.EnvVar) string {
	left := leftOut{}
	for i, v := range asked {
		var missing string
		if v.Value, missing = left.fill(v.Value); missing != "" {
			return fmt.Sprintf("env var '%s' (env index %d) refers to $(%s), which is given twice, and before it by valueFrom: give each name once",
				v.Name, i, missing)
		}
		left.take(v, asked[:i], asked[i+1:])
	}
	return ""
}

func names(vars []corev1.EnvVar, name string) bool {
	return slices.ContainsFunc(vars, func(v corev1.EnvVar) bool { return v.Name == name })
}

// leftOut are the variables that are given again further down: what stands for a reference to them, nil where that is not known here.
type leftOut map[string]*string

// take notes a variable that is between others, and says whether it is left out.
func (l leftOut) take(v corev1.EnvVar, before, after []corev1.EnvVar) bool {
	delete(l, v.Name)
	if !names(after, v.Name) {
		return false
	}
	l[v.Name] = nil
	if v.ValueFrom == nil {
		var text strings.Builder
		for _, p := range partsOf(v.Value) {
			// What refers to nothing here is text, also where it will stand, after that name is given.
			if p.name != "" && !names(before, p.name) && (p.name == v.Name || names(after, p.name)) {
				p = part{text: "$(" + p.name + ")"}
			}
			text.WriteString(p.String())
		}
		l[v.Name] = new(text.String())
	}
	return true
}

// fill replaces references to what was left out, and names one that is not known. A value without such references stays as it is.
func (l leftOut) fill(value string) (filled, missing string) {
	parts := partsOf(value)
	if !slices.ContainsFunc(parts, func(p part) bool { _, out := l[p.name]; return out }) {
		return value, ""
	}
	var text strings.Builder
	for _, p := range parts {
		stands, out := l[p.name]
		switch {
		case out && stands == nil:
			missing = p.name
		case out:
			text.WriteString(*stands)
		default:
			text.WriteString(p.String())
		}
	}
	return text.String(), missing
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
	for value != "" {
		dollar := strings.IndexByte(value, '$')
		if dollar < 0 || dollar == len(value)-1 {
			break
		}
		text.WriteString(value[:dollar])
		rest := value[dollar+1:]
		end := strings.IndexByte(rest, ')')
		switch {
		case rest[0] == '$':
			text.WriteByte('$')
			value = rest[1:]
		case rest[0] == '(' && end > 0:
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
