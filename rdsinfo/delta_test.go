package rdsinfo

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/abi"
)

// A made is a snapshot made up of rows, as a kernel would write them.
type made struct {
	after       time.Duration
	counters    map[string]uint64
	connections []Connection
	send        []Message
	retransmit  []Message
	sockets     []uint64 // inodes
}

// ownInode is that of a socket that is not bound, such as the one that takes the snapshot.
const ownInode = 4

var epoch = time.Unix(1000, 0)

func (m made) snapshot() *Snapshot {
	le := binary.LittleEndian
	s := &Snapshot{Time: epoch.Add(m.after), layout: amd64, raw: make(map[int]rawTable)}
	add := func(option, size int, records []byte) {
		s.raw[option] = rawTable{records: append(s.raw[option].records, records...), size: size}
	}
	for name, value := range m.counters {
		b := make([]byte, 40)
		copy(b, name)
		le.PutUint64(b[32:], value)
		add(abi.RDS_INFO_COUNTERS, len(b), b)
	}
	for _, c := range m.connections {
		if c.Local.Is4() {
			b := make([]byte, 42)
			le.PutUint64(b, c.NextTX)
			le.PutUint64(b[8:], c.NextRX)
			copy(b[16:], c.Local.AsSlice())
			copy(b[20:], c.Remote.AsSlice())
			copy(b[24:], c.Transport)
			b[40], b[41] = byte(c.Flags), c.TOS.Value
			add(abi.RDS_INFO_CONNECTIONS, len(b), b)
		}
		b := make([]byte, 65)
		le.PutUint64(b, c.NextTX)
		le.PutUint64(b[8:], c.NextRX)
		local, remote := c.Local.As16(), c.Remote.As16()
		copy(b[16:], local[:])
		copy(b[32:], remote[:])
		copy(b[48:], c.Transport)
		b[64] = byte(c.Flags)
		add(abi.RDS6_INFO_CONNECTIONS, len(b), b)
	}
	message := func(option int, msg Message) {
		b := make([]byte, 50)
		le.PutUint64(b, msg.Seq)
		le.PutUint32(b[8:], msg.Bytes)
		local, remote := msg.Local.Addr().As16(), msg.Remote.Addr().As16()
		copy(b[12:], local[:])
		copy(b[28:], remote[:])
		binary.BigEndian.PutUint16(b[44:], msg.Local.Port())
		binary.BigEndian.PutUint16(b[46:], msg.Remote.Port())
		b[49] = msg.TOS.Value
		add(option, len(b), b)
	}
	for _, msg := range m.send {
		message(abi.RDS6_INFO_SEND_MESSAGES, msg)
	}
	for _, msg := range m.retransmit {
		message(abi.RDS6_INFO_RETRANS_MESSAGES, msg)
	}
	for _, inode := range m.sockets {
		b := make([]byte, 52)
		binary.BigEndian.PutUint16(b[36:], 5000)
		if inode == ownInode {
			binary.BigEndian.PutUint16(b[36:], 0)
		}
		le.PutUint64(b[44:], inode)
		add(abi.RDS6_INFO_SOCKETS, len(b), b)
	}
	return s
}

var (
	a1, a2 = netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")
	b1, b2 = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
)

func message4(seq uint64, bytes uint32, tos uint8) Message {
	return Message{Local: netip.AddrPortFrom(a1, 5000), Remote: netip.AddrPortFrom(a2, 6000), Seq: seq, Bytes: bytes, TOS: known(tos)}
}

func message6(seq uint64, tos uint8) Message {
	return Message{Local: netip.AddrPortFrom(b1, 5000), Remote: netip.AddrPortFrom(b2, 6000), Seq: seq, Bytes: 1, TOS: known(tos)}
}

func connection4(tos uint8, tx, rx uint64, flags ConnectionFlags) Connection {
	return Connection{Local: a1, Remote: a2, TOS: known(tos), Transport: "tcp", NextTX: tx, NextRX: rx, Flags: flags}
}

func connection6(tx uint64) Connection {
	return Connection{Local: b1, Remote: b2, Transport: "tcp", NextTX: tx, Flags: Connected}
}

func TestConnectionsAreComparedWithThemselves(t *testing.T) {
	up, down := known(StateUp), known(StateDown)
	none := Optional[uint64]{}
	for _, tt := range []struct {
		name           string
		earlier, later made
		want           []ConnectionDelta
	}{
		{
			"what waited was acknowledged",
			made{connections: []Connection{connection4(0, 10, 5, Connected)}, retransmit: []Message{message4(9, 100, 0)}},
			made{connections: []Connection{connection4(0, 12, 8, Connected)}, retransmit: []Message{message4(11, 300, 0)}},
			[]ConnectionDelta{{a1, a2, known(uint8(0)), "tcp", up, up, known(uint64(2)), known(uint64(3)), Waiting{1, 300}, 200, false}},
		},
		{
			"nothing of what waited was acknowledged, although more was sent",
			made{connections: []Connection{connection4(0, 10, 5, Connected)}, retransmit: []Message{message4(9, 100, 0)}},
			made{connections: []Connection{connection4(0, 11, 5, Connected)}, retransmit: []Message{message4(9, 100, 0), message4(10, 1, 0)}},
			[]ConnectionDelta{{a1, a2, known(uint8(0)), "tcp", up, up, known(uint64(1)), known(uint64(0)), Waiting{2, 101}, 1, true}},
		},
		{
			"one of two alike, of different paths, was acknowledged",
			made{connections: []Connection{connection4(0, 10, 5, Connected)}, retransmit: []Message{message4(9, 100, 0), message4(9, 100, 0)}},
			made{connections: []Connection{connection4(0, 10, 5, Connected)}, retransmit: []Message{message4(9, 100, 0)}},
			[]ConnectionDelta{{a1, a2, known(uint8(0)), "tcp", up, up, known(uint64(0)), known(uint64(0)), Waiting{1, 100}, -100, false}},
		},
		{
			"what waits for one TOS does not count for another",
			made{connections: []Connection{connection4(0, 1, 1, Connected), connection4(3, 1, 1, Connected)}, retransmit: []Message{message4(1, 7, 3)}},
			made{connections: []Connection{connection4(3, 1, 1, Connected), connection4(0, 1, 1, Connected)}, retransmit: []Message{message4(1, 7, 3)}},
			[]ConnectionDelta{
				{a1, a2, known(uint8(0)), "tcp", up, up, known(uint64(0)), known(uint64(0)), Waiting{}, 0, false},
				{a1, a2, known(uint8(3)), "tcp", up, up, known(uint64(0)), known(uint64(0)), Waiting{1, 7}, 0, true},
			},
		},
		{
			"IPv6 connections that look the same are two",
			made{connections: []Connection{connection6(1), connection6(10)}, retransmit: []Message{message6(1, 0)}},
			made{connections: []Connection{connection6(2), connection6(20)}, retransmit: []Message{message6(1, 3)}},
			[]ConnectionDelta{
				{b1, b2, Optional[uint8]{}, "tcp", up, up, known(uint64(1)), known(uint64(0)), Waiting{1, 1}, 0, false},
				{b1, b2, Optional[uint8]{}, "tcp", up, up, known(uint64(10)), known(uint64(0)), Waiting{1, 1}, 0, false},
			},
		},
		{
			"one came, and one went down and began anew",
			made{connections: []Connection{connection4(0, 10, 5, Connected)}},
			made{connections: []Connection{connection4(0, 1, 0, 0), connection4(1, 1, 1, Connected)}},
			[]ConnectionDelta{
				{a1, a2, known(uint8(0)), "tcp", up, down, none, none, Waiting{}, 0, false},
				{a1, a2, known(uint8(1)), "tcp", Optional[ConnectionState]{}, up, none, none, Waiting{}, 0, false},
			},
		},
		{
			"one went",
			made{connections: []Connection{connection4(0, 10, 5, Connected)}},
			made{},
			[]ConnectionDelta{{a1, a2, known(uint8(0)), "tcp", up, Optional[ConnectionState]{}, none, none, Waiting{}, 0, false}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.later.after = time.Second
			got := Compare(tt.earlier.snapshot(), tt.later.snapshot()).Connections
			if diff := cmp.Diff(tt.want, got, equateAddrs); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Of eight messages none need ask for an acknowledgement, and over InfiniBand they wait for one until
// the next that does.
func TestOverInfiniBandTheLastMessagesWaitForANextOne(t *testing.T) {
	for _, tt := range []struct {
		name             string
		transport        string
		send, retransmit int
		want             bool
	}{
		{"the last messages over InfiniBand", "infiniband", 0, 8, false},
		{"more than may wait", "infiniband", 0, 9, true},
		{"a message that is not sent", "infiniband", 1, 0, true},
		{"one over TCP", "tcp", 0, 1, true},
		{"nothing", "infiniband", 0, 0, false},
	} {
		m := made{connections: []Connection{{Local: a1, Remote: a2, TOS: known(uint8(0)), Transport: tt.transport, Flags: Connected}}}
		for i := range tt.send {
			m.send = append(m.send, message4(uint64(100+i), 1, 0))
		}
		for i := range tt.retransmit {
			m.retransmit = append(m.retransmit, message4(uint64(i), 1, 0))
		}
		earlier, later := m, m
		later.after = time.Second
		if got := Compare(earlier.snapshot(), later.snapshot()).Connections[0].Stuck; got != tt.want {
			t.Errorf("%s: stuck is %t", tt.name, got)
		}
		if Compare(later.snapshot(), later.snapshot()).Connections[0].Stuck || Compare(later.snapshot(), earlier.snapshot()).Connections[0].Stuck {
			t.Errorf("%s: stuck, though no time passed", tt.name)
		}
	}
}

func TestCountersThatWentBackHaveNoRate(t *testing.T) {
	earlier := made{counters: map[string]uint64{"grew": 10, "went_back": 10, "gone": 1}}
	later := made{after: 4 * time.Second, counters: map[string]uint64{"grew": 30, "went_back": 9, "new": 1}}
	d := Compare(earlier.snapshot(), later.snapshot())
	rates := map[string]Optional[float64]{}
	for _, c := range d.Counters {
		rates[c.Name] = d.Rate(c)
	}
	want := map[string]Optional[float64]{"grew": known(5.0), "went_back": {}}
	if diff := cmp.Diff(want, rates); diff != "" {
		t.Errorf("rates, -want +got:\n%s", diff)
	}
	// The same moment twice, or a clock that went back.
	d = Compare(later.snapshot(), later.snapshot())
	if r := d.Rate(d.Counters[0]); r.Known {
		t.Errorf("a rate of %v over no time", r)
	}
}

func TestSocketsThatCameAndWentAreListed(t *testing.T) {
	d := Compare(made{sockets: []uint64{1, 2}}.snapshot(), made{sockets: []uint64{2, 3, ownInode}}.snapshot())
	if len(d.Opened) != 1 || d.Opened[0].Inode != 3 || len(d.Closed) != 1 || d.Closed[0].Inode != 1 {
		t.Errorf("opened %v, closed %v; want 3 and 1", d.Opened, d.Closed)
	}
}
