package route

import (
	"strings"
	"testing"
)

func TestASecondStatementIsSeen(t *testing.T) {
	for sql, want := range map[string]bool{
		"":                                 false,
		"SELECT 1":                         false,
		"SELECT 1;":                        false,
		"SELECT 1 ; \t\r\n\f\v":            false,
		"SELECT 1;;":                       false,
		"; SELECT 1":                       false,
		"-- first\n; SELECT 1":             false,
		"SELECT 1; -- done; really":        false,
		"SELECT 1; /* a; /* b; */ c */ ;":  false,
		"SELECT 1 -- one; SELECT 2":        false,
		"SELECT 1 /* ; */ + 2":             false,
		"SELECT ';' || 'it''s; so'":        false,
		`SELECT ";" FROM "a"";b"`:          false,
		"SELECT $$a; b$$":                  false,
		"SELECT $q$a; $$ b; $q$ , $1":      false,
		"SELECT a$b$ FROM x WHERE c = 'd'": false,

		"DELETE FROM x; SELECT 1":                     true,
		"SELECT 1;SELECT 2;":                          true,
		"SELECT 1;; SELECT 2":                         true,
		"SELECT 1; -- and\n SELECT 2":                 true,
		"SELECT 1 -- one\r; SELECT 2":                 true,
		"SELECT 1; /* and */ 'x'":                     true,
		"SELECT count(*) FROM x WHERE y = $1; COMMIT": true,
		"SELECT 'a''b'; SELECT 2":                     true,
		`SELECT "a"";"; SELECT 2`:                     true,
		"SELECT $a$;$a$; SELECT 2":                    true,
		"SELECT a$b$; SELECT $b$":                     true, // a name may hold dollars

		"whose string does not end ': x; y":            false,
		"whose comment does not end /* ; y":            false,
		"whose dollars do not end $a$ ; y":             false,
		`SELECT E'it\'s; SELECT 2'`:                    false,
		`SELECT 'depends on settings\'; SELECT 2`:      false,
		"CREATE RULE r AS ON INSERT TO x DO (a; b)":    false,
		"of parentheses that do not fit ); SELECT 2":   false,
		"of parentheses that do not end (; SELECT 2 ;": false,
	} {
		if got := hasSecond(sql); got != want {
			t.Errorf("%q: %v, want %v", sql, got, want)
		}
	}
}

func FuzzStatementsAreReadToTheirEnd(f *testing.F) {
	f.Add("SELECT $a$ ; $a$ -- x\n; /* y */ 'z'")
	f.Fuzz(func(t *testing.T, sql string) {
		if hasSecond(sql) && !strings.Contains(sql, ";") {
			t.Errorf("%q has no second statement", sql)
		}
	})
}
