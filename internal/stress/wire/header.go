package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// A Layout is the length in bytes of the header that each message begins with. The
// payload follows it.
type Layout int

const (
	// Basic is that of 2.0.6, and of 2.3 built for mainline kernels.
	Basic Layout = 60
	// Async has three bytes more: 2.0.7, and 2.3 built for UEK.
	Async Layout = 63
	// Basic6 and Async6 have IPv6 addresses as well, of 2.3.
	Basic6 Layout = Basic + 1 + 32
	Async6 Layout = Async + 1 + 32
)

// MaxHeader is the length of the longest header.
const MaxHeader = int(Async6)

// LayoutOfAck is the layout of a peer whose acknowledgements have the default
// length, which is that of its header. ok is false for other lengths.
func LayoutOfAck(size uint32) (l Layout, ok bool) {
	switch l := Layout(size); l {
	case Basic, Async, Basic6, Async6:
		return l, true
	}
	return 0, false
}

// IPv6 says that the header has IPv6 addresses.
func (l Layout) IPv6() bool { return l == Basic6 || l == Async6 }

// An Op says what a message is.
type Op uint8

const (
	Request Op = 1
	Ack     Op = 2
)

func (o Op) String() string {
	switch o {
	case Request:
		return "request"
	case Ack:
		return "ack"
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// A Header is what each message begins with.
type Header struct {
	// Seq counts the messages of a flow, requests and acks alike, from 0.
	Seq      uint32
	From, To netip.AddrPort
	// Index is the slot of a request, 0 to depth-1 in turn; an ack repeats
	// that of its request.
	Index uint16
	Op    Op

	RDMA  RDMA
	Retry bool // sent once more after a failure, UEK only
}

// Offsets of the fields.
const (
	offSeq      = 0
	offFrom     = 4
	offTo       = 8
	offFromPort = 12
	offToPort   = 14
	offIndex    = 16
	offOp       = 18
	offRDMA     = 19
	offRetry    = 60
)

// Put writes h into the first bytes of b, as many as l says.
func (l Layout) Put(b []byte, h *Header) {
	b = b[:l]
	clear(b)
	be := binary.BigEndian
	be.PutUint32(b[offSeq:], h.Seq)
	if l.IPv6() {
		to := int(l) - 16
		copy(b[to-16:], as16(h.From.Addr()))
		copy(b[to:], as16(h.To.Addr()))
	} else {
		copy(b[offFrom:], as4(h.From.Addr()))
		copy(b[offTo:], as4(h.To.Addr()))
	}
	be.PutUint16(b[offFromPort:], h.From.Port())
	be.PutUint16(b[offToPort:], h.To.Port())
	be.PutUint16(b[offIndex:], h.Index)
	b[offOp] = byte(h.Op)
	PutRDMA(b, &h.RDMA)
	if l.hasRetry() {
		b[offRetry] = boolByte(h.Retry)
	}
}

// Parse takes the header off b. ok is false if b is too short for one.
func (l Layout) Parse(b []byte) (h Header, ok bool) {
	if len(b) < int(l) {
		return Header{}, false
	}
	be := binary.BigEndian
	from, to := netip.AddrFrom4([4]byte(b[offFrom:])), netip.AddrFrom4([4]byte(b[offTo:]))
	if l.IPv6() {
		n := int(l) - 32
		from, to = netip.AddrFrom16([16]byte(b[n:])).Unmap(), netip.AddrFrom16([16]byte(b[n+16:])).Unmap()
	}
	h = Header{
		Seq:   be.Uint32(b[offSeq:]),
		From:  netip.AddrPortFrom(from, be.Uint16(b[offFromPort:])),
		To:    netip.AddrPortFrom(to, be.Uint16(b[offToPort:])),
		Index: be.Uint16(b[offIndex:]),
		Op:    Op(b[offOp]),
		RDMA:  ParseRDMA(b),
	}
	if l.hasRetry() {
		h.Retry = b[offRetry] != 0
	}
	return h, true
}

func (l Layout) hasRetry() bool { return l == Async || l == Async6 }

// The functions below work on a header in place, since most of it stays the same from
// message to message of a flow.

// common is what all layouts begin with. As an array its length is checked once, not for each field.
type common [Basic]byte

// PutMessage sets what differs between messages.
func PutMessage(b []byte, seq uint32, index uint16, op Op) {
	h := (*common)(b)
	binary.BigEndian.PutUint32(h[offSeq:], seq)
	binary.BigEndian.PutUint16(h[offIndex:], index)
	h[offOp] = byte(op)
}

// Message returns what PutMessage sets.
func Message(b []byte) (seq uint32, index uint16, op Op) {
	h := (*common)(b)
	return binary.BigEndian.Uint32(h[offSeq:]), binary.BigEndian.Uint16(h[offIndex:]), Op(h[offOp])
}

// SameFlow reports whether two headers of layout l have the same addresses and ports.
func (l Layout) SameFlow(a, b []byte) bool {
	// Both addresses and both ports of IPv4, as numbers: that costs less than to compare strings.
	x, y, ne := (*common)(a), (*common)(b), binary.NativeEndian
	if ne.Uint64(x[offFrom:]) != ne.Uint64(y[offFrom:]) || ne.Uint32(x[offFromPort:]) != ne.Uint32(y[offFromPort:]) {
		return false
	}
	n := int(l)
	return !l.IPv6() || string(a[n-32:n]) == string(b[n-32:n])
}
