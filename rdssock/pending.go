package rdssock

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
)

// A Queue is what a Conn has written and the kernels of its destinations have
// not acknowledged.
type Queue struct {
	Messages int
	Bytes    int64
	// Destinations has a row for each destination, the one with most bytes first.
	Destinations []DestinationQueue
}

// A DestinationQueue is the part of a Queue that goes to Addr.
type DestinationQueue struct {
	Addr     netip.AddrPort
	Messages int
	Bytes    int64
}

// Pending returns what is queued, as the kernel's tables of messages to send
// and to retransmit have it (RDS6_INFO_SEND_MESSAGES and RDS6_INFO_RETRANS_MESSAGES).
// These list the messages of all sockets, so the cost grows with them. Messages that move
// from one table to the other meanwhile may be missed or counted twice.
//
// Messages to an address of this host never show: the kernel acknowledges them at once.
func (c *Conn) Pending() (Queue, error) {
	q, err := c.pending(abi.RDS6_INFO_SEND_MESSAGES, abi.RDS6_INFO_RETRANS_MESSAGES)
	if err != nil {
		return Queue{}, c.opError(opGet, netip.AddrPort{}, err)
	}
	return q, nil
}

// Flush waits until nothing is queued: the kernel of every destination has
// acknowledged what was written before the call, and Close would drop nothing.
// That the programs there read it, or exist, it does not mean.
func (c *Conn) Flush(ctx context.Context) error {
	// A message moves from the first table to the second when it is sent, and back
	// when a connection fails: nothing is queued once both were empty twice in turn.
	const rounds = 2
	delay := time.Millisecond
	for empty := 0; empty < rounds; {
		q, err := c.pending(abi.RDS6_INFO_SEND_MESSAGES, abi.RDS6_INFO_RETRANS_MESSAGES)
		if err != nil {
			return c.opError("flush", netip.AddrPort{}, err)
		}
		if q.Messages == 0 {
			empty++
			continue
		}
		empty = 0
		if err := pause(ctx, nil, delay); err != nil {
			return c.opError("flush", q.Destinations[0].Addr, errFlush(q, err))
		}
		delay = min(2*delay, 20*time.Millisecond)
	}
	return nil
}

// pending sums up this socket's messages in the given tables.
func (c *Conn) pending(tables ...int) (Queue, error) {
	var q Queue
	rows := make(map[netip.AddrPort]*DestinationQueue)
	for _, table := range tables {
		err := eachMessage(c.sock, table, func(m abi.MessageInfo) {
			from, to := m.Local, m.Remote
			if table == abi.RDS6_INFO_RECV_MESSAGES {
				from, to = to, from
			}
			if !c.isLocal(from) {
				return
			}
			row := rows[to]
			if row == nil {
				row = &DestinationQueue{Addr: c.withZone(to)}
				rows[to] = row
			}
			row.Messages++
			row.Bytes += int64(m.Len)
			q.Messages++
			q.Bytes += int64(m.Len)
		})
		if err != nil {
			return Queue{}, err
		}
	}
	for _, row := range rows {
		q.Destinations = append(q.Destinations, *row)
	}
	slices.SortFunc(q.Destinations, func(a, b DestinationQueue) int {
		return cmp.Or(-cmp.Compare(a.Bytes, b.Bytes), a.Addr.Compare(b.Addr))
	})
	return q, nil
}

// topHolder is the destination with most bytes in the send buffer.
func (c *Conn) topHolder() DestinationQueue {
	q, err := c.pending(abi.RDS6_INFO_SEND_MESSAGES, abi.RDS6_INFO_RETRANS_MESSAGES)
	if err != nil || len(q.Destinations) == 0 {
		return DestinationQueue{}
	}
	return q.Destinations[0]
}

// eachMessage calls f for the rows of a table of messages.
func eachMessage(sock *sys.Socket, table int, f func(abi.MessageInfo)) error {
	b, size, err := sock.Info(table, nil)
	if err != nil {
		return err
	}
	for row := range slices.Chunk(b, size) {
		if m, ok := abi.ParseMessageInfo6(row, abi.Layout{}); ok {
			f(m)
		}
	}
	return nil
}

// A destinationLimit keeps each destination's share of the send buffer below max bytes.
type destinationLimit struct {
	max int

	mu sync.Mutex
	// held is at least what each destination holds: what the tables showed at the last
	// look, and what was written since.
	held map[netip.AddrPort]int64
}

// admit waits until w's message keeps its destination below the limit, and counts it.
func (l *destinationLimit) admit(ctx context.Context, w *writeOp) error {
	c := w.conn
	delay := time.Millisecond
	for {
		err := l.tryAdmit(w)
		if err == nil || c.congestion == FailWhenCongested {
			return err
		}
		if werr := pause(ctx, c.writeDeadline.done(), delay); werr != nil {
			return errQueueFull(DestinationQueue{Addr: w.dst, Bytes: l.holds(w.dst)}, werr)
		}
		if c.closed.Load() {
			return os.ErrClosed
		}
		delay = min(2*delay, retestInterval)
	}
}

// tryAdmit counts w's message if it keeps its destination below the limit.
func (l *destinationLimit) tryAdmit(w *writeOp) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.add(w) {
		return nil
	}
	// On this host a message is acknowledged when it is queued at the
	// receiver, so what is unread counts as well.
	q, err := w.conn.pending(abi.RDS6_INFO_SEND_MESSAGES, abi.RDS6_INFO_RETRANS_MESSAGES, abi.RDS6_INFO_RECV_MESSAGES)
	if err != nil {
		return err
	}
	l.held = make(map[netip.AddrPort]int64, len(q.Destinations))
	for _, d := range q.Destinations {
		l.held[d.Addr] = d.Bytes
	}
	if l.add(w) {
		return nil
	}
	return errQueueFull(DestinationQueue{Addr: w.dst, Bytes: l.held[w.dst]}, syscall.EAGAIN)
}

// add counts w's message unless it would exceed the limit. A single message may.
func (l *destinationLimit) add(w *writeOp) bool {
	held := l.held[w.dst]
	if held > 0 && held+int64(w.size) > int64(l.max) {
		return false
	}
	if l.held == nil {
		l.held = make(map[netip.AddrPort]int64)
	}
	l.held[w.dst] = held + int64(w.size)
	return true
}

func (l *destinationLimit) holds(dst netip.AddrPort) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[dst]
}
