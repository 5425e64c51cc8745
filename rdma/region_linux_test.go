package rdma_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdskit/rdskit/internal/sys"
	"github.com/rdskit/rdskit/rdma"
)

func TestARegionIsZeroedMemoryInPagesOfItsOwn(t *testing.T) {
	page := os.Getpagesize()
	before := mappings(t)
	for _, size := range []int{1, page - 1, page, page + 1, 1 << 20} {
		r, err := rdma.Allocate(size)
		if err != nil {
			t.Fatal(err)
		}
		b := r.Bytes()
		if r.Len() != size || len(b) != size || cap(b) != size || len(bytes.TrimLeft(b, "\x00")) != 0 {
			t.Errorf("a region of %d bytes has %d, and memory of %d to %d", size, r.Len(), len(b), cap(b))
		}
		fill(b, 1)
		if n := mappings(t); n != before+1 {
			t.Errorf("%d mappings that no child gets, and %d before", n, before)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("closed again: %v", err)
		}
	}
	if after := mappings(t); after != before {
		t.Errorf("%d mappings, and %d before", after, before)
	}
	for _, size := range []int{0, -1, math.MaxInt} {
		if _, err := rdma.Allocate(size); !errors.Is(err, rdma.ErrRange) {
			t.Errorf("a region of %d bytes: %v", size, err)
		}
	}
	if _, err := rdma.Allocate(math.MaxInt - 1<<20); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("a region of all there can be: %v", err)
	}
}

// mappings counts the process's mappings that a child does not get, as no other
// memory is mapped here (VmFlags of proc_pid_smaps(5)).
func mappings(t testing.TB) int {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(smaps)) {
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && slices.Contains(strings.Fields(flags), "dc") {
			n++
		}
	}
	return n
}

func TestAClosedRegionIsAnErrorAndNoCrash(t *testing.T) {
	r, err := rdma.Allocate(100)
	if err != nil {
		t.Fatal(err)
	}
	part := r.Slice(10, 20)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Bytes() != nil || part.Bytes() != nil {
		t.Error("there is memory")
	}
	for name, f := range map[string]func([]byte, int64) (int, error){"ReadAt": r.ReadAt, "WriteAt": r.WriteAt} {
		if n, err := f(make([]byte, 1), 0); n != 0 || !errors.Is(err, rdma.ErrRegionClosed) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func TestReadAtAndWriteAtStayInTheRegion(t *testing.T) {
	r, err := rdma.Allocate(100)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	if n, err := r.WriteAt([]byte("hello"), 98); n != 2 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("writing over the end: %d, %v", n, err)
	}
	b := make([]byte, 5)
	if n, err := r.ReadAt(b, 97); n != 3 || err != io.EOF || string(b[:n]) != "\x00he" {
		t.Errorf("reading over the end: %q, %v", b[:n], err)
	}
	if n, err := r.ReadAt(b, 100); n != 0 || err != io.EOF {
		t.Errorf("reading at the end: %d, %v", n, err)
	}
	if _, err := r.ReadAt(b, -1); !errors.Is(err, rdma.ErrRange) {
		t.Errorf("reading before the beginning: %v", err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(r, 0, 200)); err != nil || len(got) != 100 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

func TestSlicesOutOfRangeHaveNoMemory(t *testing.T) {
	r, err := rdma.Allocate(100)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	if s := r.Slice(10, 50).Slice(5, 45); s.Len() != 45 || &s.Bytes()[0] != &r.Bytes()[15] || cap(s.Bytes()) != 45 {
		t.Errorf("a slice of a slice has %d bytes", s.Len())
	}
	if r.Slice(100, 0).Bytes() == nil || r.All() != r.Slice(0, 100) {
		t.Error("slices at the borders differ")
	}
	const most = int(^uint(0) >> 1)
	for _, s := range []rdma.Slice{
		{}, r.Slice(-1, 5), r.Slice(0, 101), r.Slice(101, 0), r.Slice(0, -1), r.Slice(most, most), r.Slice(1, most),
		r.Slice(10, 10).Slice(5, 6), r.Slice(50, 51).Slice(0, 1), rdma.Slice{}.Slice(0, 0),
	} {
		if s.Bytes() != nil {
			t.Errorf("%+v has memory", s)
		}
	}
}

// Only what is mapped and shared is adopted: peers reach whole pages, and the
// collector moves and reuses its own.
func TestOnlySharedMappingsAreAdopted(t *testing.T) {
	page := os.Getpagesize()
	name := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(4 * page)); err != nil {
		t.Fatal(err)
	}
	mmap := func(prot, flags int) []byte {
		fd := int(f.Fd())
		if flags&syscall.MAP_ANONYMOUS != 0 {
			fd = -1
		}
		b, err := syscall.Mmap(fd, 0, 4*page, prot, flags)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Munmap(b) })
		return b
	}
	const rw = syscall.PROT_READ | syscall.PROT_WRITE
	shared := mmap(rw, syscall.MAP_SHARED)
	hole := mmap(rw, syscall.MAP_SHARED|syscall.MAP_ANONYMOUS)
	if _, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, uintptr(sys.Address(hole[2*page:])), uintptr(page), 0); errno != 0 {
		t.Fatal(errno)
	}
	var onStack [64]byte
	for _, test := range []struct {
		name   string
		memory []byte
		ok     bool
	}{
		{"a file", shared, true},
		{"a part of a file", shared[100:200], true},
		{"shared anonymous memory", mmap(rw, syscall.MAP_SHARED|syscall.MAP_ANONYMOUS), true},
		{"Go heap", make([]byte, 100), false},
		{"a large piece of Go heap", make([]byte, 10<<20), false},
		{"a Go stack, or what the compiler made of it", onStack[:], false},
		{"a Go variable", global[:], false},
		{"private anonymous memory", mmap(rw, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS), false},
		{"a private mapping of a file", mmap(rw, syscall.MAP_PRIVATE), false},
		{"what cannot be written", mmap(syscall.PROT_READ, syscall.MAP_SHARED), false},
		{"a mapping with a hole", hole, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := rdma.Adopt(test.memory)
			if !test.ok {
				if !errors.Is(err, rdma.ErrNotMapped) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if &r.Bytes()[0] != &test.memory[0] || r.Len() != len(test.memory) {
				t.Error("it is other memory")
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			test.memory[0]++ // it is still mapped
		})
	}
	if _, err := rdma.Adopt(nil); !errors.Is(err, rdma.ErrRange) {
		t.Errorf("nothing: %v", err)
	}
}

var global [64]byte

func TestAMappedFileHasWhatIsWrittenToTheRegion(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := 2 * os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	r, err := rdma.Map(f, int64(size/2), 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.WriteAt([]byte("hello"), 7); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := f.ReadAt(b, int64(size/2)+7); err != nil || string(b) != "hello" {
		t.Errorf("the file has %q, %v", b, err)
	}
}

func TestWhatOfAFileCannotBeMappedIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := os.Getpagesize()
	if err := f.Truncate(int64(2 * page)); err != nil {
		t.Fatal(err)
	}
	readable, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer readable.Close()
	const most = int(^uint(0) >> 1)
	for _, test := range []struct {
		name   string
		file   *os.File
		offset int64
		size   int
		want   error
	}{
		{"an offset in a page", f, 1, 100, rdma.ErrRange},
		{"an offset before the file", f, int64(-page), 100, rdma.ErrRange},
		{"an offset behind the file", f, int64(3 * page), 1, rdma.ErrRange},
		{"no bytes", f, 0, 0, rdma.ErrRange},
		{"less than none", f, 0, -1, rdma.ErrRange},
		{"more than the file has", f, int64(page), page + 1, rdma.ErrRange},
		{"more than there can be", f, int64(page), most, rdma.ErrRange},
		{"what may only be read", readable, 0, page, syscall.EACCES},
		{"no file", nil, 0, 1, os.ErrInvalid},
	} {
		if _, err := rdma.Map(test.file, test.offset, test.size); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestAFileThatBecomesShorterIsAnError(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := 2 * os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	r, err := rdma.Map(f, 0, size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func([]byte, int64) (int, error){"ReadAt": r.ReadAt, "WriteAt": r.WriteAt} {
		if n, err := f(make([]byte, size), 0); n != 0 || !errors.Is(err, rdma.ErrNotMapped) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}
