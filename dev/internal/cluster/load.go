//go:build linux

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/node"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// Load imports image archives into every node, whether or not they were imported before.
func (c *Cluster) Load(archives ...string) error { return c.load(c.importInto, archives) }

// LoadMissing imports those archives that changed since each node last imported them.
func (c *Cluster) LoadMissing(archives ...string) error { return c.load(c.loadMissing, archives) }

func (c *Cluster) load(into func(node int, archives []string) error, archives []string) error {
	r, err := c.open()
	if err != nil {
		return err
	}
	up, err := c.Running()
	if err != nil {
		return err
	}
	if !up {
		return errors.New("the cluster is not up: run `devcluster up` first")
	}
	absolute := make([]string, len(archives))
	for k, a := range archives {
		if absolute[k], err = filepath.Abs(a); err != nil {
			return fmt.Errorf("find the archive %s: %w", a, err)
		}
		if _, err := archiveID(absolute[k]); err != nil {
			return err
		}
	}
	errs := make([]error, r.Nodes)
	var all sync.WaitGroup
	for i := range r.Nodes {
		all.Go(func() { errs[i] = into(i+1, absolute) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Running reports whether the cluster can take images.
func (c *Cluster) Running() (bool, error) {
	_, ok, err := c.processes.Find(node.Names(1)[0])
	return ok, err
}

func (c *Cluster) loadMissing(i int, archives []string) error {
	loaded := c.loaded(i)
	var missing []string
	for _, a := range archives {
		id, err := archiveID(a)
		if err != nil {
			return err
		}
		if loaded[a] != id {
			missing = append(missing, a)
		}
	}
	return c.importInto(i, missing)
}

func (c *Cluster) importInto(i int, archives []string) error {
	loaded := c.loaded(i)
	for _, a := range archives {
		id, err := archiveID(a)
		if err != nil {
			return err
		}
		if err := c.ctr(i, "images", "import", a); err != nil {
			return err
		}
		loaded[a] = id
		b, err := json.MarshalIndent(loaded, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the list of loaded images: %w", err)
		}
		if err := record.WriteFile(c.loadedFile(i), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// loaded says which archives node i has imported, by path. A list that cannot be read only means that
// everything is imported again.
func (c *Cluster) loaded(i int) map[string]string {
	loaded := map[string]string{}
	if b, err := os.ReadFile(c.loadedFile(i)); err == nil {
		_ = json.Unmarshal(b, &loaded)
	}
	return loaded
}

func (c *Cluster) loadedFile(i int) string { return c.layout.Node(i, "loaded.json") }

// archiveID changes whenever the file does.
func archiveID(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("there is no image archive %s: with `go run -C dev` a relative path starts at dev/, so give the whole path", path)
	}
	if err != nil {
		return "", fmt.Errorf("read the image archive: %w", err)
	}
	return fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)), nil
}
