package rdssock

import (
	"net/netip"
	"syscall"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
)

// A Message is one of many that ReadBatch receives or WriteBatch sends.
type Message struct {
	// Data is the room for the message, or its bytes.
	Data []byte
	// Control is the room for control messages, or the control messages.
	Control []byte
	// Addr is the source, or the destination; the zero AddrPort is the
	// connected peer.
	Addr netip.AddrPort

	// N and NControl are how much of Data and Control was received or
	// sent, in bytes.
	N, NControl int
	// Flags has MsgTrunc if the message was longer than Data, and
	// MsgCtrunc if its control messages did not fit.
	Flags int
	// Err is why WriteBatch could not send this message, or why ReadBatch
	// does not know where it came from.
	Err error
}

// ReadBatch waits for one message and receives as many as are there, up to len(ms), with
// one system call. It returns how many, and fills in all but Data and Control of those; where a
// notification came between messages, their Data may have changed places.
//
// It pays for messages of some hundred bytes. Large ones are faster one by one.
func (c *Conn) ReadBatch(ms []Message) (int, error) {
	if len(ms) == 0 {
		return 0, nil
	}
	r := c.batches.Get().(*batchOp)
	defer r.release()
	r.ms = ms
	r.batch.Resize(len(ms))
	r.grow(len(ms))
	r.errno = 0
	if err := c.sock.Raw().Read(r.run); err != nil {
		return 0, c.opError(opRead, netip.AddrPort{}, err)
	}
	if r.n == 0 {
		return 0, c.opError(opRead, netip.AddrPort{}, explainRecv(r.errno))
	}
	return r.n, nil
}

// A batchOp is one ReadBatch.
type batchOp struct {
	conn     *Conn
	run      func(fd uintptr) bool
	batch    sys.Batch
	ms       []Message
	controls [][controlSize]byte
	n        int
	errno    syscall.Errno
}

func newBatchOp(c *Conn) *batchOp {
	r := &batchOp{conn: c}
	r.run = r.receive
	return r
}

func (r *batchOp) grow(n int) {
	if n > len(r.controls) {
		r.controls = make([][controlSize]byte, n)
	}
}

func (r *batchOp) release() {
	r.ms = nil
	r.batch.Clear()
	r.conn.batches.Put(r)
}

// receive takes what is there. Returns that carry notifications only take a place in the kernel's
// array but not in the user's.
func (r *batchOp) receive(fd uintptr) bool {
	r.n = 0
	for r.n == 0 {
		for i := range r.ms {
			r.batch.Set(i, r.ms[i].Data, r.controls[i][:])
		}
		var got int
		got, r.errno = r.batch.Recv(fd, 0, 0)
		switch r.errno {
		case 0:
		case syscall.EAGAIN:
			return false
		default:
			return true
		}
		for i := range got {
			r.take(i)
		}
	}
	return true
}

// take moves message i of the kernel's array to the next place in the user's.
func (r *batchOp) take(i int) {
	n, oobn, flags, name := r.batch.Message(i)
	control := r.controls[i][:oobn]
	if len(name) == 0 {
		r.conn.deliver(control, nil)
		return
	}
	m := &r.ms[r.n]
	if r.n < i {
		// A notification left a gap: the user's buffers are exchanged rather than copied.
		m.Data, r.ms[i].Data = r.ms[i].Data, m.Data
	}
	src, _, ok := abi.ParseSockaddr(name)
	m.Addr, m.Err = r.conn.withZone(src), nil
	if !ok {
		m.Err = errAddressFamily
	}
	m.N, m.NControl, m.Flags = n, 0, flags
	if oobn > 0 {
		var whole bool
		if m.NControl, whole = r.conn.deliver(control, m.Control); !whole {
			m.Flags |= MsgCtrunc
		}
	}
	r.n++
}

// WriteBatch queues messages one after the other and returns how many it has
// tried. What became of each stands in its N or Err: a congested or wrong destination
// does not keep those behind it back. It waits for nothing, except for the
// send buffer to have room for the first message; when the buffer is full
// later, it returns.
//
// It saves no system calls: the kernel refuses sendmmsg(2) for RDS. The error is for what
// concerns the whole Conn: its deadline, or that it is closed.
func (c *Conn) WriteBatch(ms []Message) (int, error) {
	w := c.writes.Get().(*writeOp)
	defer w.release()
	for i := range ms {
		m := &ms[i]
		m.N, m.NControl, m.Err = 0, 0, nil
		if err := w.prepare(m.Data, m.Control, m.Addr, 0); err != nil {
			m.Err = c.opError(opWrite, m.Addr, err)
			continue
		}
		if c.limit != nil {
			if err := c.limit.tryAdmit(w); err != nil {
				m.Err = c.opError(opWrite, w.dst, err)
				continue
			}
		}
		w.wait = i == 0 && !w.control
		if err := c.sock.Raw().Write(w.run); err != nil {
			if i > 0 {
				return i, nil
			}
			return 0, c.opError(opWrite, w.dst, w.explainWait(err))
		}
		switch {
		case w.errno == syscall.EAGAIN && !w.control:
			return i, nil
		case w.errno != 0:
			m.Err = c.opError(opWrite, w.dst, w.explain())
		default:
			m.N, m.NControl = w.n, len(m.Control)
		}
	}
	return len(ms), nil
}
