package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

const serviceName = "demo-svc.team.svc.cluster.local"

// secure returns a server that speaks HTTPS, verified as asked.
func secure(asked mcpv1alpha1.ServerTLS) *mcpv1alpha1.MCPServer {
	return makeServer(func(server *mcpv1alpha1.MCPServer) { server.Spec.TLS = &asked })
}

// privateKeyPEM is what must never be quoted.
const privateKeyPEM = "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0IG9mIHRoZSBzZXJ2ZXI=\n-----END EC PRIVATE KEY-----\n"

func trusting() mcpv1alpha1.ServerTLS {
	return mcpv1alpha1.ServerTLS{CASecretRef: &mcpv1alpha1.SecretKey{ObjectName: mcpv1alpha1.ObjectName{Name: "ca"}}}
}

// reconciler returns a Reconciler over the store.
func (s *store) reconciler(profile func(*tls.Config)) *Reconciler {
	return &Reconciler{Client: s, TLSProfile: profile, refs: s.refs, settings: Settings{ClusterDomain: "cluster.local"}}
}

func TestAuthoritiesThatCannotBeUsedAreInvalidAndTellWhatTheyAre(t *testing.T) {
	t.Parallel()
	ca, key := mcptest.NewAuthority(t, "ca"), privateKeyPEM
	otherKey := trusting()
	otherKey.CASecretRef.Key = "bundle.pem"
	tests := map[string]struct {
		secret *corev1.Secret
		asked  mcpv1alpha1.ServerTLS
		want   string
	}{
		"good ones":         {secret("ca", "ca.crt", ca.PEM), trusting(), ""},
		"several":           {secret("ca", "ca.crt", ca.PEM+mcptest.NewAuthority(t, "b").PEM), trusting(), ""},
		"under another key": {secret("ca", "bundle.pem", ca.PEM), otherKey, ""},
		"no Secret": {
			secret("other"), trusting(),
			"Secret 'ca' (tls.caSecretRef) not found in namespace 'team': create it, and the server goes on by itself",
		},
		"no such key": {
			secret("ca", "tls.crt", ca.PEM), trusting(),
			"Secret 'ca' (tls.caSecretRef) in namespace 'team' has no key 'ca.crt': add it, and the server goes on by itself",
		},
		"nothing under it": {secret("ca", "ca.crt", ""), trusting(), "contains no valid PEM certificates: it is empty"},
		"no PEM": {
			secret("ca", "ca.crt", "MIIB"), trusting(),
			"contains no valid PEM certificates: it does not hold a -----BEGIN CERTIFICATE----- block",
		},
		"a private key": {secret("ca", "ca.crt", key), trusting(), "contains no valid PEM certificates: its first block is not a CERTIFICATE"},
		"a broken one": {
			secret("ca", "ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), trusting(),
			"what its CERTIFICATE block holds is not an X.509 certificate",
		},
		"the world's":      {secret("other"), mcpv1alpha1.ServerTLS{}, ""},
		"none, said aloud": {secret("other"), mcpv1alpha1.ServerTLS{InsecureSkipVerify: true}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := makeStore(t, tt.secret).reconciler(nil).trust(t.Context(), secure(tt.asked))
			if tt.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var invalid *ValidationError
			if !errors.As(err, &invalid) || !strings.HasSuffix(invalid.Message, tt.want) || invalid.Reason != mcpv1alpha1.ReasonInvalid {
				t.Errorf("got %v, want invalid since %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), strings.Split(key, "\n")[1]) {
				t.Error("the message quotes the Secret")
			}
		})
	}
}

func TestAuthoritiesThatCannotBeReadAreNoErrorOfTheUser(t *testing.T) {
	t.Parallel()
	s := makeStore(t, secret("ca", "ca.crt", "x"))
	r := s.reconciler(nil)
	r.refs = newReferences(s, failing{s.Client}, nil)
	_, err := r.trust(t.Context(), secure(trusting()))
	var invalid *ValidationError
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &invalid) {
		t.Errorf("got %v, want the deadline", err)
	}
}

// TestAPausedServerWhoseAuthoritiesCannotBeReadIsLookedAtAgain: no other phase tries it again, and until then nobody asks its pods.
func TestAPausedServerWhoseAuthoritiesCannotBeReadIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	observing := slices.DeleteFunc(slices.Clone(phases), func(p reconcile.Phase[*scope]) bool { return p.Condition != mcpv1alpha1.ConditionVerified })
	for name, tt := range map[string]struct {
		secret *corev1.Secret
		fails  bool
		again  bool
	}{
		"the API server does not answer": {secret: secret("ca", "ca.crt", "x"), fails: true, again: true},
		"they are none: a change wakes":  {secret: secret("ca", "ca.crt", "x")},
	} {
		for _, prober := range []*probe.Scheduler{nil, probe.New(probe.Options{})} {
			store := makeStore(t, tt.secret)
			s := makeScope(makeDeployment(), []metav1.Condition{verified}, []metav1.Condition{verified})
			s.server.Spec.TLS = new(trusting())
			s.Client, s.refs, s.prober = store, store.refs, prober
			s.before.Status.Conditions[0].ObservedGeneration = 1
			if tt.fails {
				s.refs = newReferences(store, failing{store.Client}, nil)
			}
			result := reconcile.Run(t.Context(), s, s.server, observing, reconcile.Options{Paused: true})
			if (result.After > 0) != tt.again || s.current(mcpv1alpha1.ConditionVerified).Status != metav1.ConditionTrue {
				t.Errorf("%s: %+v, Verified %+v", name, result, s.current(mcpv1alpha1.ConditionVerified))
			}
		}
	}
}

// failing reads nothing.
type failing struct{ client.Client }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return context.DeadlineExceeded
}

func TestAuthoritiesAreReadOnceAVersionAndHaveAnotherIdOnlyWithOtherCertificates(t *testing.T) {
	t.Parallel()
	first, second := mcptest.NewAuthority(t, "first"), mcptest.NewAuthority(t, "second")
	s := makeStore(t, secret("ca", "ca.crt", first.PEM))
	r, server := s.reconciler(nil), secure(trusting())
	id := func() (id string, reads int) {
		t.Helper()
		s.read = nil
		got, err := r.trust(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		return got.id, len(s.read)
	}
	edit := func(change func(*corev1.Secret)) {
		t.Helper()
		live := &corev1.Secret{}
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "ca"}, live); err != nil {
			t.Fatal(err)
		}
		change(live)
		if err := s.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	before, reads := id()
	if reads != 1 {
		t.Errorf("read %d times at first", reads)
	}
	if again, reads := id(); again != before || reads != 0 {
		t.Errorf("at rest: id %q, want %q; %d reads", again, before, reads)
	}
	edit(func(live *corev1.Secret) { live.Labels = map[string]string{"a": "b"} })
	if again, _ := id(); again != before {
		t.Error("other metadata has another id: the server would be verified anew for nothing")
	}
	edit(func(live *corev1.Secret) { live.Data["ca.crt"] = []byte(second.PEM) })
	if rotated, _ := id(); rotated == before {
		t.Error("other certificates have the same id: the server would not be verified anew")
	}
	r.refs.forget(client.ObjectKeyFromObject(server))
	if len(r.refs.trusted) > 0 {
		t.Error("certificates of a server that is gone are kept")
	}
}

func TestAuthoritiesRollNoPodAndWakeTheServer(t *testing.T) {
	t.Parallel()
	s := makeStore(t, secret("ca", "ca.crt", mcptest.NewAuthority(t, "ca").PEM))
	server := secure(trusting())
	if hash, read := s.hash(server); hash != "" || read != nil {
		t.Errorf("the hash of what pods read is %q, after reading %v", hash, read)
	}
	if diff := cmp.Diff([]string{"ca"}, (&Reconciler{}).watched(server, "Secret")); diff != "" {
		t.Errorf("Secrets that wake the server (-want +got)\n%s", diff)
	}
}

func TestAProfileMayDemandMoreOfTLSAndNeverLess(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ asked, want uint16 }{
		"nothing": {0, tls.VersionTLS12}, "less": {tls.VersionTLS10, tls.VersionTLS12}, "more": {tls.VersionTLS13, tls.VersionTLS13},
	} {
		got, err := makeStore(t).reconciler(func(c *tls.Config) { c.MinVersion = tt.asked }).trust(t.Context(), secure(mcpv1alpha1.ServerTLS{}))
		if err != nil || got.config.MinVersion != tt.want {
			t.Errorf("a profile that asks for %s: %+v, %v", name, got.config, err)
		}
	}
	if got, err := makeStore(t).reconciler(nil).trust(t.Context(), makeServer()); err != nil || got != (trust{}) {
		t.Errorf("plain HTTP has %+v, %v", got, err)
	}
}

func TestACertificateIsVerifiedForTheServicesNameAtThePodsAddress(t *testing.T) {
	t.Parallel()
	ours, theirs := mcptest.NewAuthority(t, "ours"), mcptest.NewAuthority(t, "theirs")
	tests := map[string]struct {
		certificate tls.Certificate
		asked       mcpv1alpha1.ServerTLS
		old         bool // the server speaks TLS 1.1 at most
		want        mcp.Reason
	}{
		"a chain to the authority that is trusted":  {certificate: ours.Certificate(serviceName), asked: trusting()},
		"another authority":                         {certificate: theirs.Certificate(serviceName), asked: trusting(), want: mcp.TLSFailed},
		"another name":                              {certificate: ours.Certificate("demo-svc"), asked: trusting(), want: mcp.TLSFailed},
		"an authority that the world does not know": {certificate: ours.Certificate(serviceName), want: mcp.TLSFailed},
		"anybody, said aloud":                       {certificate: theirs.Certificate("x"), asked: mcpv1alpha1.ServerTLS{InsecureSkipVerify: true}},
		"an old TLS, even if anybody will do": {
			certificate: ours.Certificate(serviceName), asked: mcpv1alpha1.ServerTLS{InsecureSkipVerify: true}, old: true, want: mcp.TLSFailed,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := &tls.Config{Certificates: []tls.Certificate{tt.certificate}, MinVersion: tls.VersionTLS10}
			if tt.old {
				config.MaxVersion = tls.VersionTLS11
			}
			listening := mcptest.ServeTLSAs(t, config, mcptest.Modern(nil))
			r := makeStore(t, secret("ca", "ca.crt", ours.PEM)).reconciler(func(c *tls.Config) { c.MinVersion = tls.VersionTLS10 })
			trusted, err := r.trust(t.Context(), secure(tt.asked))
			if err != nil {
				t.Fatal(err)
			}
			transport := &http.Transport{TLSClientConfig: trusted.config, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, listening.Address())
			}}
			_, err = (&mcp.Client{}).Probe(t.Context(), mcp.Target{URL: "https://192.0.2.1:8080/mcp", Host: serviceName, Transport: transport})
			if got := mcp.ReasonOf(err); got != tt.want {
				t.Errorf("reason %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

func TestACertificateThatIsNotVerifiedIsTold(t *testing.T) {
	t.Parallel()
	careless := secure(mcpv1alpha1.ServerTLS{InsecureSkipVerify: true})
	s := newScope(makeStore(t).reconciler(nil), careless)
	s.server.Namespace = "team"
	if out := s.validate(t.Context()); out.Message != "Configuration is valid; the server's certificate is not verified (insecureSkipVerify)" {
		t.Errorf("Accepted says %q", out.Message)
	}
	out := s.warned(answered(&mcp.Result{ProtocolVersion: "2025-11-25"}))
	if out.Message != "Answered MCP 2025-11-25; the server's certificate is not verified (insecureSkipVerify)" {
		t.Errorf("Verified says %q", out.Message)
	}
	before, after := careless.DeepCopy(), careless.DeepCopy()
	told := accepted
	told.Message += unverified
	after.Status.Conditions = append(after.Status.Conditions, told)
	warnings := func(before, after *mcpv1alpha1.MCPServer) (list []Event) {
		for _, e := range changes(before, after, news{}) {
			if e.Type == corev1.EventTypeWarning {
				list = append(list, e)
			}
		}
		return list
	}
	want := []Event{{
		"Warning", "InsecureTLS", "ConfigurationAccepted",
		"MCPServer team/demo is asked by HTTPS; the server's certificate is not verified (insecureSkipVerify)",
	}}
	if diff := cmp.Diff(want, warnings(before, after), cmp.AllowUnexported(Event{})); diff != "" {
		t.Errorf("at first (-want +got)\n%s", diff)
	}
	if got := warnings(after, after); got != nil {
		t.Errorf("told again: %v", got)
	}
}
