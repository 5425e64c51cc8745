package doctor

import (
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/rdsinfo"
)

// made is a snapshot made up of rows, as a little-endian kernel would write them.
type made struct {
	after       time.Duration
	uek         bool
	counters    map[string]uint64
	connections []rdsinfo.Connection
	sockets     []rdsinfo.Socket
	retransmit  []rdsinfo.Message
	receive     []rdsinfo.Message
	tcp         [][2]string
}

func (m made) snapshot(t *testing.T) *rdsinfo.Snapshot {
	t.Helper()
	type table struct {
		Option     int    `json:"option"`
		RecordSize int    `json:"record_size"`
		Records    []byte `json:"records"`
	}
	var tables []table
	add := func(option, size int, rows ...[]byte) {
		tb := table{Option: option, RecordSize: size}
		for _, r := range rows {
			tb.Records = append(tb.Records, r...)
		}
		tables = append(tables, tb)
	}
	var rows [][]byte
	for name, value := range m.counters {
		b := make([]byte, 40)
		copy(b, name)
		binary.LittleEndian.PutUint64(b[32:], value)
		rows = append(rows, b)
	}
	add(abi.RDS_INFO_COUNTERS, 40, rows...)
	rows = nil
	for _, c := range m.connections {
		b := make([]byte, 42)
		binary.LittleEndian.PutUint64(b, c.NextTX)
		copy(b[16:], c.Local.AsSlice())
		copy(b[20:], c.Remote.AsSlice())
		copy(b[24:], c.Transport)
		b[40], b[41] = byte(c.Flags), c.TOS.Value
		rows = append(rows, b)
	}
	add(abi.RDS_INFO_CONNECTIONS, 42, rows...)
	rows = nil
	for _, s := range m.sockets {
		b := make([]byte, 28)
		copy(b[4:], s.Bound.Addr().AsSlice())
		binary.BigEndian.PutUint16(b[12:], s.Bound.Port())
		binary.LittleEndian.PutUint32(b[16:], s.ReceiveBuffer)
		binary.LittleEndian.PutUint64(b[20:], s.Inode)
		rows = append(rows, b)
	}
	add(abi.RDS_INFO_SOCKETS, 28, rows...)
	add(abi.RDS_INFO_RETRANS_MESSAGES, 26, messageRows(m.retransmit)...)
	add(abi.RDS_INFO_SEND_MESSAGES, 26)
	add(abi.RDS_INFO_RECV_MESSAGES, 26, messageRows(m.receive)...)
	rows = nil
	for _, pair := range m.tcp {
		b := make([]byte, 41)
		for i, text := range pair {
			ap := netip.MustParseAddrPort(text)
			copy(b[6*i:], ap.Addr().AsSlice())
			binary.BigEndian.PutUint16(b[6*i+4:], ap.Port())
		}
		rows = append(rows, b)
	}
	add(abi.RDS_INFO_TCP_SOCKETS, 41, rows...)
	stored := map[string]any{
		"time": time.Unix(1000, 0).Add(m.after), "byte_order": "little", "word_size": 8, "uint64_align": 8, "tables": tables,
	}
	if m.uek {
		stored["dialect"] = "uek"
	}
	text, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	s := new(rdsinfo.Snapshot)
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func messageRows(messages []rdsinfo.Message) [][]byte {
	var rows [][]byte
	for _, m := range messages {
		b := make([]byte, 26)
		binary.LittleEndian.PutUint64(b, m.Seq)
		binary.LittleEndian.PutUint32(b[8:], m.Bytes)
		// In the receive queue, too, the first address is the local one.
		copy(b[12:], m.Local.Addr().AsSlice())
		copy(b[16:], m.Remote.Addr().AsSlice())
		binary.BigEndian.PutUint16(b[20:], m.Local.Port())
		binary.BigEndian.PutUint16(b[22:], m.Remote.Port())
		rows = append(rows, b)
	}
	return rows
}

func addr(text string) netip.Addr         { return netip.MustParseAddr(text) }
func addrPort(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

// bundle is that of a host 10.9.0.1 where all is well, with tables as made.
func bundle(t *testing.T, m made) *rdsinfo.Bundle {
	return &rdsinfo.Bundle{
		Host: "h1", Release: "6.1.0", Snapshot: m.snapshot(t),
		Sysctls: map[string]string{
			"net.rds.reconnect_min_delay_ms": "1", "net.rds.reconnect_max_delay_ms": "1000", "net.rds.ping_enable": "1",
			"net.rds.tcp.rds_tcp_sndbuf": "0", "net.core.wmem_max": "4194304", "net.core.rmem_max": "4194304",
		},
		Modules:   []rdsinfo.Module{{Name: "rds", Version: "4.0", Parameters: map[string]string{"send_batch_count": "1024"}}, {Name: "rds_tcp"}},
		Namespace: rdsinfo.Namespace{Inode: 1, Initial: true, Addresses: []rdsinfo.Address{{Addr: addr("127.0.0.1"), Bits: 8, Device: "lo", Usable: true, Transport: "loopback"}, {Addr: addr("10.9.0.1"), Bits: 24, Device: "eth0", Usable: true, Transport: "tcp"}}},
		Links:     []rdsinfo.Link{{Name: "lo", MTU: 65536, Up: true, Running: true, Loopback: true}, {Name: "eth0", MTU: 1500, Up: true, Running: true}},
		TCP:       rdsinfo.TCP{Endpoints: []rdsinfo.TCPEndpoint{{Local: addrPort("[::]:16385"), Remote: addrPort("[::]:0"), State: "LISTEN"}}},
	}
}

// facts are those of two looks, one second apart, at a host where all is well.
func facts(t *testing.T, first, last made) *Facts {
	last.after = time.Second
	f := &Facts{First: bundle(t, first), Last: bundle(t, last)}
	for _, b := range []*rdsinfo.Bundle{f.First, f.Last} {
		connections, err := b.Snapshot.Connections()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range connections {
			b.Peers = append(b.Peers, rdsinfo.Peer{Local: c.Local, Remote: c.Remote, Device: "eth0", MTU: 1500, Neighbor: "reachable"})
		}
	}
	return f
}
