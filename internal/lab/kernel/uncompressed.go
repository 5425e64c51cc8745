package kernel

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// uncompressed is what comes before the release in the name of a kernel image that
// [Uncompress] wrote.
const uncompressed = "vmlinux.pvh-"

func uncompressedPath(path string) string {
	return filepath.Join(filepath.Dir(path), uncompressed+strings.TrimPrefix(filepath.Base(path), compressed))
}

// preferUncompressed is the path of the same kernel uncompressed, if there is one.
func preferUncompressed(path string) string {
	if p := uncompressedPath(path); p != path {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return path
}

// Uncompress writes the kernel of a compressed image beside it, where Find finds it: an
// emulated PC takes three seconds longer to boot one that it uncompresses
// itself. The kernel has to have the entry for virtual machines that QEMU uses for
// such images (CONFIG_PVH).
func Uncompress(path string) error {
	to := uncompressedPath(path)
	if _, err := os.Stat(to); err == nil || strings.HasPrefix(filepath.Base(path), uncompressed) {
		return nil
	}
	image, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	payload, err := payloadOf(image)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	b, err := uncompress(payload)
	if err != nil {
		return fmt.Errorf("%s: uncompress: %w", path, err)
	}
	if err := checkPVH(b); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(to+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// What tells a boot image, and where.
const (
	magic   = "HdrS"
	magicAt = 0x202
)

// payloadOf finds the compressed kernel in an image (Documentation/arch/x86/boot.rst).
func payloadOf(image []byte) ([]byte, error) {
	const (
		setupSects    = 0x1f1
		payloadOffset = 0x248
		payloadLength = 0x24c
		header        = 0x250
	)
	if len(image) < header || string(image[magicAt:magicAt+len(magic)]) != magic {
		return nil, errors.New("not a Linux kernel for x86")
	}
	le := binary.LittleEndian
	code := (uint64(image[setupSects]) + 1) * 512
	begin := code + uint64(le.Uint32(image[payloadOffset:]))
	end := begin + uint64(le.Uint32(image[payloadLength:]))
	if begin >= end || end > uint64(len(image)) {
		return nil, errors.New("the image is shorter than it says")
	}
	return image[begin:end], nil
}

// maxKernel bounds what a kernel may grow to.
const maxKernel = 1 << 30

// uncompress takes a payload as the kernel's build makes it: the size follows the data,
// except in gzip, which has it already.
func uncompress(payload []byte) ([]byte, error) {
	var r io.Reader
	switch {
	case bytes.HasPrefix(payload, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(bytes.NewReader(payload))
		if err != nil {
			return nil, err
		}
		r = z
	case bytes.HasPrefix(payload, []byte("\x28\xb5\x2f\xfd")) && len(payload) > 4:
		z, err := zstd.NewReader(bytes.NewReader(payload[:len(payload)-4]), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxKernel))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	case bytes.HasPrefix(payload, []byte("\xfd7zXZ\x00")):
		// With a filter for x86 code, which the Go package does not have.
		cmd := exec.Command("xz", "--decompress", "--stdout", "--single-stream")
		cmd.Stdin = bytes.NewReader(payload)
		return cmd.Output()
	default:
		return nil, fmt.Errorf("no compression is known that begins with %x", payload[:min(4, len(payload))])
	}
	b, err := io.ReadAll(io.LimitReader(r, maxKernel))
	if err != nil {
		return nil, err
	}
	return b, nil
}

// checkPVH looks for the ELF note that names the entry (xen/interface/elfnote.h).
func checkPVH(kernel []byte) error {
	f, err := elf.NewFile(bytes.NewReader(kernel))
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		b, err := io.ReadAll(p.Open())
		if err != nil {
			return err
		}
		if hasPVHNote(b) {
			return nil
		}
	}
	return errors.New("the kernel has no entry for virtual machines (CONFIG_PVH)")
}

func hasPVHNote(notes []byte) bool {
	const (
		header      = 12
		phys32Entry = 18 // XEN_ELFNOTE_PHYS32_ENTRY
	)
	align := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	for len(notes) >= header {
		le := binary.LittleEndian
		name, desc := align(le.Uint32(notes)), align(le.Uint32(notes[4:]))
		if header+name+desc > uint64(len(notes)) {
			return false
		}
		if le.Uint32(notes[8:]) == phys32Entry && string(bytes.TrimRight(notes[header:header+name], "\x00")) == "Xen" {
			return true
		}
		notes = notes[header+name+desc:]
	}
	return false
}
