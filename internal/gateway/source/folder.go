package source

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// folder holds definitions in files that are named by the SHA-256 of their content, so that a container that is started anew
// finds them. With an empty path it holds none.
type folder struct {
	path string
	log  *slog.Logger
}

// read returns what has the digest, or nil. What was written half, or changed, is none.
func (f folder) read(digest string) []byte {
	if f.path == "" {
		return nil
	}
	file, err := os.Open(filepath.Join(f.path, digest))
	if err != nil {
		return nil
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, table.MaxToolFileBytes+1))
	if err != nil || !hasDigest(content, digest) {
		return nil
	}
	return content
}

// write says whether the folder has the content now.
func (f folder) write(digest string, content []byte) bool {
	if f.path == "" {
		return false
	}
	path := filepath.Join(f.path, digest)
	// Written beside and renamed, so that no other process of the same pod reads half of it.
	err := os.MkdirAll(f.path, 0o700)
	if err == nil {
		err = os.WriteFile(path+".new", content, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		f.log.Warn("what was fetched is kept in memory alone, and fetched again after a restart", "folder", f.path, "error", err)
		return false
	}
	return true
}

// keep removes all files but those named, and none that this gateway cannot have written.
func (f folder) keep(files []table.ToolFile) {
	if f.path == "" {
		return
	}
	entries, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Warn("the folder of definitions cannot be read", "folder", f.path, "error", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		isKept := func(file table.ToolFile) bool { return file.SHA256 == name }
		if !entry.Type().IsRegular() || !isOurs(name) || slices.ContainsFunc(files, isKept) {
			continue
		}
		if err := os.Remove(filepath.Join(f.path, name)); err != nil {
			f.log.Warn("a definition that no table names cannot be removed", "folder", f.path, "error", err)
		}
	}
}

// isOurs says whether a file is named as those that are written here.
func isOurs(name string) bool {
	const digits = 64
	if len(name) != digits && len(name) != digits+len(".new") || len(name) > digits && name[digits:] != ".new" {
		return false
	}
	for _, c := range name[:digits] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
