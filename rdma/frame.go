package rdma

import (
	"encoding/binary"
	"sync"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/sys"
)

// maxLocal is how many local slices an operation can have (UIO_MAXIOV).
const maxLocal = 1024

// A frame is the memory to which a control message refers by address: the list of
// local slices, and the place for a key. The kernel uses it during sendmsg only.
type frame []byte

const (
	frameKey  = maxLocal * cmsg.SizeofIovec
	frameSize = frameKey + 8
)

// listAddr is where the list of local slices begins.
func (f frame) listAddr() uint64 { return sys.Address(f) }

// keyAddr is where the kernel is to write a key.
func (f frame) keyAddr() uint64 { return sys.Address(f[frameKey:]) }

func (f frame) key() cmsg.Key { return cmsg.Key(binary.NativeEndian.Uint64(f[frameKey:])) }

// frames are for use again, since each is a mapping.
type frames struct {
	mu     sync.Mutex
	free   []frame
	closed bool
}

func (fs *frames) get() (frame, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if n := len(fs.free); n > 0 {
		f := fs.free[n-1]
		fs.free = fs.free[:n-1]
		return f, nil
	}
	return sys.MapAnonymous(frameSize)
}

func (fs *frames) put(f frame) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed {
		sys.Unmap(f)
		return
	}
	fs.free = append(fs.free, f)
}

func (fs *frames) close() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.closed = true
	for _, f := range fs.free {
		sys.Unmap(f)
	}
	fs.free = nil
}
