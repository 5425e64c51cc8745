package rdsinfo

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/rdskit/rdskit/internal/abi"
)

// A Delta is what became of RDS between two snapshots of one host. A table that one
// of the snapshots does not have counts as empty in both.
type Delta struct {
	// Elapsed is the time between the snapshots. Rates are per second of it.
	Elapsed     time.Duration
	Counters    []CounterDelta
	Connections []ConnectionDelta
	// Opened and Closed are bound sockets that only the later, or the earlier, snapshot has.
	Opened, Closed []Socket
}

// A CounterDelta is a counter in both snapshots.
type CounterDelta struct {
	Name          string
	Before, After uint64
	// Moved is by how much it grew. It is not known of a counter that went back,
	// because the module was loaded anew or a processor went offline.
	Moved Optional[uint64]
}

// Rate returns the growth per second.
func (d *Delta) Rate(c CounterDelta) Optional[float64] {
	if !c.Moved.Known || d.Elapsed <= 0 {
		return Optional[float64]{}
	}
	return known(float64(c.Moved.Value) / d.Elapsed.Seconds())
}

// A ConnectionDelta is a connection in one or both snapshots.
type ConnectionDelta struct {
	Local, Remote netip.Addr
	TOS           Optional[uint8]
	Transport     string
	// Before and After are its states; that of a snapshot without it is not known.
	Before, After Optional[ConnectionState]
	// Sent and Received are by how much its sequence numbers moved. They are not known if it is new or began anew.
	Sent, Received Optional[uint64]
	// Waiting is what waits in the later snapshot: not sent, or not acknowledged. Grown is by how many
	// bytes that grew.
	Waiting Waiting
	Grown   int64
	// Stuck is whether nothing of what waited in the earlier snapshot was acknowledged since, although
	// an acknowledgement is due. Over no time nothing is.
	Stuck bool
}

// lazyAcks is how many messages in a row ask for no acknowledgement
// (net/rds/sysctl.c:rds_sysctl_max_unacked_packets). Over TCP its acknowledgement serves.
const lazyAcks = 8

// Waiting sums up messages that the peer's kernel has not acknowledged.
type Waiting struct {
	Messages int
	Bytes    int64
}

// Compare returns what became of RDS from the earlier snapshot to the later.
func Compare(earlier, later *Snapshot) *Delta {
	d := &Delta{Elapsed: later.Time.Sub(earlier.Time)}
	d.Counters = compareCounters(either(earlier.Counters), either(later.Counters))
	d.Connections = compareConnections(earlier, later, d.Elapsed > 0)
	d.Opened, d.Closed = compareSockets(either(earlier.Sockets), either(later.Sockets))
	return d
}

// either returns the rows, none if there is no table.
func either[T any](table func() ([]T, error)) []T {
	rows, _ := table()
	return rows
}

func compareCounters(before, after []Counter) []CounterDelta {
	was := make(map[string]uint64, len(before))
	for _, c := range before {
		was[c.Name] = c.Value
	}
	var deltas []CounterDelta
	for _, c := range after {
		value, ok := was[c.Name]
		if !ok {
			continue
		}
		delta := CounterDelta{Name: c.Name, Before: value, After: c.Value}
		if c.Value >= value {
			delta.Moved = known(c.Value - value)
		}
		deltas = append(deltas, delta)
	}
	return deltas
}

// A connectionKey tells a connection from others. Mainline does not tell the TOS of IPv6
// connections: nth counts those that look the same.
type connectionKey struct {
	local, remote netip.Addr
	tos           Optional[uint8]
	transport     string
	nth           int
}

func byKey(connections []Connection) (map[connectionKey]Connection, []connectionKey) {
	all := make(map[connectionKey]Connection, len(connections))
	var keys []connectionKey
	for _, c := range connections {
		k := connectionKey{local: c.Local, remote: c.Remote, tos: c.TOS, transport: c.Transport}
		for _, taken := all[k]; taken; _, taken = all[k] {
			k.nth++
		}
		all[k] = c
		keys = append(keys, k)
	}
	return all, keys
}

// A pair is what messages tell of their connection.
type pair struct {
	local, remote netip.Addr
	tos           Optional[uint8]
}

func compareConnections(earlier, later *Snapshot, timePassed bool) []ConnectionDelta {
	before, keys := byKey(either(earlier.Connections))
	after, newKeys := byKey(either(later.Connections))
	for _, k := range newKeys {
		if _, ok := before[k]; !ok {
			keys = append(keys, k)
		}
	}
	waited, waits := waiting(earlier), waiting(later)
	var deltas []ConnectionDelta
	for _, k := range keys {
		d := ConnectionDelta{Local: k.local, Remote: k.remote, TOS: k.tos, Transport: k.transport}
		b, was := before[k]
		a, is := after[k]
		if was {
			d.Before = known(b.State())
		}
		if is {
			d.After = known(a.State())
		}
		if was && is {
			d.Sent, d.Received = moved(b.NextTX, a.NextTX), moved(b.NextRX, a.NextRX)
		}
		had, has := messagesOf(waited, k), messagesOf(waits, k)
		d.Waiting = has.sum
		d.Grown = has.sum.Bytes - had.sum.Bytes
		d.Stuck = timePassed && was && is && had.due(k.transport) && containsAll(has.messages, had.messages)
		deltas = append(deltas, d)
	}
	slices.SortStableFunc(deltas, func(a, b ConnectionDelta) int {
		return cmp.Or(a.Local.Compare(b.Local), a.Remote.Compare(b.Remote), cmp.Compare(a.TOS.Value, b.TOS.Value))
	})
	return deltas
}

func moved(before, after uint64) Optional[uint64] {
	if after < before {
		return Optional[uint64]{}
	}
	return known(after - before)
}

// A backlog is what waits on one connection. Paths of a connection number their
// messages each from 1.
type backlog struct {
	messages map[Message]int
	sum      Waiting
	unsent   int // messages of sum
}

// due tells whether the backlog should get shorter, if only by one message.
func (b backlog) due(transport string) bool {
	if transport == abi.RDS_TRANS_IB.String() {
		return b.unsent > 0 || b.sum.Messages > lazyAcks
	}
	return b.sum.Messages > 0
}

func waiting(s *Snapshot) map[pair]backlog {
	all := make(map[pair]backlog)
	for _, t := range []Table{SendQueue, RetransmitQueue} {
		queue, _ := s.Queue(t)
		for _, m := range queue {
			k := pair{m.Local.Addr(), m.Remote.Addr(), m.TOS}
			b, ok := all[k]
			if !ok {
				b.messages = make(map[Message]int)
			}
			m.Millis = Optional[uint64]{} // may be the time since, which moves
			b.messages[m]++
			b.sum.Messages++
			b.sum.Bytes += int64(m.Bytes)
			if t == SendQueue {
				b.unsent++
			}
			all[k] = b
		}
	}
	return all
}

// messagesOf returns the backlog of a connection. Where the kernel does not tell its TOS, those of
// all connections between the addresses are joined.
func messagesOf(all map[pair]backlog, k connectionKey) backlog {
	if k.tos.Known {
		return all[pair{k.local, k.remote, k.tos}]
	}
	joined := backlog{messages: make(map[Message]int)}
	for p, b := range all {
		if p.local != k.local || p.remote != k.remote {
			continue
		}
		for m, n := range b.messages {
			joined.messages[m] += n
		}
		joined.sum.Messages += b.sum.Messages
		joined.sum.Bytes += b.sum.Bytes
		joined.unsent += b.unsent
	}
	return joined
}

func containsAll(all, some map[Message]int) bool {
	for m, n := range some {
		if all[m] < n {
			return false
		}
	}
	return true
}

func compareSockets(before, after []Socket) (opened, closed []Socket) {
	was := make(map[uint64]bool, len(before))
	for _, k := range before {
		was[k.Inode] = true
	}
	is := make(map[uint64]bool, len(after))
	for _, k := range after {
		is[k.Inode] = true
		if !was[k.Inode] && k.Bound.Port() != 0 {
			opened = append(opened, k)
		}
	}
	for _, k := range before {
		if !is[k.Inode] && k.Bound.Port() != 0 {
			closed = append(closed, k)
		}
	}
	return opened, closed
}
