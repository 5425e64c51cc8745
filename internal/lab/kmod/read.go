package kmod

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

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
