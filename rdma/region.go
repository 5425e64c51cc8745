package rdma

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/sys"
)

// A Region is memory for RDMA, outside of the Go heap. Its methods may be called
// from any number of goroutines; what is in the memory is the callers' and the
// peers' business.
type Region struct {
	mem   []byte // whole pages, or what was adopted
	size  int
	owned bool // Close unmaps mem

	use    sync.RWMutex // held for reading by those who touch mem, for writing to unmap it
	mapped bool

	mu            sync.Mutex
	closing       bool
	users         map[user]struct{}
	registrations map[*Registration]struct{}
}

// A user is what keeps a Region mapped: an operation under way, or the attempt to
// register a part of it.
type user interface {
	// settle waits until the user is likely to have let go of its regions.
	settle(ctx context.Context) error
}

var (
	_ io.ReaderAt = (*Region)(nil)
	_ io.WriterAt = (*Region)(nil)
)

// Allocate makes a Region of size bytes, all zero, in pages of its own.
func Allocate(size int) (*Region, error) {
	page := os.Getpagesize()
	whole := (size + page - 1) &^ (page - 1)
	if size <= 0 || whole < size {
		return nil, prefix(refuse(ErrRange, "a region of %d bytes", size))
	}
	mem, err := sys.MapAnonymous(whole)
	if err != nil {
		return nil, fmt.Errorf("rdma: a region of %d bytes: %w", size, err)
	}
	return newRegion(mem, size, true), nil
}

// Map makes a Region of size bytes of a file from offset, a multiple of the page
// size: what moves into it is in the file, which must have them and has to be open
// for reading and writing. f may be closed afterwards. Kernels since 6.5 hold pages
// for devices only in memory (memfd, tmpfs, hugetlbfs), not in files of a disk.
//
// If the file is made shorter, a program that touches memory that it had ends
// (SIGBUS of mmap(2)), unless by ReadAt and WriteAt.
func Map(f *os.File, offset int64, size int) (*Region, error) {
	mem, err := mapFile(f, offset, size)
	if err != nil {
		return nil, prefix(err)
	}
	return newRegion(mem, size, true), nil
}

func mapFile(f *os.File, offset int64, size int) (mem []byte, err error) {
	info, err := f.Stat()
	page := int64(os.Getpagesize())
	switch {
	case err != nil:
		return nil, err
	case size <= 0:
		return nil, refuse(ErrRange, "a region of %d bytes", size)
	case offset < 0 || info.Mode().IsRegular() && offset > info.Size()-int64(size):
		return nil, refuse(ErrRange, "%d bytes from %d of %s, which has %d", size, offset, f.Name(), info.Size())
	case offset%page != 0:
		return nil, refuse(ErrRange, "offset %d of %s, which is no multiple of the page size of %d", offset, f.Name(), page)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	cerr := raw.Control(func(fd uintptr) { mem, err = sys.MapFile(fd, offset, size) })
	switch {
	case cerr != nil:
		return nil, cerr
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: %w (it has to be open for reading and writing)", f.Name(), err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return mem, nil
}

// Adopt makes a Region of memory that somebody else mapped, such as a memfd or a
// file of hugetlbfs. It must be a shared mapping, readable and writable, and stay
// mapped until the Region is closed, which does not unmap it. Go heap, stacks and
// other private memory are refused with ErrNotMapped: the collector reuses it, and
// its neighbours in the same page would be exposed to peers. Keep it out of
// children with MADV_DONTFORK.
func Adopt(b []byte) (*Region, error) {
	if len(b) == 0 {
		return nil, prefix(refuse(ErrRange, "a region of 0 bytes"))
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, prefix(err)
	}
	defer maps.Close()
	if err := checkMapping(maps, sys.Address(b), uint64(len(b))); err != nil {
		return nil, prefix(err)
	}
	return newRegion(b, len(b), false), nil
}

func newRegion(mem []byte, size int, owned bool) *Region {
	return &Region{
		mem:           mem,
		size:          size,
		owned:         owned,
		mapped:        true,
		users:         make(map[user]struct{}),
		registrations: make(map[*Registration]struct{}),
	}
}

// Len returns the size of the Region in bytes.
func (r *Region) Len() int { return r.size }

// Bytes returns the memory itself, nil once the Region is closed. What was returned
// before must not be touched after Close: the memory is gone, and a program that
// touches it ends. ReadAt and WriteAt are safe at any time.
func (r *Region) Bytes() []byte {
	r.use.RLock()
	defer r.use.RUnlock()
	if !r.mapped {
		return nil
	}
	return r.mem[:r.size:r.size]
}

// ReadAt copies memory from off into p, as io.ReaderAt has it.
func (r *Region) ReadAt(p []byte, off int64) (int, error) {
	return r.copyAt(off, len(p), io.EOF, func(mem []byte) int { return copy(p, mem) })
}

// WriteAt copies p into the memory from off, as io.WriterAt has it.
func (r *Region) WriteAt(p []byte, off int64) (int, error) {
	return r.copyAt(off, len(p), io.ErrShortWrite, func(mem []byte) int { return copy(mem, p) })
}

func (r *Region) copyAt(off int64, size int, short error, move func([]byte) int) (n int, err error) {
	r.use.RLock()
	defer r.use.RUnlock()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // of debug.SetPanicOnFault
			n, err = 0, prefix(refuse(ErrNotMapped, "the file has become shorter"))
		default:
			panic(p)
		}
	}()
	switch {
	case !r.mapped:
		return 0, prefix(ErrRegionClosed)
	case off < 0:
		return 0, prefix(refuse(ErrRange, "offset %d", off))
	case off >= int64(r.size):
		if size == 0 {
			return 0, nil
		}
		return 0, short
	}
	if n = move(r.mem[off:r.size]); n < size {
		return n, short
	}
	return n, nil
}

// All returns the whole Region as a Slice.
func (r *Region) All() Slice { return Slice{region: r, size: r.size} }

// Slice returns size bytes of the Region from off. One that is out of range is
// found out when it is used.
func (r *Region) Slice(off, size int) Slice { return r.All().Slice(off, size) }

// Close ends the use of the Region: what has not begun fails with ErrRegionClosed,
// registrations are revoked at once, as [Registration.Revoke] does, and when the
// operations under way have ended the memory is unmapped. Close cancels none. If
// ctx ends first the error is ErrInUse, the memory stays, and Close may be called
// again.
func (r *Region) Close(ctx context.Context) error {
	if ctx == nil {
		return prefix(ErrNoContext)
	}
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	if err := r.revoke(); err != nil {
		return err
	}
	for {
		u, n := r.user()
		if u == nil {
			break
		}
		if err := u.settle(ctx); err != nil {
			return prefix(&hintError{err: err, kind: ErrInUse, hint: fmt.Sprintf("%d operations under way use the region", n)})
		}
	}
	// One that was being made has been registered since.
	if err := r.revoke(); err != nil {
		return err
	}
	r.use.Lock()
	defer r.use.Unlock()
	if !r.mapped {
		return nil
	}
	r.mapped = false
	if !r.owned {
		return nil
	}
	if err := sys.Unmap(r.mem); err != nil {
		return prefix(err)
	}
	return nil
}

// user returns one of those who keep the memory, and how many they are.
func (r *Region) user() (user, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for u := range r.users {
		return u, len(r.users)
	}
	return nil, 0
}

// revoke revokes all registrations.
func (r *Region) revoke() error {
	for {
		r.mu.Lock()
		var reg *Registration
		for reg = range r.registrations {
			break
		}
		r.mu.Unlock()
		if reg == nil {
			return nil
		}
		if err := reg.Revoke(); err != nil && !errors.Is(err, ErrNotRegistered) {
			return err
		}
	}
}

// acquire keeps the memory until release.
func (r *Region) acquire(u user) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return ErrRegionClosed
	}
	r.users[u] = struct{}{}
	return nil
}

func (r *Region) release(u user) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.users, u)
}

// register makes Close revoke reg.
func (r *Region) register(reg *Registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.registrations[reg] = struct{}{}
}

func (r *Region) unregister(reg *Registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.registrations, reg)
}

// A Slice is a part of a Region. It may be copied, and compared with ==. The zero
// Slice is of no Region and cannot be used.
type Slice struct {
	region    *Region
	off, size int
	outside   bool // it was asked for beyond its Region
}

// Len returns the size of the Slice in bytes.
func (s Slice) Len() int { return s.size }

// Bytes returns the memory of the Slice, under the terms of [Region.Bytes]: nil if
// the Region is closed or the Slice is out of range.
func (s Slice) Bytes() []byte {
	if s.check() != nil {
		return nil
	}
	b := s.region.Bytes()
	if b == nil {
		return nil
	}
	return b[s.off : s.off+s.size : s.off+s.size]
}

// Slice returns size bytes of s from off. One that is out of range is found out when it is used.
func (s Slice) Slice(off, size int) Slice {
	part := Slice{region: s.region, off: s.off + off, size: size, outside: s.outside}
	if off < 0 || size < 0 || off > s.size || size > s.size-off {
		part.outside = true
	}
	return part
}

// check says what is wrong with a Slice.
func (s Slice) check() error {
	switch {
	case s.region == nil:
		return refuse(ErrRange, "a slice of no region")
	case s.outside:
		return refuse(ErrRange, "a slice of %d bytes from %d, of a region of %d", s.size, s.off, s.region.size)
	}
	return nil
}

// iovec is the memory as the kernel is told it. The Region must be acquired.
func (s Slice) iovec() cmsg.Iovec {
	return cmsg.Iovec{Addr: sys.Address(s.region.mem[s.off:]), Len: uint64(s.size)}
}

// settleInterval is how often a registration that is being made is looked at by Close.
const settleInterval = time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
