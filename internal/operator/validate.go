package operator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// The container runtime knows better; this catches a value that was not meant.
	imageReference = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511}$`)
	dnsDomain      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// problems are what is wrong with a command line.
type problems []error

func (p *problems) unless(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

func (o *Options) validate() error {
	var p problems
	p.unless(dnsLabel.MatchString(o.Namespace), "--namespace %q is not the name of a namespace", o.Namespace)
	p.unless(dnsDomain.MatchString(o.ClusterDomain), "--cluster-domain %q is not a DNS domain", o.ClusterDomain)
	p.unless(isAddress(o.MetricsAddress), "--metrics-bind-address %q is neither host:port, :port nor 0", o.MetricsAddress)
	p.unless(isAddress(o.HealthAddress), "--health-probe-bind-address %q is neither host:port, :port nor 0", o.HealthAddress)
	for _, namespace := range o.watched() {
		p.unless(dnsLabel.MatchString(namespace) && namespace != o.Namespace,
			"--watch-namespaces %q is not the name of a namespace, or is the operator's own, where no server is run", namespace)
	}
	p.unless(o.GatewayImage == "" || imageReference.MatchString(o.GatewayImage), "--gateway-image %q is not an image reference", o.GatewayImage)
	p.unless(o.DNSNamespace == "" || dnsLabel.MatchString(o.DNSNamespace), "--dns-namespace %q is not the name of a namespace", o.DNSNamespace)
	if _, err := o.dnsPeers(); err != nil {
		p.unless(false, "--dns-selector %q: %w", o.DNSSelector, err)
	}
	p.unless(o.Workers >= 1 && o.Workers <= 256, "--workers %d is not between 1 and 256", o.Workers)
	if o.MetricsCert.Dir != "" {
		p.checkFiles("--metrics-cert-path", o.MetricsCert)
	}
	o.validateWebhook(&p)
	o.validateLog(&p)
	return errors.Join(p...)
}

// watched are the namespaces to act in; none means all.
func (o *Options) watched() []string {
	if o.WatchNamespaces == "" {
		return nil
	}
	return strings.Split(o.WatchNamespaces, ",")
}

// validateWebhook refuses a policy without the webhook, rather than not to enforce it.
func (o *Options) validateWebhook(p *problems) {
	if o.EnableWebhook {
		p.checkFiles("--webhook-cert-path", o.WebhookCert)
	}
	p.unless(o.EnableWebhook || o.Policy.Empty(),
		"--image-allowlist, --require-image-digest, --max-storage-mounts and --required-labels are enforced by the webhook alone: give --enable-webhook too")
	for _, image := range o.Policy.Images {
		p.unless(imageReference.MatchString(image), "--image-allowlist %q is not the beginning of an image reference", image)
	}
	for _, key := range o.Policy.RequiredLabels {
		p.unless(len(validation.IsQualifiedName(key)) == 0, "--required-labels %q is not the key of a label", key)
	}
	p.unless(o.Policy.MaxStorageMounts >= -1, "--max-storage-mounts %d is neither -1, for any number, nor a number", o.Policy.MaxStorageMounts)
}

func (o *Options) validateLog(p *problems) {
	p.unless(o.LogFormat == "json" || o.LogFormat == "text", "--log-format %q is neither json nor text", o.LogFormat)
	if _, err := parseLevel(o.LogLevel); err != nil {
		p.unless(false, "--log-level: %w", err)
	}
	times := []string{"rfc3339", "rfc3339nano", "iso8601", "epoch", "millis", "nanos"}
	p.unless(slices.Contains(times, o.LogTime), "--zap-time-encoding %q is none of %q", o.LogTime, times)
	levels := []string{"info", "error", "panic"}
	p.unless(slices.Contains(levels, o.LogStacktraces), "--zap-stacktrace-level %q is none of %q", o.LogStacktraces, levels)
	if o.LogConfigMap.Name == "" {
		return
	}
	p.unless(len(validation.IsDNS1123Subdomain(o.LogConfigMap.Name)) == 0, "--logging-configmap-name %q is not the name of a ConfigMap", o.LogConfigMap.Name)
	p.unless(dnsLabel.MatchString(o.LogConfigMap.Namespace), "--logging-configmap-namespace %q is not the name of a namespace", o.LogConfigMap.Namespace)
	p.unless(len(validation.IsConfigMapKey(o.LogConfigMap.Key)) == 0, "--logging-configmap-key %q is not a key of a ConfigMap", o.LogConfigMap.Key)
}

func (p *problems) checkFiles(flag string, cert CertFiles) {
	for _, name := range []string{cert.Name, cert.Key} {
		_, err := os.Stat(filepath.Join(cert.Dir, name))
		p.unless(err == nil, "%s %q: %w", flag, cert.Dir, err)
	}
}

func isAddress(address string) bool {
	if address == "0" {
		return true
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}
