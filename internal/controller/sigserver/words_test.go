package sigserver

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

// The advice of the engine and of the handshake names fields of our own kind. Every file that gives advice to servers of this API is read.
func TestAdviceNamesFieldsOfThisAPIAlone(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`spec(\.[a-zA-Z]+)+`)
	// The diagnosis puts the field that holds the resources, or the security settings, before these.
	composed := strings.NewReplacer("%s.runAsUser", "spec.podSecurity.runAsUser", "%s.limits.memory", "spec.resources.limits.memory")
	seen := 0
	for _, file := range []string{
		"../../diagnose/diagnose.go", "../../diagnose/container.go", "../../diagnose/pods.go",
		"../../mcp/failure.go", "../../mcp/handshake.go", "../../mcp/lists.go", "../../mcp/status.go",
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			if !strings.Contains(line, `"`) || strings.HasPrefix(line, "func (s Subject)") {
				continue
			}
			line = composed.Replace(line)
			told := inTheirWords(line)
			if again := inTheirWords(told); again != told {
				t.Errorf("said twice it is another:\n%s%s", told, again)
			}
			for _, field := range named.FindAllString(told, -1) {
				seen++
				path := strings.Split(strings.TrimSuffix(field, "."), ".")[1:]
				if field == "spec.command" { // of Stdio servers, which this API has not
					continue
				}
				if !exists(reflect.TypeFor[sigv1alpha1.MCPServerSpec](), path) {
					t.Errorf("%s: there is no field %s: %s", file, field, told)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no advice was found")
	}
}

// exists says whether a type has a field of that path, by the names of JSON.
func exists(in reflect.Type, path []string) bool {
	if len(path) == 0 {
		return true
	}
	if in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct {
		return false
	}
	for field := range in.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == path[0] {
			return exists(field.Type, path[1:])
		}
	}
	return false
}
