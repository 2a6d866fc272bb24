package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	binaries = "/usr/local/pgsql/bin/"
	scripts  = "/docker-entrypoint-initdb.d"
)

// initialize sets an empty folder up.
func initialize(data string) error {
	password, err := secret("POSTGRES_PASSWORD")
	if err != nil {
		return err
	}
	if password == "" {
		return errors.New("set POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE: the database would be open to everybody")
	}
	user := or(os.Getenv("POSTGRES_USER"), "postgres")
	database := or(os.Getenv("POSTGRES_DB"), user)
	given, err := os.CreateTemp("", "password")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(given.Name()) }()
	if _, err := given.WriteString(password); err != nil {
		return err
	}
	initdb := exec.Command(binaries+"initdb", //nolint:gosec // the same
		"--pgdata="+data, "--username="+user, "--pwfile="+given.Name(),
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", data, err, out)
	}
	// Who knows the password is let in by TCP, and nobody by other ways: of every database, user and address.
	rules := fmt.Sprintf("host %[1]s %[1]s %[1]s scram-sha-256\n", "all")
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(rules), 0o600); err != nil {
		return err
	}
	if database != "postgres" {
		if err := execute(data, "postgres", []byte(`CREATE DATABASE "`+strings.ReplaceAll(database, `"`, `""`)+`"`)); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(scripts, "*.sql")) // in the order of their names
	if err != nil {
		return err
	}
	for _, path := range files {
		statements, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := execute(data, database, statements); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// execute runs statements on a server that nobody can connect to. One ends with a semicolon before an empty line.
func execute(data, database string, statements []byte) error {
	single := exec.Command(binaries+"postgres", //nolint:gosec // the same
		"--single", "-j", "-D", data, "-c", "exit_on_error=on", "-c", "log_min_messages=error", database)
	single.Stdin = bytes.NewReader(append(statements, "\n\n"...))
	if out, err := single.CombinedOutput(); err != nil {
		return fmt.Errorf("execute SQL in the database %s: %w\n%s", database, err, out)
	}
	return nil
}

// secret is the value of a variable, or the content of the file that name_FILE names.
func secret(name string) (string, error) {
	path := os.Getenv(name + "_FILE")
	if path == "" {
		return os.Getenv(name), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read %s_FILE: %w", name, err)
	}
	return strings.TrimSuffix(string(content), "\n"), nil
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
