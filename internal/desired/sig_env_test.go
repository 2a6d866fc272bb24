package desired

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// expanded plays the kubelet (pkg/kubelet, makeEnvironmentVariables; third_party/forked/golang/expansion): later variables win, and
// references are to what was given before. before is what envFrom gave.
func expanded(vars []corev1.EnvVar, before map[string]string) map[string]string {
	known := map[string]string{"SERVICE_HOST": "10.0.0.1"}
	maps.Copy(known, before)
	for _, v := range vars {
		var b strings.Builder
		for rest := v.Value; rest != ""; {
			switch {
			case strings.HasPrefix(rest, "$$"):
				b.WriteByte('$')
				rest = rest[2:]
			case strings.HasPrefix(rest, "$(") && strings.Contains(rest, ")"):
				name, after, _ := strings.Cut(rest[2:], ")")
				if value, ok := known[name]; ok {
					b.WriteString(value)
				} else {
					b.WriteString("$(" + name + ")")
				}
				rest = after
			default:
				n := 1
				if strings.HasPrefix(rest, "$") && len(rest) > 1 {
					n = 2
				}
				b.WriteString(rest[:n])
				rest = rest[n:]
			}
		}
		known[v.Name] = b.String()
	}
	return known
}

// pairs makes variables of names and values.
func pairs(texts ...string) []corev1.EnvVar {
	var vars []corev1.EnvVar
	for i := 0; i < len(texts); i += 2 {
		vars = append(vars, corev1.EnvVar{Name: texts[i], Value: texts[i+1]})
	}
	return vars
}

func TestVariablesThatAreGivenTwiceMeanWhatTheyMeanToTheKubelet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ asked, want []corev1.EnvVar }{
		"none twice, as they are":    {pairs("A", "$1$", "B", "$(A)$(C)$$("), pairs("A", "$1$", "B", "$(A)$(C)$$(")},
		"twice":                      {pairs("A", "1", "A", "2"), pairs("A", "2")},
		"one between refers to it":   {pairs("A", "1", "B", "$(A)/x", "A", "2"), pairs("B", "1/x", "A", "2")},
		"one after refers to it":     {pairs("A", "1", "A", "2", "B", "$(A)"), pairs("A", "2", "B", "$(A)")},
		"it refers to itself":        {pairs("A", "1", "A", "$(A):2", "A", "$(A):3"), pairs("A", "1:2:3")},
		"one by way of another":      {pairs("Z", "0", "A", "$(Z)1", "B", "$(A)", "A", "2"), pairs("Z", "0", "B", "$(Z)1", "A", "2")},
		"dollars in it":              {pairs("A", "a$b$$(Z)$", "B", "<$(A)(Z)>", "A", "2"), pairs("B", "<a$$b$$(Z)$$(Z)>", "A", "2")},
		"dollars around it":          {pairs("A", "1", "B", "$$(A)$x$$$(A)$", "A", "2"), pairs("B", "$$(A)$$x$$1$$", "A", "2")},
		"what it refers to is later": {pairs("A", "$(Z)", "Z", "1", "B", "$(A)", "A", "2"), pairs("Z", "1", "B", "$$(Z)", "A", "2")},
		"the first refers to itself": {pairs("A", "$(A)", "B", "$(A)", "A", "2"), pairs("B", "$$(A)", "A", "2")},
		"what it refers to is not there": {
			pairs("A", "$(SERVICE_HOST)$(X)", "B", "$(A)", "A", "2"), pairs("B", "$(SERVICE_HOST)$(X)", "A", "2"),
		},
		"two that are given twice": {
			pairs("A", "1", "B", "$(A)b", "A", "2$(B)", "B", "$(A)$(B)"), pairs("A", "2"+"1b", "B", "$(A)1b"),
		},
		"no reference":      {pairs("A", "1", "B", "$()$(A$(", "A", "2"), pairs("B", "$()$(A$(", "A", "2")},
		"odd names in them": {pairs("A", "1", "B", "$(A)$()$( A)", "A", "2"), pairs("B", "1$$()$( A)", "A", "2")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sigEnvironment(tt.asked, nil)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("variables (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(expanded(tt.asked, nil), expanded(got, nil)); diff != "" {
				t.Errorf("what the container sees (-as asked +as applied)\n%s", diff)
			}
			if problem := SIGEnvironmentProblem(tt.asked); problem != "" {
				t.Errorf("refused: %s", problem)
			}
		})
	}
}

func TestTheOperatorsVariablesAreAsIfTheUserHadNotGivenThem(t *testing.T) {
	t.Parallel()
	got := sigEnvironment(pairs("A", "1", "B", "$(A)", "A", "2"), pairs("A", "ours"))
	if diff := cmp.Diff(pairs("B", "$(A)", "A", "ours"), got); diff != "" {
		t.Errorf("variables (-want +got)\n%s", diff)
	}
}

func TestAReferenceToAVariableWhoseValueIsNotKnownHereIsRefused(t *testing.T) {
	t.Parallel()
	secret := corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	one := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	const refused = "env var 'B' (env index 1) refers to $(A), which is given twice, and before it by valueFrom: give each name once"
	for name, tt := range map[string]struct {
		asked []corev1.EnvVar
		want  string
	}{
		"between them":           {[]corev1.EnvVar{secret, one("B", "x$(A)"), one("A", "2")}, refused},
		"after the last":         {[]corev1.EnvVar{secret, one("A", "2"), one("B", "$(A)")}, ""},
		"the last is the secret": {[]corev1.EnvVar{one("A", "2"), one("B", "$(A)"), secret}, ""},
		"once":                   {[]corev1.EnvVar{secret, one("B", "$(A)")}, ""},
		"escaped":                {[]corev1.EnvVar{secret, one("B", "$$(A)"), one("A", "2")}, ""},
	} {
		if got := SIGEnvironmentProblem(tt.asked); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestAReferenceToWhatWasGivenBeforeAllVariablesIsRefusedWhereItHasToBeFilledIn: what envFrom and Services give is not known here, and the
// same reference further down would be to what the variable of that name gives.
func TestAReferenceToWhatWasGivenBeforeAllVariablesIsRefusedWhereItHasToBeFilledIn(t *testing.T) {
	t.Parallel()
	all, prefixed := []corev1.EnvFromSource{{}}, []corev1.EnvFromSource{{Prefix: "CM_"}}
	fromA := corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "A"}}}
	mixed := slices.Concat(pairs("B", "x-$(A)", "A", "last"), []corev1.EnvVar{fromA}, pairs("B2", "$(A)", "B", "$(B)$(B)"))
	refused := func(name string, i int, of, to string) string {
		return fmt.Sprintf("env var '%s' (env index %d) refers to $(%s), which is given twice, and before it by a value with $(%s), "+
			"which envFrom or Kubernetes may give: give each name once", name, i, of, to)
	}
	for name, tt := range map[string]struct {
		asked []corev1.EnvVar
		from  []corev1.EnvFromSource
		want  string
	}{
		"by way of another":              {mixed, all, refused("B", 4, "B", "A")},
		"there is no envFrom":            {mixed, nil, ""},
		"envFrom gives no such name":     {mixed, prefixed, ""},
		"envFrom gives names like it":    {pairs("CM_A", "$(CM_A):1", "CM_A", "$(CM_A):2"), prefixed, refused("CM_A", 1, "CM_A", "CM_A")},
		"to itself":                      {pairs("A", "$(A):1", "A", "$(A):2"), all, refused("A", 1, "A", "A")},
		"nobody refers to it":            {pairs("A", "$(A):1", "A", "2"), all, ""},
		"the last refers to it":          {pairs("A", "1", "A", "2", "B", "$(A)"), all, ""},
		"no variable gives it":           {pairs("A", "$(C)", "B", "$(A)", "A", "2"), all, ""},
		"it was given before":            {pairs("C", "1", "A", "$(C)", "B", "$(A)", "A", "2"), all, ""},
		"it is escaped":                  {pairs("A", "$$(A)", "B", "$(A)", "A", "2"), all, ""},
		"the address of a Service":       {serviceVariable("KUBERNETES_SERVICE_HOST"), nil, refused("B", 1, "A", "KUBERNETES_SERVICE_HOST")},
		"the port of a Service":          {serviceVariable("KUBERNETES_SERVICE_PORT"), nil, refused("B", 1, "A", "KUBERNETES_SERVICE_PORT")},
		"a port by its name":             {serviceVariable("DB_SERVICE_PORT_SQL"), nil, refused("B", 1, "A", "DB_SERVICE_PORT_SQL")},
		"a Service as a link":            {serviceVariable("DB_PORT"), nil, refused("B", 1, "A", "DB_PORT")},
		"an address as a link":           {serviceVariable("DB_PORT_80_TCP_ADDR"), nil, refused("B", 1, "A", "DB_PORT_80_TCP_ADDR")},
		"a name that is of no Service":   {serviceVariable("DB_HOST"), nil, ""},
		"a name without that of Service": {serviceVariable("PORT"), nil, ""},
	} {
		if got := SIGEnvironmentProblem(tt.asked, tt.from...); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		before := map[string]string{}
		for _, source := range tt.from {
			before[source.Prefix+"A"], before[source.Prefix+"C"] = "fromcm", "fromcm"
		}
		if tt.want == "" {
			if diff := cmp.Diff(expanded(tt.asked, before), expanded(sigEnvironment(tt.asked, nil), before)); diff != "" {
				t.Errorf("%s: what the container sees (-as asked +as applied)\n%s", name, diff)
			}
		}
	}
}

// serviceVariable refers to a variable before it is given, by way of another.
func serviceVariable(name string) []corev1.EnvVar {
	return pairs("A", "$("+name+")", "B", "$(A)", name, "mine", "A", "2")
}

// TestValuesThatReferToThemselvesDoNotGrowWithoutEnd: sixty-four variables that double would take all memory there is.
func TestValuesThatReferToThemselvesDoNotGrowWithoutEnd(t *testing.T) {
	t.Parallel()
	doubling, many := pairs("A", "x"), pairs("A", strings.Repeat("x", 1000))
	for range 64 {
		doubling = append(doubling, corev1.EnvVar{Name: "A", Value: "$(A)$(A)"})
	}
	for i := range 1000 {
		many = append(many, corev1.EnvVar{Name: fmt.Sprintf("B%d", i), Value: "$(A)"})
	}
	const refused = " refers to what is given twice, with whose values the environment has more than 262144 bytes: give each name once"
	for name, tt := range map[string]struct {
		asked []corev1.EnvVar
		want  string
	}{
		"it doubles":            {doubling, "env var 'A' (env index 18)" + refused},
		"many refer to one":     {append(many, pairs("A", "2")...), "env var 'B262' (env index 263)" + refused},
		"one that is not twice": {many, ""},
	} {
		if got := SIGEnvironmentProblem(tt.asked); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		size := 0
		for _, v := range sigEnvironment(tt.asked, nil) {
			size += len(v.Value)
		}
		if size > 2*maxFilled {
			t.Errorf("%s: %d bytes are applied", name, size)
		}
	}
}
