package table

import (
	"slices"
	"strings"
)

// sqlTypes are the known types.
var sqlTypes = []SQLType{SQLText, SQLInteger, SQLNumber, SQLBoolean, SQLJSON, SQLTimestamp, SQLDate, SQLUUID}

func (t *PostgresTool) validate(p *problems, path string) {
	validateDefinition(p, path+".definition", t.Definition)
	if strings.TrimSpace(t.Statement) == "" || len(t.Statement) > maxStatement || strings.ContainsRune(t.Statement, 0) {
		p.add(path+".statement", "must be 1 to %d bytes without NUL", maxStatement)
	}
	if len(t.Params) > maxParams {
		p.add(path+".params", "are %d, the limit is %d", len(t.Params), maxParams)
	}
	for i, param := range t.Params {
		path := index(path+".params", i)
		if !isArgumentName(param.Argument) {
			p.add(path+".argument", "must be 1 to %d printable bytes", maxArgumentName)
		}
		if kind := SQLType(strings.TrimSuffix(string(param.Type), SQLArray)); param.Type != "" && !slices.Contains(sqlTypes, kind) {
			p.add(path+".type", "%s is not known: Text, Integer, Number, Boolean, JSON, Timestamp, Date, UUID, or one of them with []",
				clip(string(param.Type)))
		}
	}
	if t.MaxRows < 0 || t.MaxRows > maxRows {
		p.add(path+".maxRows", "%d must be 1 to %d, or 0 for the default", t.MaxRows, maxRows)
	}
	if t.MaxBytes != 0 && (t.MaxBytes < minRowBytes || t.MaxBytes > maxResult) {
		p.add(path+".maxBytes", "%d must be %d to %d, or 0 for the default", t.MaxBytes, minRowBytes, maxResult)
	}
	t.validateConnection(p, path)
}

func (t *PostgresTool) validateConnection(p *problems, path string) {
	if err := checkDatabaseHost(t.Host); err != nil {
		p.add(path+".host", "%v", err)
	}
	if t.Port < 0 || t.Port > 65535 {
		p.add(path+".port", "%d must be 1 to 65535, or 0 for 5432", t.Port)
	}
	names := map[string]string{"database": t.Database, "user": t.User}
	for _, name := range sorted(names) {
		if value := names[name]; value == "" || len(value) > 63 || !isPrintable(value, "") { // PostgreSQL cuts names after 63 bytes
			p.add(path+"."+name, "must be 1 to 63 printable bytes")
		}
	}
	if t.PasswordFile != "" {
		if err := checkFile(t.PasswordFile); err != nil {
			p.add(path+".passwordFile", "%v", err)
		}
	}
}

// checkDatabaseHost takes a name or an address, an IPv6 address without brackets.
func checkDatabaseHost(host string) error {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return checkAuthority(host)
}

func (b *Backend) validateDatabaseTLS(p *problems, path string) {
	mode := b.Toolset.Postgres.TLS
	b.validateFiles(p, path)
	at := path + ".toolset.postgres.tls"
	switch mode {
	case "", TLSVerifyFull:
	case TLSVerifyCA:
		if b.CAFile == "" {
			p.add(path+".caFile", "must be given with TLS mode %s", mode)
		}
	case TLSDisable:
		unwanted(p, path, "with TLS mode Disable", field{"caFile", b.CAFile != ""},
			field{"clientCertificate", b.ClientCertificate != nil})
		if !b.AllowPrivate {
			p.add(at, "Disable needs allowPrivate: nothing is sent unencrypted to a public address")
		}
	default:
		p.add(at, "%s is not known: %s, %s or %s", clip(string(mode)), TLSVerifyFull, TLSVerifyCA, TLSDisable)
	}
}
