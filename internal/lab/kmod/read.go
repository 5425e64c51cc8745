package kmod

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxModule bounds what a compressed module may grow to.
const maxModule = 256 << 20

// ReadModule reads a module file, which may be compressed as its name says:
// .ko, .ko.gz, .ko.xz or .ko.zst.
func ReadModule(name string) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := decompressor(path.Ext(name), b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if r == nil {
		return b, nil
	}
	b, err = io.ReadAll(io.LimitReader(r, maxModule+1))
	if err == nil && len(b) == 0 {
		err = errors.New("there is nothing in it")
	}
	if err == nil && len(b) > maxModule {
		err = fmt.Errorf("more than %d bytes when uncompressed", maxModule)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// Uncompress uncompresses the files of the named modules of the tree in directory dir, and of
// all they need, and tells whether there was any. The index has to be made anew then.
func (t *Tree) Uncompress(dir string, names ...string) (changed bool, err error) {
	files, err := t.Load(names...)
	if err != nil {
		return false, err
	}
	for _, file := range files {
		if path.Ext(file) == ".ko" {
			continue
		}
		name := filepath.Join(dir, file)
		b, err := ReadModule(name)
		if err != nil {
			return changed, err
		}
		if err := os.WriteFile(strings.TrimSuffix(name, path.Ext(name)), b, 0o644); err != nil {
			return changed, err
		}
		if err := os.Remove(name); err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}

func decompressor(ext string, b []byte) (io.Reader, error) {
	switch ext {
	case ".gz":
		return gzip.NewReader(bytes.NewReader(b))
	case ".xz":
		return xz.NewReader(bytes.NewReader(b))
	case ".zst":
		d, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, nil
}
