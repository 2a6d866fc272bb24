package desired

import (
	"context"
	"os"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// admission does to an MCPServer what the API server does by the CRD: it sets defaults and refuses what breaks a rule.
type admission struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

var (
	ownAdmission   = sync.OnceValues(func() (*admission, error) { return loadAdmission("../../config/crds/mcp.operator_mcpservers.yaml") })
	agentAdmission = sync.OnceValues(func() (*admission, error) { return loadAdmission("../../config/crds/mcp.operator_mcpagents.yaml") })
	sigAdmission   = sync.OnceValues(func() (*admission, error) { return loadAdmission("../../config/crds-sig/mcp.x-k8s.io_mcpservers.yaml") })
)

func loadAdmission(crdFile string) (*admission, error) {
	raw, err := os.ReadFile(crdFile)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return nil, err
	}
	var schema apiextensions.JSONSchemaProps
	served := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(served, &schema, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&schema)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		return nil, err
	}
	return &admission{structural: structural, schema: validator, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// admit returns the server as the API server would store it, or why it would refuse it.
func admit(t *testing.T, server *mcpv1alpha1.MCPServer) (*mcpv1alpha1.MCPServer, error) {
	t.Helper()
	stored := &mcpv1alpha1.MCPServer{}
	return stored, store(t, ownAdmission, server, stored)
}

// store fills stored with what the API server would store of server, or returns why it would refuse it.
func store(t *testing.T, load func() (*admission, error), server, stored client.Object) error {
	t.Helper()
	a, err := load()
	if err != nil {
		t.Fatal(err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(server)
	if err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	defaulting.Default(fields, a.structural)
	problems := validation.ValidateCustomResource(nil, fields, a.schema)
	broken, _ := a.rules.Validate(context.Background(), nil, a.structural, fields, nil, celconfig.RuntimeCELCostBudget)
	if err := append(problems, broken...).ToAggregate(); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, stored); err != nil {
		t.Fatal(err)
	}
	return nil
}
