package rdsinfo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/abi"
)

// sizes are those that kernels give the records of an option, from the documented
// layouts: of the 4 series, mainline and two of UEK.
var sizes = map[int][]int{
	abi.RDS_INFO_COUNTERS:          {40},
	abi.RDS_INFO_CONNECTIONS:       {41, 42},
	abi.RDS_INFO_SEND_MESSAGES:     {25, 26, 34},
	abi.RDS_INFO_RETRANS_MESSAGES:  {25, 26, 34},
	abi.RDS_INFO_RECV_MESSAGES:     {25, 26, 34},
	abi.RDS_INFO_SOCKETS:           {28, 36, 52},
	abi.RDS_INFO_TCP_SOCKETS:       {40, 41},
	abi.RDS_INFO_IB_CONNECTIONS:    {60, 68, 176},
	abi.RDS6_INFO_CONNECTIONS:      {65, 66},
	abi.RDS6_INFO_SEND_MESSAGES:    {50, 58},
	abi.RDS6_INFO_RETRANS_MESSAGES: {50, 58},
	abi.RDS6_INFO_RECV_MESSAGES:    {50, 58},
	abi.RDS6_INFO_SOCKETS:          {52, 60, 76},
	abi.RDS6_INFO_TCP_SOCKETS:      {64},
	abi.RDS6_INFO_IB_CONNECTIONS:   {92, 200},
	abi.UEK_RDS_INFO_CONN_PATHS:    {50, 50 + 8*37},
	abi.UEK_RDS6_INFO_CONN_PATHS:   {50, 50 + 8*37},
}

// options returns the options of a table.
func options(t Table) []int {
	info := tableInfos[t]
	if info.v6 == 0 {
		return []int{info.v4}
	}
	return []int{info.v4, info.v6}
}

// snapshotOf is a snapshot of one option.
func snapshotOf(option, size int, records []byte, l abi.Layout) *Snapshot {
	return &Snapshot{layout: l, raw: map[int]rawTable{option: {records: records, size: size}}}
}

func TestRecordsOfEverySizeDecodeOrAreRefused(t *testing.T) {
	for table := range tables {
		for _, option := range options(table) {
			longest := slices.Max(sizes[option])
			for size := 1; size <= 2*longest; size++ {
				records := make([]byte, 3*size)
				for i := range records {
					records[i] = byte(i * 7)
				}
				rows, err := tableRows(snapshotOf(option, size, records, amd64), table)
				if size < minimum(option) {
					var te *TableError
					if !errors.As(err, &te) || te.Table != table {
						t.Errorf("%s (%d): records of %d bytes: %v", table, option, size, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s (%d): records of %d bytes: %v", table, option, size, err)
				} else if n := lenOf(rows); n != 3 {
					t.Errorf("%s (%d): records of %d bytes: %d rows, want 3", table, option, size, n)
				}
			}
		}
	}
}

// minimum is the size of the shortest record that some kernel has.
func minimum(option int) int {
	switch option {
	case abi.RDS6_INFO_SEND_MESSAGES, abi.RDS6_INFO_RETRANS_MESSAGES, abi.RDS6_INFO_RECV_MESSAGES:
		return 49
	case abi.RDS6_INFO_IB_CONNECTIONS:
		return 84
	}
	return slices.Min(sizes[option])
}

// Every size that some kernel has tells what it is known to tell.
func TestFieldsAreAbsentWhereTheKernelDoesNotReportThem(t *testing.T) {
	for _, tt := range []struct {
		table  Table
		option int
		size   int
		known  func(*Snapshot) []bool
		want   []bool
	}{
		{Connections, abi.RDS_INFO_CONNECTIONS, 41, connectionKnown, []bool{false}},
		{Connections, abi.RDS_INFO_CONNECTIONS, 42, connectionKnown, []bool{true}},
		{Connections, abi.RDS6_INFO_CONNECTIONS, 65, connectionKnown, []bool{false}},
		{Connections, abi.RDS6_INFO_CONNECTIONS, 66, connectionKnown, []bool{true}},
		{ReceiveQueue, abi.RDS_INFO_RECV_MESSAGES, 25, messageKnown, []bool{false, false}},
		{ReceiveQueue, abi.RDS_INFO_RECV_MESSAGES, 26, messageKnown, []bool{true, false}},
		{ReceiveQueue, abi.RDS_INFO_RECV_MESSAGES, 34, messageKnown, []bool{true, true}},
		{ReceiveQueue, abi.RDS6_INFO_RECV_MESSAGES, 50, messageKnown, []bool{true, false}},
		{ReceiveQueue, abi.RDS6_INFO_RECV_MESSAGES, 58, messageKnown, []bool{true, true}},
		{Sockets, abi.RDS_INFO_SOCKETS, 28, socketKnown, []bool{false, false, false}},
		{Sockets, abi.RDS_INFO_SOCKETS, 36, socketKnown, []bool{true, true, false}},
		{Sockets, abi.RDS_INFO_SOCKETS, 52, socketKnown, []bool{true, true, true}},
		{Sockets, abi.RDS6_INFO_SOCKETS, 52, socketKnown, []bool{false, false, false}},
		{Sockets, abi.RDS6_INFO_SOCKETS, 60, socketKnown, []bool{true, true, false}},
		{Sockets, abi.RDS6_INFO_SOCKETS, 76, socketKnown, []bool{true, true, true}},
		{TCPSockets, abi.RDS_INFO_TCP_SOCKETS, 40, tcpKnown, []bool{false}},
		{TCPSockets, abi.RDS_INFO_TCP_SOCKETS, 41, tcpKnown, []bool{true}},
		{TCPSockets, abi.RDS6_INFO_TCP_SOCKETS, 64, tcpKnown, []bool{false}},
		{IBConnections, abi.RDS_INFO_IB_CONNECTIONS, 60, ibKnown, []bool{false, false, false, false}},
		{IBConnections, abi.RDS_INFO_IB_CONNECTIONS, 68, ibKnown, []bool{true, true, false, false}},
		{IBConnections, abi.RDS_INFO_IB_CONNECTIONS, 176, ibKnown, []bool{true, true, true, true}},
		{IBConnections, abi.RDS6_INFO_IB_CONNECTIONS, 92, ibKnown, []bool{true, true, false, false}},
		{IBConnections, abi.RDS6_INFO_IB_CONNECTIONS, 200, ibKnown, []bool{true, true, true, true}},
	} {
		t.Run(fmt.Sprintf("%s of %d bytes (option %d)", tt.table, tt.size, tt.option), func(t *testing.T) {
			s := snapshotOf(tt.option, tt.size, make([]byte, tt.size), amd64)
			if diff := cmp.Diff(tt.want, tt.known(s)); diff != "" {
				t.Errorf("known fields, -want +got:\n%s", diff)
			}
		})
	}
}

func connectionKnown(s *Snapshot) []bool {
	rows, _ := s.Connections()
	return []bool{rows[0].TOS.Known}
}

func messageKnown(s *Snapshot) []bool {
	rows, _ := s.Queue(ReceiveQueue)
	return []bool{rows[0].TOS.Known, rows[0].Millis.Known}
}

func socketKnown(s *Snapshot) []bool {
	rows, _ := s.Sockets()
	return []bool{rows[0].PID.Known, rows[0].Congestion.Known, rows[0].Command.Known}
}

func tcpKnown(s *Snapshot) []bool {
	rows, _ := s.TCPSockets()
	return []bool{rows[0].TOS.Known}
}

func ibKnown(s *Snapshot) []bool {
	rows, _ := s.IBConnections()
	r := rows[0]
	return []bool{r.TOS.Known, r.CacheAllocs.Known, r.QPNum.Known, r.RecvVector.Known}
}

// The documented layouts, written field by field, read back.
func TestRecordsOfUEKReadBackAsWritten(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		layout := abi.LayoutOf(8, 8, order)
		t.Run(order.String(), func(t *testing.T) {
			t.Run("a socket with process and congestion", func(t *testing.T) {
				b := make([]byte, 52)
				order.PutUint32(b, 1000)
				copy(b[4:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
				binary.BigEndian.PutUint16(b[12:], 4000)
				binary.BigEndian.PutUint16(b[14:], 4001)
				order.PutUint32(b[16:], 2000)
				order.PutUint64(b[20:], 1<<40)
				order.PutUint32(b[28:], 4711)
				order.PutUint32(b[32:], 1<<32-1)
				copy(b[36:], "a name of 16 byt")
				got, err := snapshotOf(abi.RDS_INFO_SOCKETS, len(b), b, layout).Sockets()
				if err != nil {
					t.Fatal(err)
				}
				want := []Socket{{
					Bound:      netip.MustParseAddrPort("10.0.0.1:4000"),
					Connected:  netip.MustParseAddrPort("10.0.0.2:4001"),
					SendBuffer: 1000, ReceiveBuffer: 2000, Inode: 1 << 40,
					PID: known(int32(4711)), Congestion: known(NotCongested), Command: known("a name of 16 byt"),
				}}
				if diff := cmp.Diff(want, got, equateAddrs, equateAddrPorts); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
			t.Run("an InfiniBand connection over IPv6", func(t *testing.T) {
				b := make([]byte, 200)
				b[15], b[31], b[47], b[63] = 1, 2, 3, 4
				for i, offset := range []int{64, 68, 72, 76, 80, 88, 92, 100, 104, 108, 112, 116, 120, 192, 196} {
					order.PutUint32(b[offset:], uint32(100+i))
				}
				b[84], b[85] = 5, 6
				order.PutUint16(b[96:], 7)
				order.PutUint16(b[98:], 8)
				for i := range 8 {
					order.PutUint64(b[128+8*i:], uint64(i)<<40)
				}
				got, err := snapshotOf(abi.RDS6_INFO_IB_CONNECTIONS, len(b), b, layout).IBConnections()
				if err != nil {
					t.Fatal(err)
				}
				want := []IBConnection{{
					Local: netip.MustParseAddr("::1"), Remote: netip.MustParseAddr("::2"),
					LocalGID: netip.MustParseAddr("::3"), RemoteGID: netip.MustParseAddr("::4"),
					MaxSendWR: 100, MaxRecvWR: 101, MaxSendSGE: 102, RDMAMRMax: 103, RDMAMRSize: 104,
					TOS: known(uint8(5)), SL: known(uint8(6)),
					CacheAllocs: known(uint32(105)), Frag: known(uint32(106)),
					PostCredit: known(uint16(7)), SendCredit: known(uint16(8)),
					QPNum: known(int32(107)), RecvAllocs: known(uint32(108)), RecvFrees: known(uint32(109)),
					RemoteQPNum: known(int32(110)), SendAllocs: known(uint32(111)), SendFrees: known(uint32(112)),
					SendBytes: known(uint64(0)), RecvBytes: known(uint64(1 << 40)),
					ReadBytes: known(uint64(2 << 40)), WriteBytes: known(uint64(3 << 40)),
					TXPollMillis: known(uint64(4 << 40)), RXPollMillis: known(uint64(5 << 40)),
					TXPolls: known(uint64(6 << 40)), RXPolls: known(uint64(7 << 40)),
					SendVector: known(int32(113)), RecvVector: known(int32(114)),
				}}
				if diff := cmp.Diff(want, got, equateAddrs, equateAddrPorts); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
			t.Run("a connection with paths, of which one does not fit", func(t *testing.T) {
				b := make([]byte, 50+2*37)
				copy(b[10:], []byte{0xff, 0xff, 10, 0, 0, 1})
				copy(b[26:], []byte{0xff, 0xff, 10, 0, 0, 2})
				copy(b[32:], "tcp")
				b[48], b[49] = 9, 3
				for i := range 2 {
					p := b[50+37*i:]
					order.PutUint64(p, uint64(1000+i))
					order.PutUint64(p[8:], uint64(2000+i))
					order.PutUint32(p[24:], uint32(30+i))
					order.PutUint32(p[28:], uint32(40+i))
					order.PutUint32(p[32:], uint32(i))
					p[36] = 4
				}
				got, err := snapshotOf(abi.UEK_RDS_INFO_CONN_PATHS, len(b), b, layout).ConnectionPaths()
				if err != nil {
					t.Fatal(err)
				}
				want := []PathConnection{{
					Local: netip.MustParseAddr("10.0.0.1"), Remote: netip.MustParseAddr("10.0.0.2"),
					Transport: "tcp", TOS: 9,
					Paths: []Path{
						{0, time.Unix(1000, 0), time.Unix(2000, 0), time.Time{}, 30, 40, Connected},
						{1, time.Unix(1001, 0), time.Unix(2001, 0), time.Time{}, 31, 41, Connected},
					},
				}}
				if diff := cmp.Diff(want, got, equateAddrs, equateAddrPorts); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// On 32-bit x86 the numbers of 64 bits of an InfiniBand record begin 4 bytes earlier.
func TestInfiniBandRecordsFollowTheAlignmentOfTheirArchitecture(t *testing.T) {
	for _, tt := range []struct {
		align, offset int
	}{{8, 104}, {4, 100}} {
		b := make([]byte, 176)
		binary.LittleEndian.PutUint64(b[tt.offset:], 1<<40)
		rows, err := snapshotOf(abi.RDS_INFO_IB_CONNECTIONS, len(b), b, abi.LayoutOf(8, tt.align, binary.LittleEndian)).IBConnections()
		if err != nil {
			t.Fatal(err)
		}
		// Before it are zeros: misread by 4 bytes the value is another.
		if got := rows[0].SendBytes; got != known(uint64(1<<40)) {
			t.Errorf("aligned to %d: sent %v bytes, want %d", tt.align, got, uint64(1<<40))
		}
	}
}
