package v1alpha1

// ServerTLS is how the certificate of a server is verified. At least TLS 1.2 is spoken, and the certificate must be for the
// DNS name of the Service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.caSecretRef) || !has(self.insecureSkipVerify) || !self.insecureSkipVerify",message="insecureSkipVerify and caSecretRef are mutually exclusive"
type ServerTLS struct {
	// caSecretRef is a Secret of this namespace with the certificates of the authorities to trust, in PEM. A change of it
	// verifies the server anew and rolls no pod. Default: the authorities that the operator's image trusts.
	// +optional
	CASecretRef *SecretKey `json:"caSecretRef,omitempty"`

	// insecureSkipVerify accepts any certificate: whoever can answer for the server's address can be it. A warning event
	// and the condition Verified say so. Default: false.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// SecretKey is one key of a Secret in the same namespace.
type SecretKey struct {
	ObjectName `json:",inline"`

	// key of the Secret.
	// +optional
	// +default="ca.crt"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="key must be a key of a Secret: letters, digits, '-', '_' and '.'"
	Key string `json:"key,omitempty"`
}
