package desired

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

func TestChildrenOfTheCompatibilityAPIAreWhatTheGoldenFilesShow(t *testing.T) {
	t.Parallel()
	for name, server := range goldenSIGInputs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := applied(t, ForSIGServer(server, goldenEnvironment, ""))
			checkGolden(t, filepath.Join("testdata", "sig", name+".out.yaml"), got)
			stored := &sigv1alpha1.MCPServer{}
			if err := store(t, sigAdmission, server, stored); err != nil {
				t.Fatalf("the API would refuse it: %v", err)
			}
			if diff := cmp.Diff(got, applied(t, ForSIGServer(stored, goldenEnvironment, ""))); diff != "" {
				t.Errorf("code and schema disagree about a default (-code +schema):\n%s", diff)
			}
		})
	}
}

func TestChildrenOfTheCompatibilityAPIAreDeterministicAndShareNoMemory(t *testing.T) {
	t.Parallel()
	for name, server := range goldenSIGInputs(t) {
		env := Environment{OperatorNamespace: "mcp-operator-system", ExtraEnv: []corev1.EnvVar{{Name: "PLAIN", Value: "the operator's"}}}
		before, first := server.DeepCopy(), ForSIGServer(server, env, "hash")
		for range 20 { // the order of a map's keys is another one in most of them
			if again := ForSIGServer(server, env, "hash"); !reflect.DeepEqual(first, again) {
				t.Fatalf("%s: two runs differ:\n%s", name, cmp.Diff(first, again))
			}
		}
		scribble(reflect.ValueOf(&first))
		if diff := cmp.Diff(before, server); diff != "" {
			t.Errorf("%s: a change of the children changed the server:\n%s", name, diff)
		}
		if env.ExtraEnv[0].Value != "the operator's" {
			t.Errorf("%s: a change of the children changed the environment", name)
		}
	}
}

func TestVariablesOfTheOperatorWinOverTheUsers(t *testing.T) {
	t.Parallel()
	asked := []corev1.EnvVar{{Name: "TLS_MIN_VERSION", Value: "VersionTLS10"}, {Name: "A", Value: "x"}}
	extra := []corev1.EnvVar{{Name: "TLS_MIN_VERSION", Value: "VersionTLS13"}}
	want := []corev1.EnvVar{{Name: "A", Value: "x"}, {Name: "TLS_MIN_VERSION", Value: "VersionTLS13"}}
	if diff := cmp.Diff(want, sigEnvironment(asked, extra)); diff != "" {
		t.Errorf("variables (-want +got)\n%s", diff)
	}
}

func TestAHashOfReferencesRollsPodsOfTheCompatibilityAPI(t *testing.T) {
	t.Parallel()
	server := goldenSIGInputs(t)["minimal"]
	with, without := ForSIGServer(server, goldenEnvironment, "abc"), ForSIGServer(server, goldenEnvironment, "")
	if got := with.Deployment.Spec.Template.Annotations["mcp.x-k8s.io/config-hash"]; got != "abc" {
		t.Errorf("the annotation is %q", got)
	}
	if _, there := without.Deployment.Spec.Template.Annotations["mcp.x-k8s.io/config-hash"]; there {
		t.Error("a server that refers to nothing has the annotation")
	}
}

// goldenSIGInputs returns the servers of testdata/sig by the name of their case.
func goldenSIGInputs(t *testing.T) map[string]*sigv1alpha1.MCPServer {
	t.Helper()
	files, err := filepath.Glob("testdata/sig/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case in testdata/sig: %v", err)
	}
	inputs := map[string]*sigv1alpha1.MCPServer{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		server := &sigv1alpha1.MCPServer{}
		if err := yaml.UnmarshalStrict(raw, server); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		inputs[strings.TrimSuffix(filepath.Base(file), ".in.yaml")] = server
	}
	return inputs
}
