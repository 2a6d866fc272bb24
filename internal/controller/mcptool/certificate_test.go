package mcptool

import (
	"testing"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/reach"
)

// TestWhereABundleIsDecidesWhatIsToldOfAStranger: that of a Secret is no use for a document, which the operator itself fetches.
func TestWhereABundleIsDecidesWhatIsToldOfAStranger(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bundle             *mcpv1alpha1.CABundleSource
		endpoint, document reach.Bundle
		blind              bool // to the certificate of the endpoint
	}{
		"none":           {},
		"in a ConfigMap": {bundle: &mcpv1alpha1.CABundleSource{ConfigMapRef: keyOf("ca", "ca.crt")}, endpoint: reach.ReadBundle, document: reach.ReadBundle},
		"in a Secret":    {bundle: &mcpv1alpha1.CABundleSource{SecretRef: keyOf("ca", "ca.crt")}, document: reach.UnreadBundle, blind: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := makeTool(func(tool *mcpv1alpha1.MCPTool) { tool.Spec.CABundle = tt.bundle })
			s := newScope(makeWorld(t, tool, makeConfigMap("ca", "ca.crt", mcptest.NewAuthority(t, "ca").PEM), makeSecret("ca")).Reconciler, tool)
			endpoint, err := s.trust(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			document, err := s.documentTrust(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if endpoint.Bundle != tt.endpoint || document.Bundle != tt.document || endpoint.Blind != tt.blind || document.Blind {
				t.Errorf("of the endpoint %+v, of the document %+v", endpoint, document)
			}
		})
	}
}
