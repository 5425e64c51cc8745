package info

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rdskit/rdskit/internal/plain"
	"github.com/rdskit/rdskit/rdsinfo"
)

// A Frame is what moves between two snapshots, most first.
type Frame struct {
	Time        time.Time
	Elapsed     time.Duration
	Connections []ConnectionActivity
	Sockets     []SocketActivity
	Counters    []rdsinfo.CounterDelta
	// PortCounters are those of RDMA ports that moved: see ComparePorts.
	PortCounters []rdsinfo.RDMACounterDelta
	// Open is how many sockets are bound.
	Open  int
	delta *rdsinfo.Delta
}

// A ConnectionActivity is a connection with its rates, in messages per second.
type ConnectionActivity struct {
	rdsinfo.ConnectionDelta
	SentRate, ReceivedRate rdsinfo.Optional[float64]
}

// A SocketActivity is a socket with messages that its program has not read.
type SocketActivity struct {
	Bound  netip.AddrPort
	Unread rdsinfo.Waiting
	Limit  uint32 // of the receive buffer, in bytes
}

// Congested reports whether what is unread exceeds the receive buffer, which congests the
// port (net/rds/recv.c:rds_recv_rcvbuf_delta).
func (a SocketActivity) Congested() bool { return a.Unread.Bytes > int64(a.Limit) }

// FrameTables are the tables that NewFrame looks at.
func FrameTables() []rdsinfo.Table {
	return []rdsinfo.Table{rdsinfo.Counters, rdsinfo.Connections, rdsinfo.Sockets, rdsinfo.SendQueue, rdsinfo.RetransmitQueue, rdsinfo.ReceiveQueue}
}

// NewFrame compares two snapshots. The filter holds for connections and sockets.
func NewFrame(earlier, later *rdsinfo.Snapshot, filter Filter) *Frame {
	d := rdsinfo.Compare(earlier, later)
	f := &Frame{Time: later.Time, Elapsed: d.Elapsed, delta: d}
	for _, c := range d.Connections {
		if !c.After.Known || !filter.keeps(deltaAttributes(&c)) {
			continue
		}
		f.Connections = append(f.Connections, ConnectionActivity{c, d.Rate(rdsinfo.CounterDelta{Moved: c.Sent}), d.Rate(rdsinfo.CounterDelta{Moved: c.Received})})
	}
	slices.SortStableFunc(f.Connections, func(a, b ConnectionActivity) int {
		return cmp.Or(-cmp.Compare(a.rank(), b.rank()), -cmp.Compare(a.Sent.Value+a.Received.Value, b.Sent.Value+b.Received.Value))
	})
	for _, c := range d.Counters {
		if c.Before != c.After {
			f.Counters = append(f.Counters, c)
		}
	}
	slices.SortStableFunc(f.Counters, func(a, b rdsinfo.CounterDelta) int { return -cmp.Compare(a.Moved.Value, b.Moved.Value) })
	f.sockets(later, filter)
	return f
}

// ComparePorts takes in what moved meanwhile of the counters of RDMA ports.
func (f *Frame) ComparePorts(earlier, later []rdsinfo.RDMACounter) {
	f.PortCounters = rdsinfo.CompareRDMACounters(earlier, later)
	slices.SortStableFunc(f.PortCounters, func(a, b rdsinfo.RDMACounterDelta) int { return -cmp.Compare(a.Moved, b.Moved) })
}

// portRate is the growth per second.
func (f *Frame) portRate(c rdsinfo.RDMACounterDelta) string {
	return rateText(f.delta.Rate(rdsinfo.CounterDelta{Moved: rdsinfo.Optional[uint64]{Value: c.Moved, Known: true}}))
}

func (f *Frame) sockets(s *rdsinfo.Snapshot, filter Filter) {
	unread := make(map[netip.AddrPort]rdsinfo.Waiting)
	queue, _ := s.Queue(rdsinfo.ReceiveQueue)
	for _, m := range queue {
		w := unread[m.Local]
		w.Messages++
		w.Bytes += int64(m.Bytes)
		unread[m.Local] = w
	}
	sockets, _ := s.Sockets()
	for i := range sockets {
		k := &sockets[i]
		if k.Bound.Port() == 0 || !filter.keeps(socketAttributes(k)) {
			continue
		}
		f.Open++
		if w, ok := unread[k.Bound]; ok {
			f.Sockets = append(f.Sockets, SocketActivity{k.Bound, w, k.ReceiveBuffer})
		}
	}
	slices.SortStableFunc(f.Sockets, func(a, b SocketActivity) int { return -cmp.Compare(a.Unread.Bytes, b.Unread.Bytes) })
}

// rank puts what needs attention first.
func (a ConnectionActivity) rank() int {
	switch {
	case a.Stuck:
		return 2
	case a.After.Value != rdsinfo.StateUp:
		return 1
	}
	return 0
}

// moves reports whether there is something to tell of the connection.
func (a ConnectionActivity) moves() bool {
	return a.Sent.Value > 0 || a.Received.Value > 0 || a.Waiting.Messages > 0 || a.Before != a.After || note(a.ConnectionDelta) != ""
}

// Lines returns a line for each thing that moves, each complete by itself.
func (f *Frame) Lines() []string {
	at := f.Time.Format(time.TimeOnly)
	var lines []string
	for _, a := range f.Connections {
		if !a.moves() {
			continue
		}
		line := fmt.Sprintf("%s connection %s to %s tos %s %s sent %s/s received %s/s waiting %d messages %d bytes", at,
			a.Local, a.Remote, a.TOS, a.After, rateText(a.SentRate), rateText(a.ReceivedRate), a.Waiting.Messages, a.Waiting.Bytes)
		if n := note(a.ConnectionDelta); n != "" {
			line += " " + n
		}
		lines = append(lines, line)
	}
	for _, a := range f.Sockets {
		line := fmt.Sprintf("%s socket %s unread %d messages %d bytes of %d", at, a.Bound, a.Unread.Messages, a.Unread.Bytes, a.Limit)
		if a.Congested() {
			line += " congested"
		}
		lines = append(lines, line)
	}
	for _, c := range f.Counters {
		lines = append(lines, fmt.Sprintf("%s counter %s %s/s is %d", at, plain.Text(c.Name), rateText(f.delta.Rate(c)), c.After))
	}
	for _, c := range f.PortCounters {
		lines = append(lines, fmt.Sprintf("%s port %s/%d %s %s/s is %d", at, c.Device, c.Port, c.Name, f.portRate(c), c.Value))
	}
	return lines
}

// Screen returns the lines of a screen of the given size, in characters.
func (f *Frame) Screen(title string, width, height int) []string {
	up := 0
	for _, a := range f.Connections {
		if a.After.Value == rdsinfo.StateUp {
			up++
		}
	}
	lines := []string{
		fmt.Sprintf("%s  %s  %d sockets, %d connections, %d of them up", title, f.Time.Format(time.DateTime), f.Open, len(f.Connections), up),
		"",
	}
	var r row
	add := func() {
		lines = append(lines, strings.TrimRight(string(r.b), " "))
		r.reset()
	}
	addr := addrWidth
	for _, a := range f.Connections {
		addr = max(addr, len(a.Local.String()), len(a.Remote.String()))
	}
	connections := func(cells ...string) {
		for i, width := range []int{addr, addr, 4, 10, 12, 12, 10, 12, 0} {
			r.text(width, cells[i])
		}
		add()
	}
	connections("LocalAddr", "RemoteAddr", "Tos", "State", "Sent/s", "Received/s", "Waiting", "WaitBytes", "Note")
	for _, a := range f.Connections {
		connections(a.Local.String(), a.Remote.String(), a.TOS.String(), a.After.String(), rateText(a.SentRate), rateText(a.ReceivedRate),
			fmt.Sprint(a.Waiting.Messages), fmt.Sprint(a.Waiting.Bytes), note(a.ConnectionDelta))
	}
	if len(f.Sockets) > 0 {
		r.text(0, "")
		add()
		sockets := func(cells ...string) {
			for i, width := range []int{addr + 8, 10, 12, 12, 0} {
				r.text(width, cells[i])
			}
			add()
		}
		sockets("Socket", "Unread", "UnreadBytes", "RcvBuf", "Note")
		for _, a := range f.Sockets {
			note := ""
			if a.Congested() {
				note = "congested"
			}
			sockets(a.Bound.String(), fmt.Sprint(a.Unread.Messages), fmt.Sprint(a.Unread.Bytes), fmt.Sprint(a.Limit), note)
		}
	}
	counters := func(name, rate string, value any) {
		r.text(32, name)
		r.text(14, rate)
		r.text(20, fmt.Sprint(value))
		add()
	}
	if len(f.Counters) > 0 {
		r.text(0, "")
		add()
		counters("Counter", "PerSecond", "Value")
		for _, c := range f.Counters {
			counters(plain.Text(c.Name), rateText(f.delta.Rate(c)), c.After)
		}
	}
	if len(f.PortCounters) > 0 {
		r.text(0, "")
		add()
		counters("PortCounter", "PerSecond", "Value")
		for _, c := range f.PortCounters {
			counters(fmt.Sprintf("%s/%d %s", c.Device, c.Port, c.Name), f.portRate(c), c.Value)
		}
	}
	if len(lines) > height {
		lines = append(lines[:max(height-1, 0)], fmt.Sprintf("... %d more lines", len(lines)-height+1))
	}
	for i, line := range lines {
		if len(line) > width {
			lines[i] = line[:max(width, 0)]
		}
	}
	return lines
}
