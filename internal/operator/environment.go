package operator

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// serviceVariable matches what Kubernetes tells containers of each Service in their namespace. One that is called mcp-operator, or
// mcp-operator-metrics as ours, makes names that begin as those of flags do.
var serviceVariable = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

// parseEnvironment returns the variables of a list of name=value.
func parseEnvironment(environment []string) map[string]string {
	variables := map[string]string{}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	return variables
}

// refuseStrangers returns an error for each variable that looks like one of a flag and is of none. To ignore it could be to act in all
// namespaces, or without a policy, where somebody asked for less; a flag that is not known is refused too.
func refuseStrangers(flags *flag.FlagSet, variables map[string]string) error {
	known := map[string]string{}
	flags.VisitAll(func(f *flag.Flag) { known[variableOf(f.Name)] = f.Name })
	var strangers []error
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		upper := strings.ToUpper(name)
		if variables[name] == "" || known[name] != "" || !strings.HasPrefix(upper, environmentPrefix) || serviceVariable.MatchString(name) {
			continue
		}
		hint := "see --help for those that there are"
		if meant := nearest(upper, slices.Sorted(maps.Keys(known))); meant != "" {
			hint = fmt.Sprintf("is %s meant (--%s)? See --help for all", meant, known[meant])
		}
		strangers = append(strangers, fmt.Errorf("environment variable %s belongs to no flag, and would be ignored: %s", name, hint))
	}
	return errors.Join(strangers...)
}

// nearest returns the candidate that is the fewest edits away from a name, the first of several. Empty: none is like it, since a third
// of what follows the prefix would have to change.
func nearest(name string, candidates []string) string {
	best, fewest := "", (len(name)-len(environmentPrefix))/3+1
	for _, candidate := range candidates {
		if n := edits(name, candidate); n < fewest {
			best, fewest = candidate, n
		}
	}
	return best
}

// edits is how many bytes must be added, removed or replaced to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // edits from what was read of a to the first bytes of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
