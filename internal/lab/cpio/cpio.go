// Package cpio writes archives in the "newc" format that the Linux kernel
// takes as initramfs (Documentation/driver-api/early-userspace/buffer-format.rst).
package cpio

import (
	"fmt"
	"io"
	"math"
)

// Types of files, as in st_mode.
const (
	ModeDir     = 0o040000
	ModeRegular = 0o100000
	ModeSymlink = 0o120000
	ModeChar    = 0o020000
)

const trailer = "TRAILER!!!"

// A Writer writes one archive. Errors stick: the first one is returned by
// every call after it.
type Writer struct {
	w     io.Writer
	err   error
	n     int64 // bytes written
	inode uint32
}

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Dir adds a directory. Parents have to be added before.
func (w *Writer) Dir(name string, perm uint32) error {
	return w.entry(name, ModeDir|perm, 2, nil, 0, 0)
}

// File adds a regular file.
func (w *Writer) File(name string, perm uint32, data []byte) error {
	return w.entry(name, ModeRegular|perm, 1, data, 0, 0)
}

// Symlink adds a symbolic link to target.
func (w *Writer) Symlink(name, target string) error {
	return w.entry(name, ModeSymlink|0o777, 1, []byte(target), 0, 0)
}

// CharDevice adds a character device.
func (w *Writer) CharDevice(name string, perm, major, minor uint32) error {
	return w.entry(name, ModeChar|perm, 1, nil, major, minor)
}

// Close writes the end of the archive. It does not close the underlying
// writer.
func (w *Writer) Close() error {
	w.inode = 0
	w.header(trailer, 0, 1, 0, 0, 0)
	return w.err
}

func (w *Writer) entry(name string, mode, links uint32, data []byte, major, minor uint32) error {
	if int64(len(data)) > math.MaxUint32 {
		w.err = fmt.Errorf("cpio: %s has %d bytes: the format takes up to 4 GiB", name, len(data))
		return w.err
	}
	w.inode++
	w.header(name, mode, links, uint32(len(data)), major, minor)
	w.write(data)
	w.pad()
	return w.err
}

func (w *Writer) header(name string, mode, links, size, major, minor uint32) {
	w.write(fmt.Appendf(nil, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		w.inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, len(name)+1, 0))
	w.write(append([]byte(name), 0))
	w.pad()
}

// pad fills up to a multiple of four.
func (w *Writer) pad() { w.write(make([]byte, -w.n&3)) }

func (w *Writer) write(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	n, err := w.w.Write(b)
	w.n += int64(n)
	w.err = err
}
