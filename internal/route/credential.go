package route

import (
	"cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// authenticate has a backend send the credential of its tool, from files. Which type a tool can have follows from what it speaks.
func authenticate(c *compiled, spec *mcpv1alpha1.MCPToolSpec) error {
	auth := spec.Auth
	if auth == nil {
		return nil
	}
	isDatabase := spec.Type == mcpv1alpha1.ToolPostgres
	if auth.Header != "" && auth.Type != mcpv1alpha1.AuthHeader {
		return invalid("auth.header must not be given with type %s", auth.Type)
	}
	keys, b, s := auth.SecretRef.Keys, &c.backend, secret{c.files, auth.SecretRef.Name, nil}
	switch {
	case auth.Type == mcpv1alpha1.AuthClientCertificate:
		b.ClientCertificate = &table.ClientCertificate{CertFile: s.file(keys.Certificate, "tls.crt"), KeyFile: s.file(keys.Key, "tls.key")}
	case auth.Type == mcpv1alpha1.AuthPassword && isDatabase:
		b.Toolset.Postgres.PasswordFile = s.file(keys.Password, "password")
	case auth.Type == mcpv1alpha1.AuthBearer && !isDatabase:
		b.Credential = &table.Credential{Type: table.CredentialBearer, ValueFile: s.file(keys.Token, "token")}
	case auth.Type == mcpv1alpha1.AuthHeader && !isDatabase:
		b.Credential = &table.Credential{Type: table.CredentialHeader, ValueFile: s.file(keys.Token, "token"), Header: auth.Header}
	case auth.Type == mcpv1alpha1.AuthBasic && !isDatabase:
		b.Credential = &table.Credential{
			Type: table.CredentialBasic, UsernameFile: s.file(keys.Username, "username"), PasswordFile: s.file(keys.Password, "password"),
		}
	case isDatabase:
		return invalid("auth.type %s is not for a database: Password or ClientCertificate", auth.Type)
	default:
		return invalid("auth.type %s is not for type %s: Bearer, Basic, Header or ClientCertificate", auth.Type, spec.Type)
	}
	return s.err
}

// filesOf are the files of a tool's credential and authorities, whether it is served or not. What is wrong with them is not told here.
func filesOf(spec *mcpv1alpha1.MCPToolSpec) files {
	c := compiled{files: files{}, backend: table.Backend{Toolset: &table.Toolset{Postgres: &table.PostgresTool{}}}}
	if authenticate(&c, spec) != nil {
		return files{}
	}
	if _, err := c.files.bundle(spec.CABundle); err != nil {
		return files{}
	}
	return c.files
}

// secret is a Secret whose keys become files.
type secret struct {
	files files
	name  string
	err   error // the first
}

func (s *secret) file(key mcpv1alpha1.DataKey, usual string) string {
	path, err := s.files.add(desired.MountSecret, s.name, cmp.Or(string(key), usual))
	if err != nil && s.err == nil {
		s.err = invalid("auth.secretRef: %s", err)
	}
	return path
}
