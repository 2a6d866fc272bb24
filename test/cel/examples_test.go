package cel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	separator = regexp.MustCompile(`(?m)^---\s*$`)
)

// TestExamplesAreValid applies what users are told to apply: every file of the samples and examples, and every block of
// the API pages. The inputs of the golden tests are held to the same: what they show can be asked for.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		"../../config/samples/*.yaml", "../../examples/*.yaml", "../../docs/api/*.md", "../../internal/desired/testdata/*.in.yaml",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file matches %s (%v)", pattern, err)
		}
		for _, file := range files {
			t.Run(strings.TrimPrefix(file, "../../"), func(t *testing.T) {
				t.Parallel()
				for _, document := range documentsOf(t, file) {
					tryToApply(t, document)
				}
			})
		}
	}
}

// documentsOf returns the YAML documents of a file, those of a page from its blocks.
func documentsOf(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(content)}
	if filepath.Ext(file) == ".md" {
		texts = nil
		for _, block := range yamlBlock.FindAllStringSubmatch(string(content), -1) {
			texts = append(texts, block[1])
		}
	}
	var documents []string
	for _, text := range texts {
		documents = append(documents, separator.Split(text, -1)...)
	}
	if len(documents) == 0 {
		t.Errorf("%s has no YAML", file)
	}
	return documents
}

// tryToApply asks the API server whether it would take a document. A part of an object, as pages show it, is none.
func tryToApply(t *testing.T, document string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
		t.Errorf("%s\nis no YAML: %v", document, err)
		return
	}
	if object.GetKind() == "" || object.GetKind() == "Kustomization" {
		return
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.FieldOwner("kubectl"))
	if err != nil {
		t.Errorf("%s\nis refused: %v", document, err)
	}
}
