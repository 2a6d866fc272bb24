package pki

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestEveryCertificateIsValidForItsNamesAndSignedByItsAuthority(t *testing.T) {
	t.Parallel()
	l := layout.Layout{Dir: t.TempDir()}
	if err := EnsureCluster(l, 2, now); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		authority, leaf, name string
		group                 []string
	}{
		"the API server by its Service's name":    {authority: "ca", leaf: "apiserver", name: "kubernetes.default.svc"},
		"the API server by its address":           {authority: "ca", leaf: "apiserver", name: layout.HostIP},
		"the API server by its Service's address": {authority: "ca", leaf: "apiserver", name: layout.APIServiceIP},
		"the second node by its address":          {authority: "ca", leaf: "node2", name: layout.NodeIP(2), group: []string{"system:nodes"}},
		"the administrator":                       {authority: "ca", leaf: "admin", group: []string{"system:masters"}},
		"the aggregator's client":                 {authority: "front-proxy-ca", leaf: "front-proxy-client"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca, _, err := readPair(l.PKI(tc.authority))
			if err != nil {
				t.Fatal(err)
			}
			leaf, _, err := readPair(l.PKI(tc.leaf))
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(ca)
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: tc.name, CurrentTime: now.AddDate(9, 0, 0)}); err != nil {
				t.Errorf("nine years later: %v", err)
			}
			if diff := cmp.Diff(tc.group, leaf.Subject.Organization); diff != "" {
				t.Errorf("organization (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASecondRunChangesNothing(t *testing.T) {
	t.Parallel()
	l := layout.Layout{Dir: t.TempDir()}
	if err := EnsureCluster(l, 2, now); err != nil {
		t.Fatal(err)
	}
	before := contents(t, l.Dir)
	if err := EnsureCluster(l, 2, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, contents(t, l.Dir)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}

func TestOneMoreNodeKeepsAllOtherCertificates(t *testing.T) {
	t.Parallel()
	l := layout.Layout{Dir: t.TempDir()}
	if err := EnsureCluster(l, 1, now); err != nil {
		t.Fatal(err)
	}
	before := contents(t, l.Dir)
	if err := EnsureCluster(l, 2, now); err != nil {
		t.Fatal(err)
	}
	after := contents(t, l.Dir)
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%s changed", name)
		}
	}
	if after["pki/node2.kubeconfig"] == "" {
		t.Error("the second node has no kubeconfig")
	}
}

func TestWhatHasRunOutOrWasHalfWrittenIsMadeAnew(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spoil func(t *testing.T, l layout.Layout)
		at    time.Time
	}{
		"certificates have run out": {at: now.AddDate(11, 0, 0)},
		"a key is missing": {at: now, spoil: func(t *testing.T, l layout.Layout) {
			t.Helper()
			if err := os.Remove(l.PKI("scheduler.key")); err != nil {
				t.Fatal(err)
			}
		}},
		"a certificate is empty": {at: now, spoil: func(t *testing.T, l layout.Layout) {
			t.Helper()
			if err := os.WriteFile(l.PKI("ca.crt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := layout.Layout{Dir: t.TempDir()}
			if err := EnsureCluster(l, 1, now); err != nil {
				t.Fatal(err)
			}
			if tc.spoil != nil {
				tc.spoil(t, l)
			}
			if err := EnsureCluster(l, 1, tc.at); err != nil {
				t.Fatal(err)
			}
			ca, _, err := readPair(l.PKI("ca"))
			if err != nil {
				t.Fatal(err)
			}
			leaf, _, err := readPair(l.PKI("scheduler"))
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(ca)
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: tc.at}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKeysAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	l := layout.Layout{Dir: t.TempDir()}
	if err := EnsureCluster(l, 1, now); err != nil {
		t.Fatal(err)
	}
	keys, err := filepath.Glob(l.PKI("*.key"))
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys: %v, %v", keys, err)
	}
	for _, f := range append(keys, l.Kubeconfig()) {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %o", f, got)
		}
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
