// Command postgres starts PostgreSQL in a container that holds nothing else. An empty data folder is set up first, in the way of the
// official image, so that manifests work with both: POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE, POSTGRES_USER and POSTGRES_DB, PGDATA,
// which must not be a mount point itself, and SQL files in /docker-entrypoint-initdb.d. Arguments are the server's. It listens once everything is set up.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		os.Exit(1)
	}
}

// run becomes the server.
func run(args []string) error {
	data := or(os.Getenv("PGDATA"), "/var/lib/postgresql/data")
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); errors.Is(err, os.ErrNotExist) {
		fresh := data + ".new" // what a start that failed has left is no database
		if err := os.RemoveAll(fresh); err != nil {
			return err
		}
		if err := initialize(fresh); err != nil {
			return err
		}
		if err := os.Rename(fresh, data); err != nil {
			return err
		}
	}
	command := append([]string{binaries + "postgres", "-D", data, "-c", "listen_addresses=*", "-c", "unix_socket_directories="}, args...)
	return syscall.Exec(binaries+"postgres", command, os.Environ()) //nolint:gosec // who starts the container says what it runs
}
