package credential

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

const canary = "canary-7f3a"

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		credential *table.Credential
		want       http.Header
	}{
		"nothing": {nil, http.Header{}},
		"Bearer": {
			&table.Credential{Type: table.CredentialBearer, ValueFile: file(t, canary+"\n")},
			http.Header{"Authorization": {"Bearer " + canary}},
		},
		"Bearer from Windows": {
			&table.Credential{Type: table.CredentialBearer, ValueFile: file(t, canary+"\r\n\r\n")},
			http.Header{"Authorization": {"Bearer " + canary}},
		},
		"Basic, the example of RFC 7617": {
			&table.Credential{Type: table.CredentialBasic, UsernameFile: file(t, "Aladdin\n"), PasswordFile: file(t, "open sesame\n")},
			http.Header{"Authorization": {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}},
		},
		"Basic without a password": {
			&table.Credential{Type: table.CredentialBasic, UsernameFile: file(t, "key"), PasswordFile: file(t, "")},
			http.Header{"Authorization": {"Basic a2V5Og=="}},
		},
		"Header": {
			&table.Credential{Type: table.CredentialHeader, Header: "x-api-KEY", ValueFile: file(t, canary)},
			http.Header{"X-Api-Key": {canary}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(c.credential)
			if err != nil {
				t.Fatal(err)
			}
			got := http.Header{}
			if err := s.Apply(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheCredentialReplacesWhatACallerSent(t *testing.T) {
	s, err := New(&table.Credential{Type: table.CredentialBearer, ValueFile: file(t, canary)})
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"Authorization": {"Bearer theirs", "Bearer theirs too"}}
	if err := s.Apply(h); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(http.Header{"Authorization": {"Bearer " + canary}}, h); diff != "" {
		t.Error(diff)
	}
}

func TestAValueThatIsNoHeaderIsRefusedAndNotQuoted(t *testing.T) {
	for name, content := range map[string]string{
		"line feed":       canary + "\nHost: evil.example",
		"carriage return": canary + "\rx",
		"NUL":             canary + "\x00",
		"escape":          canary + "\x1b[31m",
		"delete":          canary + "\x7f",
		"leading space":   " " + canary,
		"trailing tab":    canary + "\t\n",
		"empty":           "",
		"only line feeds": "\n\n",
		"too large":       canary + strings.Repeat("x", 64<<10),
	} {
		for _, credential := range []*table.Credential{
			{Type: table.CredentialBearer, ValueFile: file(t, content)},
			{Type: table.CredentialHeader, Header: "X-Key", ValueFile: file(t, content)},
			{Type: table.CredentialBasic, UsernameFile: file(t, content), PasswordFile: file(t, content)},
		} {
			t.Run(name+"/"+string(credential.Type), func(t *testing.T) {
				s, err := New(credential)
				if err != nil {
					t.Fatal(err)
				}
				h := http.Header{}
				err = s.Apply(h)
				if err == nil || len(h) > 0 {
					t.Fatalf("sent %q", h)
				}
				if strings.Contains(err.Error(), "canary") {
					t.Errorf("the error quotes the value: %v", err)
				}
			})
		}
	}
}

func TestWhatIsWrongWithAValueIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		credential *table.Credential
		want       string
	}{
		"an empty token": {&table.Credential{Type: table.CredentialBearer, ValueFile: file(t, "\n")}, "the token of the credential is empty"},
		"an empty value": {
			&table.Credential{Type: table.CredentialHeader, Header: "X-Key", ValueFile: file(t, "")}, "the value of the credential is empty",
		},
		"a token of two lines": {
			&table.Credential{Type: table.CredentialBearer, ValueFile: file(t, canary+"\n"+canary)},
			"the token of the credential has a line feed or another control character inside, which a header cannot carry",
		},
		"a password with a control character": {
			&table.Credential{Type: table.CredentialBasic, UsernameFile: file(t, "a"), PasswordFile: file(t, canary+"\x00")},
			"the password of the credential has a line feed or another control character inside, which a header cannot carry",
		},
		"nothing of Basic": {
			&table.Credential{Type: table.CredentialBasic, UsernameFile: file(t, ""), PasswordFile: file(t, "")},
			"the user name of the credential is empty, and so is the password",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(tc.credential)
			if err != nil {
				t.Fatal(err)
			}
			unfit, ok := errors.AsType[*UnfitError](s.Apply(http.Header{}))
			if !ok || unfit.Told() != tc.want {
				t.Errorf("told %v, want %s", unfit, tc.want)
			}
		})
	}
}

func TestAUserNameHasNoColon(t *testing.T) {
	s, err := New(&table.Credential{Type: table.CredentialBasic, UsernameFile: file(t, "a:b"), PasswordFile: file(t, "c")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(http.Header{}); err == nil {
		t.Error("sent")
	}
}

// Somebody replaced the old value for a reason, so it is not sent on.
func TestAnOldValueIsNotSentAfterItWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := file(t, "old")
		s, err := New(&table.Credential{Type: table.CredentialBearer, ValueFile: path})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			change func() error
			want   string
		}{
			{func() error { return os.WriteFile(path, []byte("new"), 0o600) }, "Bearer new"},
			{func() error { return os.WriteFile(path, []byte("b\na\nd"), 0o600) }, ""},
			{func() error { return os.WriteFile(path, []byte("good"), 0o600) }, "Bearer good"},
			{func() error { return os.Remove(path) }, ""},
		} {
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			h := http.Header{}
			err := s.Apply(h)
			if got := h.Get("Authorization"); got != step.want || (err == nil) != (step.want != "") {
				t.Errorf("sent %q with error %v, want %q", got, err, step.want)
			}
		}
	})
}

func TestACredentialThatSaysTooLittleIsRefused(t *testing.T) {
	for name, credential := range map[string]*table.Credential{
		"no type":               {ValueFile: "/f"},
		"unknown type":          {Type: "Digest", ValueFile: "/f"},
		"no file":               {Type: table.CredentialBearer},
		"no password file":      {Type: table.CredentialBasic, UsernameFile: "/f"},
		"no header":             {Type: table.CredentialHeader, ValueFile: "/f"},
		"header with a colon":   {Type: table.CredentialHeader, ValueFile: "/f", Header: "X:"},
		"header with CRLF":      {Type: table.CredentialHeader, ValueFile: "/f", Header: "X\r\nY"},
		"header with an umlaut": {Type: table.CredentialHeader, ValueFile: "/f", Header: "Schlüssel"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(credential); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestNoWayOfFormattingShowsTheValue(t *testing.T) {
	s, err := New(&table.Credential{Type: table.CredentialBearer, ValueFile: file(t, canary)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(http.Header{}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&log, nil)), slog.New(slog.NewJSONHandler(&log, nil))} {
		logger.Info("x", "source", s, "copy", *s)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&log, verb+" "+verb+" "+verb+"\n", s, *s, []any{s, *s})
	}
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), strings.Trim(fmt.Sprintf("%d", []byte(canary)), "[]")} {
		if strings.Contains(log.String(), form) {
			t.Errorf("the value shows: %s", log.String())
		}
	}
	if got := fmt.Sprint(s); !strings.HasPrefix(got, "Bearer from /") {
		t.Errorf("it describes itself as %q", got)
	}
}
