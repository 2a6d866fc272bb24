package v1alpha1

// AgentAuthType is how callers are told apart.
type AgentAuthType string

// The ways to tell callers apart.
const (
	// AgentAuthNone lets everybody call who can connect.
	AgentAuthNone AgentAuthType = "None"
	// AgentAuthTokens demands a bearer token.
	AgentAuthTokens AgentAuthType = "Tokens"
)

// AgentAuth is who may call. The agent's own workload may in any case.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'None' || (!has(self.serviceAccounts) && !has(self.oidc) && !has(self.audiences))",message="auth.serviceAccounts, oidc and audiences must not be set when auth.type is None: everybody is let in"
type AgentAuth struct {
	// type is Tokens, which demands a bearer token (JWT) of one of serviceAccounts or oidc, or None, which lets in everybody who can connect.
	// +required
	// +kubebuilder:validation:Enum=None;Tokens
	Type AgentAuthType `json:"type,omitempty"`

	// audiences are accepted in tokens, beside the endpoint's own addresses (status.endpoint and gateway.publicURL).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^[!-~]+$'))",message="audiences[] must consist of letters, digits and signs of ASCII, without spaces"
	Audiences []string `json:"audiences,omitempty"`

	// serviceAccounts are ServiceAccounts of this namespace whose tokens are accepted.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ServiceAccounts []ObjectName `json:"serviceAccounts,omitempty"`

	// oidc are issuers (OpenID Connect) whose tokens are accepted.
	// +optional
	// +listType=map
	// +listMapKey=issuer
	// +kubebuilder:validation:MaxItems=16
	OIDC []OIDCIssuer `json:"oidc,omitempty"`
}

// OIDCIssuer accepts tokens of one issuer.
type OIDCIssuer struct {
	// issuer is its URL, exactly as in the iss claim. Its keys are found by discovery.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https://[^/?#@]+(/[^?#]*)?$')",message="issuer must be a URL such as https://login.example.com/team, beginning with https://: no user, password, query or fragment"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+://([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*[.]?|[[][0-9A-Fa-f.]*:[0-9A-Fa-f:.]+[]])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?([/?]|$)') && size(self.find('://[^/?:]+')) <= 256 && (!self.matches('^[a-z]+://([^/?:]*[.])?([0-9]+|0[xX][0-9A-Fa-f]*)[.]?(:|/|[?]|$)') || isIP(self.find('://[^/?:]+').substring(3))) && (!self.contains('://[') || isIP(self.find('://[[][^]]*').substring(4)))",message="issuer must have a host name or an IP address (a.b.c.d or [a:b::c]), and a port from 1 to 65535 if any"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+://[^/]*(/([A-Za-z0-9._~!$&()*+,;=:@/\\x27-]|%[0-9A-Fa-f]{2})*)?$') && !self.matches('%(2[eEfF5]|5[cC]|7[fF]|[01][0-9A-Fa-f])') && !self.matches('^[a-z]+://[^/]*(/.*)?(//|/[.]{1,2}(/|$))')",message="the path of issuer must consist of letters, digits, -._~!$&'()*+,;=:@/ and percent escapes, without '//', without '.' or '..' as a part, and without escapes of '.', '/', '%', backslash and control characters"
	Issuer string `json:"issuer,omitempty"`

	// audiences are accepted in place of those of auth and the endpoint's own.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^[!-~]+$'))",message="audiences[] must consist of letters, digits and signs of ASCII, without spaces"
	Audiences []string `json:"audiences,omitempty"`

	// subjects are let in. Default: every subject of the issuer that has the claims.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^[ -~]+$'))",message="subjects[] must consist of letters, digits, spaces and signs of ASCII"
	Subjects []string `json:"subjects,omitempty"`

	// claims must be equal in the token; a list must contain the value, and scope must have it among its words.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && size(bytes(k)) <= 512 && k.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]+$') && !k.matches('[\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]'))",message="the keys of claims must have 1 to 512 bytes, and no invisible characters"
	Claims map[string]ClaimValue `json:"claims,omitempty"`

	// caBundle holds the PEM certificates to verify the issuer's with, beside the system's.
	// +optional
	CABundle *CABundleSource `json:"caBundle,omitempty"`
}

// ClaimValue is the value of a claim.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 512 && self.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]+$') && !self.matches('[\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="the value of a claim must have at most 512 bytes, and no invisible characters"
type ClaimValue string
