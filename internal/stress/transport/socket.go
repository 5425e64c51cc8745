// Package transport moves the messages of rds-stress: sockets, and a wait for several of
// them, on a thread of its own. It goes past the runtime's poller, which would cost each round a trip through the scheduler.
package transport

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
	"github.com/rdskit/rdskit/rdssock"
)

const (
	// controlSize is the room for control messages of one message, in bytes.
	controlSize = 512
	maxBatch    = 32
	// Messages up to copied bytes are sent from one buffer: to copy them costs less than to have the kernel
	// gather them.
	copied = 1024
)

// SmallMessage is the length in bytes of the longest messages that are received in batches. Larger ones are faster
// one by one, in a buffer that stays in the cache.
const SmallMessage = 4096

// maxWait is how long Socket.Receive waits at most. It holds up the runtime, which can interrupt a Poller but not that.
const maxWait = 4 * time.Millisecond

// A Socket sends and receives within Poller.Run.
type Socket struct {
	conn *rdssock.Conn
	fd   uintptr

	out   sys.Msg
	whole [copied]byte // a message to send that came in two parts
	one   sys.Msg      // for large messages
	batch sys.Batch
	small bool

	plain  bool // the last message came by ReceiveOne
	from   Name // of it
	length int

	buffers  [][]byte
	controls [][controlSize]byte
	got      int // bytes of one, or messages of batch, which the kernel has written to
}

// Listen opens a socket for messages of up to size bytes.
func Listen(local netip.AddrPort, cfg *rdssock.Config, size int) (*Socket, error) {
	conn, err := rdssock.Listen(local, cfg)
	if err != nil {
		return nil, err
	}
	s := &Socket{conn: conn, small: size <= SmallMessage}
	n := 1
	if s.small {
		n = maxBatch
		s.batch.Resize(n)
	}
	s.controls = make([][controlSize]byte, n)
	for i := range n {
		s.buffers = append(s.buffers, make([]byte, size+1)) // a longer message shows
		if s.small {
			s.batch.Set(i, s.buffers[i], s.controls[i][:])
		}
	}
	return s, nil
}

// Conn is the socket outside of Poller.Run.
func (s *Socket) Conn() *rdssock.Conn { return s.conn }

// Close closes the socket, after Run has returned.
func (s *Socket) Close() error { return s.conn.Close() }

// detach takes the socket out of the runtime's poller, which would be woken by all that happens on it. The Conn is
// closed meanwhile.
func (s *Socket) detach() error {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return err
	}
	var derr error
	if err := raw.Control(func(fd uintptr) { s.fd, derr = sys.Dup(fd) }); err != nil {
		return err
	}
	if derr != nil {
		return derr
	}
	err = sys.SetBlocking(s.fd, maxWait)
	if err == nil {
		err = s.conn.Close()
	}
	if err != nil {
		return errors.Join(err, os.NewFile(s.fd, "rds").Close())
	}
	return nil
}

// attach undoes detach.
func (s *Socket) attach() error {
	f := os.NewFile(s.fd, "rds")
	defer f.Close()
	s.fd = ^uintptr(0) // none
	conn, err := rdssock.FileConn(f)
	if err != nil {
		return err
	}
	s.conn = conn
	return nil
}

// A Name is where messages are sent to and come from.
type Name = sys.Name

// NewName returns the Name of an address, which must be valid.
func NewName(ap netip.AddrPort, scope uint32) Name { return sys.NewName(ap, scope) }

// Port is that of a name that Message returned. ok is false if there is none.
func Port(name []byte) (port int, ok bool) {
	if len(name) < abi.SizeofSockaddrIn {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(name[2:])), true
}

// Source is the address of a name that Message returned.
func Source(name []byte) netip.AddrPort {
	ap, _, _ := abi.ParseSockaddr(name)
	return ap
}

// Send sends a message, which is head and tail. EAGAIN says that the send buffer is full, ENOBUFS that the
// destination is congested.
func (s *Socket) Send(head, tail []byte, to *Name) syscall.Errno {
	if len(tail) > 0 {
		n := len(head) + len(tail)
		if n > len(s.whole) {
			return s.SendControl(head, tail, nil, to)
		}
		copy(s.whole[copy(s.whole[:], head):], tail)
		head = s.whole[:n]
	}
	return sys.SendtoRaw(s.fd, head, sys.MSG_DONTWAIT, to)
}

// SendControl is Send with control messages.
func (s *Socket) SendControl(head, tail, control []byte, to *Name) syscall.Errno {
	s.out.SetTo(to)
	s.out.SetParts(head, tail)
	s.out.SetControl(control)
	_, errno := s.out.SendRaw(s.fd, sys.MSG_DONTWAIT)
	return errno
}

// Cancel drops what was sent to a name, as far as its kernel has not acknowledged it (RDS_CANCEL_SENT_TO).
func (s *Socket) Cancel(to *Name) syscall.Errno {
	// The length tells the kernel the family (net/rds/af_rds.c:rds_cancel_sent_to).
	return sys.Setsockopt(s.fd, abi.SOL_RDS, abi.RDS_CANCEL_SENT_TO, to.Bytes())
}

// Receive takes what is there, and returns how many messages that is: 0 if there are none. With wait it waits
// for one or for a notification, for some milliseconds; that takes one call where a Poller takes two.
func (s *Socket) Receive(wait bool) (int, syscall.Errno) {
	s.plain = false
	flags := sys.MSG_DONTWAIT
	if wait {
		flags = sys.MSG_WAITFORONE
	}
	if !s.small {
		s.one.SetData(s.buffers[0])
		s.one.SetControl(s.controls[0][:])
		var errno syscall.Errno
		if s.got, errno = s.one.RecvRaw(s.fd, flags); errno != 0 {
			return 0, quiet(errno)
		}
		return 1, 0
	}
	for i := range s.got {
		s.batch.Again(i, controlSize)
	}
	var errno syscall.Errno
	s.got, errno = s.batch.RecvRaw(s.fd, 0, flags)
	return s.got, quiet(errno)
}

// ReceiveOne is Receive for one message without its control messages, which costs the least. A notification shows as an
// empty message without a source, and is gone.
func (s *Socket) ReceiveOne(wait bool) (int, syscall.Errno) {
	flags := sys.MSG_DONTWAIT
	if wait {
		flags = 0
	}
	s.plain = true
	var errno syscall.Errno
	if s.length, errno = sys.RecvfromRaw(s.fd, s.buffers[0], flags, &s.from); errno != 0 {
		return 0, quiet(errno)
	}
	return 1, 0
}

// More reports whether Receive, which returned n, may have left messages behind.
func (s *Socket) More(n int) bool { return s.plain || n == len(s.buffers) }

func quiet(errno syscall.Errno) syscall.Errno {
	if errno == syscall.EAGAIN || errno == syscall.ETIMEDOUT {
		return 0
	}
	return errno
}

// Message is number i of what was received: its bytes, control messages and source,
// which is empty if it is notifications only. All are valid until the next Receive.
func (s *Socket) Message(i int) (data, control, name []byte) {
	if s.plain {
		return s.buffers[0][:s.length], nil, s.from.Bytes()
	}
	if !s.small {
		return s.buffers[0][:s.got], s.controls[0][:s.one.ControlLen()], s.one.RawName()
	}
	n, oobn, _, name := s.batch.Message(i)
	return s.buffers[i][:n], s.controls[i][:oobn], name
}

// A Poller waits for several sockets at a time.
type Poller struct {
	sockets []*Socket
	set     sys.PollSet
}

// NewPoller waits for these sockets, in calls within Run.
func NewPoller(sockets []*Socket) *Poller {
	p := &Poller{sockets: sockets}
	p.set.Resize(len(sockets))
	return p
}

// Run calls f, during which the sockets can be used. What their Conns were told before still holds, but not
// what package rdssock itself keeps, such as a congestion policy.
func (p *Poller) Run(f func()) error {
	var errs []error
	detached := p.sockets[:0:0]
	for _, s := range p.sockets {
		if err := s.detach(); err != nil {
			errs = append(errs, err)
			break
		}
		detached = append(detached, s)
	}
	if len(errs) == 0 {
		f()
	}
	for _, s := range detached {
		errs = append(errs, s.attach())
	}
	return errors.Join(errs...)
}

// Want says that Wait is to return when socket number i has messages or notifications or, if write is
// set, room in its send buffer. It goes before each Wait.
func (p *Poller) Want(i int, write bool) {
	events := sys.PollIn
	if write {
		events |= sys.PollOut
	}
	p.set.Set(i, p.sockets[i].fd, events)
}

// Wait waits until one of the sockets has what is wanted of it, or for a time.
func (p *Poller) Wait(timeout time.Duration) syscall.Errno { return p.set.Wait(timeout) }

// Ready is what Wait found on socket number i.
func (p *Poller) Ready(i int) (readable, writable bool) {
	got := p.set.Events(i)
	return got&^sys.PollOut != 0, got&sys.PollOut != 0
}
