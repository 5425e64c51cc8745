package rdma

import (
	"context"
	"errors"
	"net/netip"

	"github.com/rdskit/rdskit/cmsg"
)

// A Transfer is memory to move, of any size.
type Transfer struct {
	// Peer is whose memory Remote is. A message follows to its port when all has moved, unless it is Silent.
	Peer netip.AddrPort
	// Remote is the peer's memory, and Offset where in it the transfer begins, in bytes.
	Remote Remote
	Offset int64
	// Local is this side's memory, as many slices as there are.
	Local []Slice

	// Payload is the message that follows, and is empty if nil.
	Payload []byte
	// Silent lets the peer's program hear nothing, unless there is a Payload.
	Silent bool
	// Progress is called after each operation with how many bytes have moved, unless it is nil.
	Progress func(moved int64)
}

// Read moves the peer's memory to this side and returns when it has. It takes one
// operation for each MiB, of which Config.Depth are under way at a time; the last
// one, which the message follows, begins when the others have ended.
//
// An error is the one that broke the connection if it is known, else the first, and
// what has moved by then is unknown. When ctx ends, operations under way go on and
// keep their memory.
func (c *Conn) Read(ctx context.Context, t *Transfer) error {
	return c.transfer(ctx, t, opRead, c.StartRead)
}

// Write moves this side's memory to the peer, like [Conn.Read].
func (c *Conn) Write(ctx context.Context, t *Transfer) error {
	return c.transfer(ctx, t, opWrite, c.StartWrite)
}

func (c *Conn) transfer(ctx context.Context, t *Transfer, name string, start func(context.Context, *Operation) error) error {
	pieces, err := t.cut()
	if err != nil {
		return c.opError(name, t.Peer, err)
	}
	var moved int64
	finish := func(op *Operation) error {
		if err := op.Wait(ctx); err != nil {
			return err
		}
		moved += int64(op.Tag)
		if t.Progress != nil {
			t.Progress(moved)
		}
		return nil
	}
	// Operations of one connection end in the order in which they began.
	ring := make([]Operation, min(c.depth, len(pieces)))
	begun, ended := 0, 0
	for {
		last := begun == len(pieces)-1
		if ended < begun && (begun-ended == len(ring) || last || begun == len(pieces)) {
			err = finish(&ring[ended%len(ring)])
			ended++
			if err != nil {
				break
			}
			continue
		}
		if begun == len(pieces) {
			return nil
		}
		op, p := &ring[begun%len(ring)], &pieces[begun]
		op.Key, op.Offset, op.Local, op.Tag = p.key, p.offset, p.local, uint64(p.size)
		op.Peer, op.Silent = t.Peer, !last || t.Silent
		if last {
			op.Payload = t.Payload
		}
		if err = start(ctx, op); err != nil {
			break
		}
		begun++
	}
	// The others are waited for, so that the caller may use the memory again. One
	// may have broken the connection, of which those before it are victims.
	for ; ended < begun; ended++ {
		op := &ring[ended%len(ring)]
		if op.completion.Wait(ctx) != nil {
			break
		}
		if errors.Is(op.result, ErrRemoteAccess) {
			err = op.result
		}
	}
	return err
}

// A piece is what one operation of a transfer moves.
type piece struct {
	key    cmsg.Key
	offset uint64
	local  []Slice
	size   int
}

// cut makes pieces that each stay within one key and have no more local slices than
// an operation may.
func (t *Transfer) cut() ([]piece, error) {
	if err := t.Remote.check(); err != nil {
		return nil, err
	}
	var size int64
	for _, s := range t.Local {
		if err := s.check(); err != nil {
			return nil, err
		}
		size += int64(s.Len())
	}
	if size == 0 {
		return nil, refuse(ErrRange, "no local memory")
	}
	if t.Offset < 0 || t.Offset > t.Remote.Len-size {
		return nil, refuse(ErrRange, "%d bytes from %d, of remote memory of %d", size, t.Offset, t.Remote.Len)
	}
	pieces := make([]piece, 0, (t.Offset%MaxOperation+size-1)/MaxOperation+1)
	at := t.Offset
	for _, s := range t.Local {
		for s.Len() > 0 {
			n := len(pieces)
			if n == 0 || at%MaxOperation == 0 || len(pieces[n-1].local) == maxLocal {
				pieces = append(pieces, piece{key: t.Remote.Keys[at/MaxOperation], offset: uint64(at % MaxOperation)})
				n++
			}
			p := &pieces[n-1]
			m := int(min(int64(s.Len()), MaxOperation-at%MaxOperation))
			p.local = append(p.local, s.Slice(0, m))
			p.size += m
			s = s.Slice(m, s.Len()-m)
			at += int64(m)
		}
	}
	return pieces, nil
}
