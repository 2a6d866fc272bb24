package engine

import (
	"errors"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

//nolint:staticcheck // ST1005: a sentence in a condition
var errNoGatewayImage = errors.New("A Stdio server needs the bridge, and this operator was started without --gateway-image " +
	"(environment variable MCP_OPERATOR_GATEWAY_IMAGE): whoever runs the operator has to set it")

// chooseGateway records in the status which gateway image the pods of a Stdio server get. The image stays what it is while the
// pods are asked to be nothing else: so an upgrade of the operator, which brings another image, replaces no pod. It is chosen
// anew when pods are replaced in any case, and on request (AnnotationUpgradeGateway).
func (s *scope) chooseGateway(configHash string) {
	status := &s.server.Status
	if !desired.NeedsBridge(s.server) {
		status.GatewayImage, status.GatewayRevision = "", ""
		return
	}
	revision, current := desired.GatewayRevision(s.server, s.environment(), configHash), s.settings.GatewayImage
	if status.GatewayRevision != revision || status.GatewayImage == "" {
		if current != "" { // an operator that knows none keeps what there is
			status.GatewayImage = current
		}
		status.GatewayRevision = revision
	}
}

// needsGateway is the outcome for a Stdio server that has no bridge to run under.
func (s *scope) needsGateway() (reconcile.Outcome, bool) {
	missing := desired.NeedsBridge(s.server) && s.server.Status.GatewayImage == ""
	return reconcile.Invalid(mcpv1alpha1.ReasonGatewayImageMissing, errNoGatewayImage), missing
}
