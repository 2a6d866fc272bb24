package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// epoch is the time of every file and of every image.
var epoch = time.Unix(0, 0).UTC()

// file is one entry of a layer.
type file struct {
	// target is the absolute path in the image.
	target string
	// source is the path of a regular file on this machine, or else content holds the bytes.
	source  string
	content []byte
	// link is what a symbolic link leads to; it excludes source and content.
	link string
	// dir makes an empty folder.
	dir  bool
	mode int64
}

// caBundle is where Debian, and most others, keep the certificates of the public authorities.
const caBundle = "/etc/ssl/certs/ca-certificates.crt"

// rootLayer is the lowest layer of every image: a user, a group, certificates and /tmp.
func rootLayer() (v1.Layer, error) {
	files := []file{
		{target: "/etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{target: "/etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{target: "/tmp", dir: true, mode: 0o1777},
	}
	if _, err := os.Stat(caBundle); err == nil {
		files = append(files, file{target: caBundle, source: caBundle, mode: 0o644})
	}
	return filesLayer(files)
}

// treeLayer puts a folder of this machine at target.
func treeLayer(folder, target string) (v1.Layer, error) {
	var files []file
	err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(folder, p)
		if err != nil {
			return err
		}
		f := file{target: path.Join(target, filepath.ToSlash(rel)), source: p, mode: 0o644}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			f.source, f.mode = "", 0o777
			f.link, err = os.Readlink(p)
		case info.Mode()&0o111 != 0:
			f.mode = 0o755
		}
		files = append(files, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", folder, err)
	}
	return filesLayer(files)
}

// filesLayer writes the files, sorted, and the folders they lie in.
func filesLayer(files []file) (v1.Layer, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.target, b.target) })
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	made := map[string]bool{"/": true, ".": true}
	for _, f := range files {
		if err := parents(w, f.target, made); err != nil {
			return nil, err
		}
		made[f.target] = made[f.target] || f.dir
		if err := f.write(w); err != nil {
			return nil, fmt.Errorf("put %s into the image: %w", f.target, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("finish a layer: %w", err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return nil, fmt.Errorf("compress a layer: %w", err)
	}
	return l, nil
}

func parents(w *tar.Writer, target string, made map[string]bool) error {
	dir := path.Dir(target)
	if made[dir] {
		return nil
	}
	if err := parents(w, dir, made); err != nil {
		return err
	}
	made[dir] = true
	return file{target: dir, dir: true, mode: 0o755}.write(w)
}

func (f file) write(w *tar.Writer) (err error) {
	h := &tar.Header{Name: strings.TrimPrefix(f.target, "/"), Mode: f.mode, ModTime: epoch, Format: tar.FormatPAX}
	switch {
	case f.dir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return w.WriteHeader(h)
	case f.link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		return w.WriteHeader(h)
	}
	h.Typeflag = tar.TypeReg
	var from io.Reader = bytes.NewReader(f.content)
	h.Size = int64(len(f.content))
	if f.source != "" {
		in, err := os.Open(f.source)
		if err != nil {
			return fmt.Errorf("open a file of the image: %w", err)
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		info, err := in.Stat()
		if err != nil {
			return fmt.Errorf("read a file of the image: %w", err)
		}
		from, h.Size = in, info.Size()
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, from)
	return err
}
