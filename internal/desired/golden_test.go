package desired

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var goldenEnvironment = Environment{OperatorNamespace: "mcp-operator-system", GatewayImage: "registry.example.com/mcp-gateway:1.0.0"}

// A case is two files. minimal.in.yaml says no more than it must; every other case differs from it in one thing, so that
// the difference of two .out.yaml files shows what that thing does.
func TestChildrenAreWhatTheGoldenFilesShow(t *testing.T) {
	t.Parallel()
	for name, server := range goldenInputs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkGolden(t, filepath.Join("testdata", name+".out.yaml"), applied(t, ForServer(server, goldenEnvironment, "")))
		})
	}
}

// checkGolden compares what is applied with a golden file.
func checkGolden(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("what is applied differs from %s (-want +got); -update rewrites it:\n%s", golden, diff)
	}
}

func TestNoGoldenFileIsLeftOver(t *testing.T) {
	t.Parallel()
	inputs := goldenInputs(t)
	outputs, err := filepath.Glob("testdata/*.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		if inputs[strings.TrimSuffix(filepath.Base(output), ".out.yaml")] == nil {
			t.Errorf("%s belongs to no .in.yaml", output)
		}
	}
}

func TestEveryGoldenInputIsAdmitted(t *testing.T) {
	t.Parallel()
	for name, server := range goldenInputs(t) {
		if _, err := admit(t, server); err != nil {
			t.Errorf("%s: the API would refuse it: %v", name, err)
		}
	}
}

func TestDefaultsOfTheSchemaChangeNothing(t *testing.T) {
	t.Parallel()
	for name, server := range goldenInputs(t) {
		stored, err := admit(t, server)
		if err != nil {
			continue // TestEveryGoldenInputIsAdmitted reports it
		}
		asWritten, asStored := ForServer(server, goldenEnvironment, ""), ForServer(stored, goldenEnvironment, "")
		if diff := cmp.Diff(applied(t, asWritten), applied(t, asStored)); diff != "" {
			t.Errorf("%s: code and schema disagree about a default (-code +schema):\n%s", name, diff)
		}
	}
}

// Every pod meets the Pod Security standard "restricted", unless its server says aloud that it may run as root.
func TestPodsMeetThePodSecurityStandard(t *testing.T) {
	t.Parallel()
	relaxed := 0
	for name, server := range goldenInputs(t) {
		pod := ForServer(server, goldenEnvironment, "").Deployment.Spec.Template
		if problem := violations(t, podsecurity.LevelBaseline, pod); problem != "" {
			t.Errorf("%s: the pod violates baseline: %s", name, problem)
		}
		asked := server.Spec.PodSecurity
		mayBeRoot := asked != nil && asked.RunAsNonRoot != nil && !*asked.RunAsNonRoot
		problem := violations(t, podsecurity.LevelRestricted, pod)
		if mayBeRoot {
			relaxed++
		}
		if (problem != "") != mayBeRoot {
			t.Errorf("%s: may run as root: %t, violations of restricted: %q", name, mayBeRoot, problem)
		}
	}
	if relaxed == 0 {
		t.Error("no golden case sets runAsNonRoot: false")
	}
}

// violations returns what of a pod breaks the newest rules of a level; empty if nothing does.
func violations(t *testing.T, level podsecurity.Level, pod corev1.PodTemplateSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	latest := podsecurity.LevelVersion{Level: level, Version: podsecurity.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(latest, &pod.ObjectMeta, &pod.Spec))
	return result.ForbiddenDetail()
}

func TestBuildersAreDeterministic(t *testing.T) {
	t.Parallel()
	for name, server := range goldenInputs(t) {
		first := ForServer(server, goldenEnvironment, "hash")
		for range 20 { // the order of a map's keys is another one in most of them
			if again := ForServer(server, goldenEnvironment, "hash"); !reflect.DeepEqual(first, again) {
				t.Fatalf("%s: two runs differ:\n%s", name, cmp.Diff(first, again))
			}
		}
		again := ForServer(server.DeepCopy(), goldenEnvironment, "hash")
		if diff := cmp.Diff(applied(t, first), applied(t, again)); diff != "" {
			t.Errorf("%s: the bytes of two runs differ:\n%s", name, diff)
		}
	}
}

func TestChildrenShareNoMemoryWithTheirInput(t *testing.T) {
	t.Parallel()
	for name, server := range goldenInputs(t) {
		env := Environment{OperatorNamespace: "mcp-operator-system", ExtraEnv: []corev1.EnvVar{{Name: "EXTRA", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{Key: "key"},
		}}}}
		serverBefore, extraBefore := server.DeepCopy(), copyEnv(env.ExtraEnv)
		children := ForServer(server, env, "hash")
		scribble(reflect.ValueOf(&children))
		if diff := cmp.Diff(serverBefore, server); diff != "" {
			t.Errorf("%s: a change of the children changed the server:\n%s", name, diff)
		}
		if diff := cmp.Diff(extraBefore, env.ExtraEnv); diff != "" {
			t.Errorf("%s: a change of the children changed the environment:\n%s", name, diff)
		}
	}
}

// scribble overwrites every settable string, number, boolean and map that can be reached.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			scribble(field)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString("scribbled")
		}
	case reflect.Bool:
		if v.CanSet() {
			v.SetBool(!v.Bool())
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if v.CanSet() {
			v.SetInt(v.Int() + 1)
		}
	default: // nothing else occurs in children
	}
}

// goldenInputs returns the servers of testdata by the name of their case.
func goldenInputs(t *testing.T) map[string]*mcpv1alpha1.MCPServer {
	t.Helper()
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case in testdata: %v", err)
	}
	inputs := map[string]*mcpv1alpha1.MCPServer{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		server := &mcpv1alpha1.MCPServer{}
		if err := yaml.UnmarshalStrict(raw, server); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		inputs[strings.TrimSuffix(filepath.Base(file), ".in.yaml")] = server
	}
	return inputs
}

// applied returns the bytes that are sent to the API server, as YAML.
func applied(t *testing.T, children Server) string {
	t.Helper()
	list := []client.Object{children.NetworkPolicy, children.Deployment, children.Service}
	if children.ConfigMap != nil {
		list = append([]client.Object{children.ConfigMap}, list...)
	}
	if children.Pods != nil {
		list = append(list, children.Pods)
	}
	return documents(t, list...)
}

// documents returns the bytes that are sent to the API server for some objects, as YAML.
func documents(t *testing.T, list ...client.Object) string {
	t.Helper()
	var documents [][]byte
	for _, obj := range list {
		gvk, err := apiutil.GVKForObject(obj, clientgoscheme.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		content, err := apply.Content(obj, gvk)
		if err != nil {
			t.Fatal(err)
		}
		document, err := yaml.Marshal(content.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	return string(bytes.Join(documents, []byte("---\n")))
}
