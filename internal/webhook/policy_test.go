package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var digest = "@sha256:" + strings.Repeat("0123456789abcdef", 4)

func TestAnImageIsOnTheAllowListUpToAWholePart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ admitted, refused []string }{
		"registry.example.com/team": {
			admitted: []string{
				"registry.example.com/team", "registry.example.com/team:1", "registry.example.com/team" + digest,
				"registry.example.com/team/server:1", "registry.example.com/team/a/b:1" + digest,
			},
			refused: []string{
				"registry.example.com/teamwork:1", "registry.example.com/team-b/server:1", "registry.example.com/other/server:1",
				"evil.example/registry.example.com/team:1", "registry.example.com", "", "Registry.example.com/team:1",
			},
		},
		"registry.example.com": {
			admitted: []string{"registry.example.com/server:1", "registry.example.com/team/server:1"},
			refused: []string{
				"registry.example.com:5000/server:1", "registry.example.com.evil.example/server:1", "registry.example.com@evil.example/server:1",
			},
		},
		"registry.example.com:5000": {
			admitted: []string{"registry.example.com:5000/server:1"},
			refused:  []string{"registry.example.com:50001/server:1", "registry.example.com/server:1"},
		},
		"registry.example.com/team/": {
			admitted: []string{"registry.example.com/team/server:1"},
			refused:  []string{"registry.example.com/team:1", "registry.example.com/teamwork/server:1"},
		},
		"registry.example.com/team/server:1": {
			admitted: []string{"registry.example.com/team/server:1", "registry.example.com/team/server:1" + digest},
			refused:  []string{"registry.example.com/team/server:10", "registry.example.com/team/server:1.1"},
		},
		"registry.example.com/team/server@": {
			admitted: []string{"registry.example.com/team/server" + digest},
			refused:  []string{"registry.example.com/team/server:1", "registry.example.com/team/server:1" + digest},
		},
		"registry.example.com/team/server" + digest: {
			admitted: []string{"registry.example.com/team/server" + digest},
			refused:  []string{"registry.example.com/team/server" + digest + "0"},
		},
		"a.example|b.example/team": {
			admitted: []string{"a.example/server:1", "b.example/team/server:1"},
			refused:  []string{"b.example/server:1"},
		},
	}
	for name, tt := range tests {
		policy := Policy{Images: strings.Split(name, "|"), MaxStorageMounts: -1}
		for _, image := range tt.admitted {
			if reasons := policy.judge(subject{image: image}); len(reasons) > 0 {
				t.Errorf("%s refuses %q", name, image)
			}
		}
		for _, image := range tt.refused {
			if reasons := policy.judge(subject{image: image}); len(reasons) == 0 {
				t.Errorf("%s admits %q", name, image)
			}
		}
	}
}

func TestAPolicyRefusesWithEveryReason(t *testing.T) {
	t.Parallel()
	const image = "registry.example.com/server:1"
	tests := map[string]struct {
		policy  Policy
		subject subject
		want    []string
	}{
		"nothing is asked for": {
			policy: Policy{MaxStorageMounts: -1}, subject: subject{image: image, mounts: 64},
		},
		"a tag instead of a digest": {
			policy: Policy{RequireDigest: true, MaxStorageMounts: -1}, subject: subject{image: image},
			want: []string{`image "registry.example.com/server:1" must be given by digest: it must end in @sha256: and 64 hexadecimal digits`},
		},
		"a digest": {
			policy: Policy{RequireDigest: true, MaxStorageMounts: -1}, subject: subject{image: image + digest},
		},
		"half a digest": {
			policy: Policy{RequireDigest: true, MaxStorageMounts: -1}, subject: subject{image: "a.example/b@sha256:0123456789abcdef0123456789abcdef"},
			want: []string{`image "a.example/b@sha256:0123456789abcdef0123456789abcdef" must be given by digest: ` +
				`it must end in @sha256: and 64 hexadecimal digits`},
		},
		"as many mounts as may be": {policy: Policy{MaxStorageMounts: 2}, subject: subject{mounts: 2}},
		"a mount too many": {
			policy: Policy{MaxStorageMounts: 2}, subject: subject{mounts: 3}, want: []string{"volumes mounted: 3, at most 2 may be"},
		},
		"no mount may be": {policy: Policy{}, subject: subject{mounts: 1}, want: []string{"volumes mounted: 1, at most 0 may be"}},
		"labels, with and without a value": {
			policy:  Policy{MaxStorageMounts: -1, RequiredLabels: []string{"team", "cost"}},
			subject: subject{labels: map[string]string{"team": "a", "cost": ""}},
		},
		"everything at once": {
			policy:  Policy{Images: []string{"a.example", "b.example"}, RequireDigest: true, RequiredLabels: []string{"team", "cost"}},
			subject: subject{image: image, mounts: 1, labels: map[string]string{"cost": "1"}},
			want: []string{
				`image "registry.example.com/server:1" is not on the allow list: it must begin with one of ["a.example" "b.example"]`,
				`image "registry.example.com/server:1" must be given by digest: it must end in @sha256: and 64 hexadecimal digits`,
				"volumes mounted: 1, at most 0 may be", `label "team" is required`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.policy.judge(tt.subject)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
