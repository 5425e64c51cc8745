package kernel

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// note is an ELF note, in little endian.
func note(name string, kind uint32, desc []byte) []byte {
	pad := func(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(len(name)+1))
	b = le.AppendUint32(b, uint32(len(desc)))
	b = le.AppendUint32(b, kind)
	return append(append(b, pad(append([]byte(name), 0))...), pad(desc)...)
}

// makeELF is a kernel that is nothing but its notes.
func makeELF(t *testing.T, notes []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	prog := elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 64 + 56, Filesz: uint64(len(notes))}
	for _, part := range []any{header, prog, notes} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// makeImage is a boot image with the payload.
func makeImage(payload []byte) []byte {
	b := make([]byte, 1024)
	b[0x1f1] = 1 // sectors of the setup
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint32(b[0x248:], 0)
	binary.LittleEndian.PutUint32(b[0x24c:], uint32(len(payload)))
	return append(b, payload...)
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

func zstandard(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.AppendUint32(w.EncodeAll(b, nil), uint32(len(b)))
}

func TestAKernelIsUncompressedBesideItsImage(t *testing.T) {
	want := makeELF(t, append(note("Linux", 18, []byte("x")), note("Xen", 18, make([]byte, 8))...))
	for name, payload := range map[string][]byte{"gzip": gzipped(t, want), "zstd": zstandard(t, want)} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, "boot/vmlinuz-6.1.0")
			makeFile(t, path, string(makeImage(payload)), 0o644)
			makeTree(t, filepath.Join(root, "lib/modules/6.1.0"), needed[QEMU])
			for range 2 { // the second time there is nothing to do
				if err := Uncompress(path); err != nil {
					t.Fatal(err)
				}
			}
			image, err := Find(QEMU, "", root)
			if err != nil {
				t.Fatal(err)
			}
			if err := Uncompress(image.Path); err != nil {
				t.Errorf("of one that is not compressed: %v", err)
			}
			if got, err := os.ReadFile(image.Path); err != nil || !bytes.Equal(got, want) || image.Release != "6.1.0" {
				t.Errorf("%+v is of %d bytes, %v; want the %d of the kernel", image, len(got), err, len(want))
			}
		})
	}
}

func TestAnImageThatIsNoKernelIsNotUncompressed(t *testing.T) {
	good := makeImage(gzipped(t, makeELF(t, note("Xen", 18, nil))))
	for _, test := range []struct {
		name  string
		image []byte
		want  string
	}{
		{"empty", nil, "not a Linux kernel"},
		{"text", bytes.Repeat([]byte("text "), 500), "not a Linux kernel"},
		{"cut off", good[:len(good)-1], "shorter than it says"},
		{"damaged", append(good[:len(good)-8:len(good)-8], make([]byte, 8)...), "uncompress"},
		{"with an unknown compression", makeImage([]byte("LZ4 it may be")), "no compression is known"},
		{"without the entry", makeImage(gzipped(t, makeELF(t, note("Xen", 17, nil)))), "CONFIG_PVH"},
		{"with notes that are none", makeImage(gzipped(t, makeELF(t, bytes.Repeat([]byte{0xff}, 40)))), "CONFIG_PVH"},
		{"with no ELF file", makeImage(gzipped(t, bytes.Repeat([]byte("no ELF file "), 20))), "bad magic"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "vmlinuz-6.1.0")
			makeFile(t, path, string(test.image), 0o644)
			if err := Uncompress(path); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %q and the path", err, test.want)
			}
			if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
				t.Errorf("%d files, %v; want the image alone", len(files), err)
			}
		})
	}
}
