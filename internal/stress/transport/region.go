package transport

import (
	"encoding/binary"
	"math"
	"os"
	"syscall"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
)

// MaxVector is how many elements an RDMA operation can have.
const MaxVector = 512

// A Memory is what the RDMA of one socket reads and writes, and what the kernel is told of by address. It is mapped: the
// kernel writes to it, and the garbage collector has no part in it.
//
// Each slot has a target, which the peer may reach, and a source, which this side's own operations
// use for what they move. The control messages that its methods return are valid until the next.
type Memory struct {
	mapping []byte
	frame   []byte // the elements of an operation, and a key
	slots   []byte
	size    int // of a target, and of a source

	encoder cmsg.Encoder
	control []byte
	arg     []byte
}

// Where in the frame the kernel finds the elements of an operation, and writes a key. Slots follow.
const (
	keyAt    = MaxVector * cmsg.SizeofIovec
	slotsAt  = 3 * pageSize
	pageSize = 4096 // there may be larger ones
)

// MapMemory makes memory for a number of slots of size bytes, which begin so many bytes into a page.
func MapMemory(d cmsg.Dialect, slots, size, alignment int) (*Memory, error) {
	need := slotsAt + int64(alignment) + 2*int64(slots)*int64(size)
	length, huge := need, need >= sys.HugePage/2
	if huge {
		length += sys.HugePage
	}
	if length > math.MaxInt {
		return nil, os.NewSyscallError("mmap", syscall.ENOMEM)
	}
	mapping, err := sys.MapAnonymous(int(length))
	if err != nil {
		return nil, err
	}
	b := mapping
	if huge {
		sys.WantHuge(b)
		b = b[sys.HugePage-sys.Address(b)%sys.HugePage:]
	}
	b = b[:need]
	// The kernel finds pages that were written to at once, but has to look for those that were not each time it
	// pins them to be read.
	for at := 0; at < len(b); at += pageSize {
		b[at] = 1
	}
	return &Memory{
		mapping: mapping, frame: b[:slotsAt], slots: b[slotsAt+alignment:], size: size, encoder: cmsg.Encoder{Dialect: d},
		control: make([]byte, 0, controlSize), arg: make([]byte, 0, abi.SizeofGetMRArgs),
	}, nil
}

// Close gives the memory back, when the socket is closed.
func (m *Memory) Close() error { return sys.Unmap(m.mapping) }

// Target and Source are the memory of a slot.
func (m *Memory) Target(slot int) []byte { return m.slots[2*slot*m.size : (2*slot+1)*m.size] }

// Source is described at Target.
func (m *Memory) Source(slot int) []byte { return m.slots[(2*slot+1)*m.size : (2*slot+2)*m.size] }

// Address is where the target of a slot is.
func (m *Memory) Address(slot int) uint64 { return sys.Address(m.Target(slot)) }

func (m *Memory) target(slot int) cmsg.Iovec {
	return cmsg.Iovec{Addr: m.Address(slot), Len: uint64(m.size)}
}

// Map registers the target of a slot along with the message, and gives the receiver its key, which Key
// returns after it was sent.
func (m *Memory) Map(slot int, flags cmsg.Flags) []byte {
	m.control = m.encoder.AppendRDMAMap(m.control[:0], cmsg.RDMAMap{
		Vec: m.target(slot), KeyAddr: sys.Address(m.frame[keyAt:]), Flags: flags,
	})
	return m.control
}

// Key is that of the memory that the kernel registered last.
func (m *Memory) Key() uint64 { return binary.NativeEndian.Uint64(m.frame[keyAt:]) }

// Dest gives the receiver of the message the key of a target that is registered.
func (m *Memory) Dest(key uint64) []byte {
	m.control = m.encoder.AppendRDMADest(m.control[:0], cmsg.Key(key))
	return m.control
}

// An Operation is one on a peer's memory.
type Operation struct {
	Slot   int // whose source is this side's part
	Vector int // elements, of equal size
	Key    uint64
	Offset uint64
	Flags  cmsg.Flags
	Token  uint64
}

// Operate has the kernel do op before the message that it goes with.
func (m *Memory) Operate(op *Operation) []byte {
	addr, size := sys.Address(m.Source(op.Slot)), uint64(m.size/op.Vector)
	list := m.frame[:0]
	for range op.Vector {
		list = m.encoder.AppendIovec(list, cmsg.Iovec{Addr: addr, Len: size})
		addr += size
	}
	m.control = m.encoder.AppendRDMAArgs(m.control[:0], cmsg.RDMAArgs{
		Key: cmsg.Key(op.Key), Remote: cmsg.Iovec{Addr: op.Offset, Len: uint64(m.size)},
		LocalAddr: sys.Address(m.frame), LocalCount: uint64(op.Vector), Flags: op.Flags, Token: op.Token,
	})
	return m.control
}

// Free ends the registration of a key (RDS_FREE_MR), within Poller.Run.
func (s *Socket) Free(m *Memory, key uint64) syscall.Errno {
	m.arg = abi.FreeMRArgs{Cookie: key}.Append(m.arg[:0], abi.Layout{})
	return sys.SetsockoptRaw(s.fd, abi.SOL_RDS, abi.RDS_FREE_MR, m.arg)
}

// Register registers the target of a slot without a message (RDS_GET_MR), within Poller.Run. Key then
// returns its key.
func (s *Socket) Register(m *Memory, slot int, flags cmsg.Flags) syscall.Errno {
	return m.register(s.fd, slot, flags)
}

// TryRegister is Register outside of Poller.Run.
func (s *Socket) TryRegister(m *Memory, slot int, flags cmsg.Flags) (syscall.Errno, error) {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) { errno = m.register(fd, slot, flags) })
	return errno, err
}

func (m *Memory) register(fd uintptr, slot int, flags cmsg.Flags) syscall.Errno {
	m.arg = abi.GetMRArgs{
		Vec: abi.Iovec{Addr: m.Address(slot), Bytes: uint64(m.size)}, CookieAddr: sys.Address(m.frame[keyAt:]), Flags: uint64(flags),
	}.Append(m.arg[:0], abi.Layout{})
	return sys.Setsockopt(fd, abi.SOL_RDS, abi.RDS_GET_MR, m.arg)
}
