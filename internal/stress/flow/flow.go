// Package flow keeps account of the messages between two sockets of rds-stress:
// which are to be sent, which have arrived, in which order and how. It makes no
// system call.
package flow

import (
	"fmt"
	"hash/crc32"
	"net/netip"

	"github.com/rdskit/rdskit/internal/stress/wire"
)

// A Shape is what the messages of a run have in common. Flows share it.
type Shape struct {
	Layout wire.Layout
	Depth  int
	// ReqSize and AckSize are bytes, header included. With AnyReqSize, requests may be
	// shorter, down to the header.
	ReqSize, AckSize int
	AnyReqSize       bool
	// Verify compares payloads with the pattern.
	Verify bool
	// Peer says that the other side is rdskit, too: with Verify each message then has a
	// pattern of its own, and acks say what they answer. C has one pattern for all
	// and wants acks in the order of the requests.
	Peer bool
	// CRC has each message carry a checksum. It needs Peer, and no RDMA.
	CRC bool
	// RDMA says that the fields of Extra are taken.
	RDMA bool

	pattern []byte
	table   *crc32.Table
}

// Prepare makes what flows share.
func (s *Shape) Prepare() {
	s.pattern = wire.AppendPattern(nil, max(s.ReqSize, s.AckSize)+wire.Strides)
	s.table = crc32.MakeTable(crc32.Castagnoli)
}

func (s *Shape) extra() bool { return s.Peer && !s.RDMA }

// varied says that each message has a pattern of its own.
func (s *Shape) varied() bool { return s.Peer && s.Verify }

// payload is what message seq of size bytes has behind its header.
func (s *Shape) payload(seq uint32, size int) []byte {
	start := 0
	if s.varied() {
		start = wire.Shift(seq)
	}
	return s.pattern[start : start+size-int(s.Layout)]
}

// checksum covers the header up to the Extra, and the payload.
func (s *Shape) checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[:wire.OffsetExtra], s.table), s.table, payload)
}

// window is how far ahead of what has arrived a message may be: all that may be under way, and as many
// again that may have been given up.
func (s *Shape) window() uint32 { return uint32(8*s.Depth + 1024) }

// Detect finds out how long the header of an IPv4 message of C is that was sent with -v.
func Detect(b []byte) wire.Layout {
	const sure = 3
	if len(b) >= int(wire.Basic)+sure && string(b[wire.Basic:wire.Basic+sure]) == string(wire.AppendPattern(nil, sure)) {
		return wire.Basic
	}
	return wire.Async
}

// MaxWhole is the length in bytes of the longest messages that a Flow has in one piece, which cost the least to send.
const MaxWhole = 1024

// A Flow is the messages between one local and one remote socket, in both directions.
// It is not safe for concurrent use.
type Flow struct {
	shape  *Shape
	out    []byte               // the next message, if it is not longer; or its header
	expect [wire.MaxHeader]byte // what the headers of the peer look like
	seq    uint32               // of the next message to send

	in       Sequence
	received Received
	pending  pending
	owed     owed
	awaited  int // requests that were given up, and may be answered yet

	Account Account
}

// New makes the flow between two addresses. The Layout of the shape is then final.
func New(shape *Shape, local, remote netip.AddrPort) *Flow {
	f := &Flow{shape: shape, pending: pending{depth: shape.Depth}}
	f.out = make([]byte, max(wire.MaxHeader, min(MaxWhole, max(shape.ReqSize, shape.AckSize))))
	copy(f.out[shape.Layout:], shape.pattern)
	shape.Layout.Put(f.out, &wire.Header{From: local, To: remote})
	shape.Layout.Put(f.expect[:], &wire.Header{From: remote, To: local})
	return f
}

// Full reports whether as many requests as permitted are without an answer.
func (f *Flow) Full() bool { return f.pending.full() }

// Pending is how many requests are without an answer.
func (f *Flow) Pending() int { return f.pending.open }

// Owes is how many requests of the peer are to be answered.
func (f *Flow) Owes() int { return f.owed.n }

// Owed is the index of a request to be answered, of which the oldest has number 0.
func (f *Flow) Owed(i int) uint16 { return f.owed.at(i).index }

// Sent is how many messages were sent, modulo 2^32.
func (f *Flow) Sent() uint32 { return f.seq }

// Incoming is the account of the peer's messages.
func (f *Flow) Incoming() *Sequence { return &f.in }

// MissingOf is Sequence.MissingOf for the messages of the peer, which says that it sent so many.
func (f *Flow) MissingOf(sent uint32) (uint64, bool) { return f.in.MissingOf(sent, f.shape.window()) }

// Request returns the next request, which is head and tail: its header is in head, and if the message is short, all of
// it. They are valid until the next message. Nothing changes until RequestSent.
func (f *Flow) Request(size int) (head, tail []byte) {
	return f.message(f.pending.nextIndex(), wire.Request, size, 0)
}

// RequestSent notes that the request was sent at a time, in nanoseconds of any clock.
func (f *Flow) RequestSent(size int, at int64) {
	f.pending.push(slot{at: at, seq: f.seq})
	f.seq++
	f.Account.RequestsSent++
	f.Account.RequestBytesSent += uint64(size)
}

// Ack is Request for the answer to the oldest request that Owes counts.
func (f *Flow) Ack() (head, tail []byte) {
	o := f.owed.first()
	return f.message(o.index, wire.Ack, f.shape.AckSize, o.seq)
}

// AckSent notes that the answer was sent.
func (f *Flow) AckSent() {
	f.owed.pop()
	f.seq++
	f.Account.AcksSent++
	f.Account.AckBytesSent += uint64(f.shape.AckSize)
}

func (f *Flow) message(index uint16, op wire.Op, size int, acked uint32) (head, tail []byte) {
	s := f.shape
	if size <= len(f.out) {
		head = f.out[:size]
		if s.varied() {
			copy(head[s.Layout:], s.payload(f.seq, size))
		}
	} else {
		head, tail = f.out[:s.Layout], s.payload(f.seq, size)
	}
	wire.PutMessage(head, f.seq, index, op)
	if s.extra() {
		e := wire.Extra{Acked: acked}
		if s.CRC {
			e.CRC = s.checksum(head, s.payload(f.seq, size))
		}
		wire.PutExtra(head, e)
	}
	return head, tail
}

// Expire gives up requests that were sent before t, and returns how many.
func (f *Flow) Expire(t int64) int {
	n := f.pending.expire(t)
	f.Account.GivenUp += uint64(n)
	f.awaited += n
	return n
}

// Awaited is how many requests were given up and have no answer yet.
func (f *Flow) Awaited() int { return f.awaited }

// A Fault is what is wrong with a message that was received.
type Fault uint8

const (
	NoFault Fault = iota
	// Skipped: messages before this one are missing.
	Skipped
	Reordered
	Duplicated
	BadLength
	BadHeader
	BadSequence
	BadPayload
	// Unexpected: it answers nothing.
	Unexpected
	// BadMemory: an operation moved other data than it should have.
	BadMemory
	// FailedRDMA: the kernel reported that an operation failed.
	FailedRDMA
)

func (f Fault) String() string {
	switch f {
	case NoFault:
		return "no fault"
	case Skipped:
		return "messages before it are missing"
	case Reordered:
		return "came behind later ones"
	case Duplicated:
		return "came before"
	case BadLength:
		return "wrong length"
	case BadHeader:
		return "wrong header"
	case BadSequence:
		return "impossible sequence number"
	case BadPayload:
		return "wrong payload"
	case Unexpected:
		return "answers no request"
	case BadMemory:
		return "RDMA moved wrong data"
	case FailedRDMA:
		return "RDMA failed"
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// A Received says what a message was.
type Received struct {
	Op    wire.Op // 0 if it is to be ignored
	Fault Fault
	Seq   uint32
	Index uint16
	// Expected is the sequence number that would have been next.
	Expected uint32
	// SentAt is, for an answer, when its request was sent.
	SentAt int64
}

// Receive takes in a message of the peer's socket. What it returns is valid until the next.
func (f *Flow) Receive(b []byte) *Received {
	s, r := f.shape, &f.received
	if len(b) < int(s.Layout) {
		f.Account.Damaged++
		*r = Received{Fault: BadLength}
		return r
	}
	seq, index, op := wire.Message(b)
	fault := f.inspect(b, seq, index, op)
	next := f.in.Next()
	*r = Received{Op: op, Fault: fault, Seq: seq, Index: index, Expected: next}
	switch {
	case seq == next && fault == NoFault:
		f.in.Advance()
	case !f.unexpected(r):
		return r
	}
	if op == wire.Request {
		f.Account.RequestsReceived++
		f.Account.RequestBytesReceived += uint64(len(b))
		f.owed.push(answer{index: index, seq: seq})
		return r
	}
	f.Account.AcksReceived++
	f.Account.AckBytesReceived += uint64(len(b))
	slot := f.pending.find(index)
	if slot == nil || s.extra() && wire.ParseExtra(b).Acked != slot.seq {
		r.Op = 0
		if s.extra() && f.awaited > 0 && int32(wire.ParseExtra(b).Acked-f.seq) < 0 {
			f.awaited--
			f.Account.Late++
			return r
		}
		f.Account.Foreign++
		r.Fault = Unexpected
		return r
	}
	r.SentAt = slot.at
	f.pending.close(slot)
	f.pending.settle()
	return r
}

// unexpected takes in a message with a fault, or out of order. It reports whether to go on with it.
func (f *Flow) unexpected(r *Received) bool {
	switch f.in.Add(r.Seq, f.shape.window()) {
	case InOrder:
	case Ahead:
		if r.Fault == NoFault {
			r.Fault = Skipped
		}
	case Behind:
		f.Account.Reordered++
		if r.Fault == NoFault {
			r.Fault = Reordered
		}
	case Duplicate:
		f.Account.Duplicated++
		r.Op, r.Fault = 0, Duplicated
		return false
	case Implausible:
		f.Account.Damaged++
		r.Op, r.Fault = 0, BadSequence
		return false
	}
	if r.Fault >= BadLength {
		f.Account.Damaged++
	}
	if r.Fault == BadHeader {
		r.Op = 0
		return false
	}
	return true
}

// inspect compares a message with what the peer should have sent.
func (f *Flow) inspect(b []byte, seq uint32, index uint16, op wire.Op) Fault {
	s := f.shape
	if !s.Layout.SameFlow(b, f.expect[:]) || int(index) >= s.Depth {
		return BadHeader
	}
	want := s.ReqSize
	switch op {
	case wire.Request:
		if s.AnyReqSize {
			want = min(len(b), s.ReqSize)
		}
	case wire.Ack:
		want = s.AckSize
	default:
		return BadHeader
	}
	if len(b) != want {
		return BadLength
	}
	payload := b[s.Layout:]
	if s.CRC && s.checksum(b, payload) != wire.ParseExtra(b).CRC {
		return BadPayload
	}
	if s.Verify && string(payload) != string(s.payload(seq, len(b))) {
		return BadPayload
	}
	return NoFault
}
