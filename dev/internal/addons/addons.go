// Package addons is what runs in the cluster for the cluster: DNS, a default StorageClass, and the
// rights of the daemons that are no part of the control plane.
package addons

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

//go:embed manifest.yaml
var source string

// Manifest is the YAML to apply.
func Manifest() ([]byte, error) {
	t, err := template.New("addons").Option("missingkey=error").Parse(source)
	if err != nil {
		return nil, fmt.Errorf("parse the addons: %w", err)
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]string{
		"RealNodeLabel": layout.RealNodeLabel, "CoreDNSImage": layout.CoreDNSImage, "DNSServiceIP": layout.DNSServiceIP,
	})
	if err != nil {
		return nil, fmt.Errorf("render the addons: %w", err)
	}
	return b.Bytes(), nil
}
