package abi

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// architectures names the files of testdata with records, and what they say.
var architectures = []struct {
	name   string
	layout Layout
}{
	{"x86-64", LayoutOf(8, 8, binary.LittleEndian)},
	{"i386", LayoutOf(4, 4, binary.LittleEndian)},
	{"s390x", LayoutOf(8, 8, binary.BigEndian)},
	{"powerpc", LayoutOf(4, 8, binary.BigEndian)},
}

// records reads the golden records of an architecture, by name.
func records(t testing.TB, arch string) map[string][]byte {
	t.Helper()
	f, err := os.Open("testdata/records-" + arch + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := make(map[string][]byte)
	for sc := bufio.NewScanner(f); sc.Scan(); {
		name, digits, _ := strings.Cut(sc.Text(), " ")
		if m[name], err = hex.DecodeString(digits); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return m
}

var (
	in4  = netip.MustParseAddrPort("10.9.0.1:5000")
	in6  = netip.MustParseAddrPort("[fe80::1:2]:5001")
	args = GetMRArgs{
		Vec:        Iovec{Addr: 0x1122334455667788, Bytes: 4096},
		CookieAddr: 0x8877665544332211,
		Flags:      RDS_RDMA_USE_ONCE | RDS_RDMA_INVALIDATE,
	}
)

const scope = 0x01020304

func TestRecordsAreTheBytesOfC(t *testing.T) {
	// What the buffer of an address held before must not shine through.
	used := [SizeofSockaddrIn6]byte(bytes.Repeat([]byte{0xaa}, SizeofSockaddrIn6))
	tests := []struct {
		name   string
		size   int
		append func(b []byte, l Layout) []byte
	}{
		{"sockaddr_in", SizeofSockaddrIn, func(b []byte, l Layout) []byte {
			sa := used
			return append(b, sa[:putSockaddr(&sa, in4, 0, l)]...)
		}},
		{"sockaddr_in6", SizeofSockaddrIn6, func(b []byte, l Layout) []byte {
			sa := used
			return append(b, sa[:putSockaddr(&sa, in6, scope, l)]...)
		}},
		{"rds_rx_trace_so", SizeofRxTraceSo, func(b []byte, _ Layout) []byte {
			return RxTraceSo{Traces: 2, Pos: [3]uint8{RDS_MSG_RX_DGRAM_DELIVERED, RDS_MSG_RX_DGRAM_REASSEMBLE}}.Append(b)
		}},
		{"rds_reset", SizeofReset, func(b []byte, _ Layout) []byte {
			return Reset{TOS: 7, Src: [4]byte{10, 9, 0, 1}, Dst: [4]byte{10, 9, 0, 2}}.Append(b)
		}},
		{"rds6_reset", SizeofReset6, func(b []byte, _ Layout) []byte {
			return Reset6{TOS: 7, Src: netip.MustParseAddr("fd00::1").As16(), Dst: netip.MustParseAddr("fd00::2").As16()}.Append(b)
		}},
		{"rds_get_mr_args", SizeofGetMRArgs, args.Append},
		{"rds_get_mr_for_dest_args.ipv4", SizeofGetMRForDestArgs, GetMRForDestArgs{Dest: in4, GetMRArgs: args}.Append},
		{"rds_get_mr_for_dest_args.ipv6", SizeofGetMRForDestArgs, GetMRForDestArgs{Dest: in6, Scope: scope, GetMRArgs: args}.Append},
		{"rds_free_mr_args", SizeofFreeMRArgs, FreeMRArgs{Cookie: 0x0000010000000203, Flags: RDS_RDMA_INVALIDATE}.Append},
	}
	for _, arch := range architectures {
		golden := records(t, arch.name)
		for _, tt := range tests {
			t.Run(tt.name+" on "+arch.name, func(t *testing.T) {
				want := golden[tt.name]
				if len(want) != tt.size {
					t.Errorf("C has %d bytes, the constant says %d", len(want), tt.size)
				}
				got := tt.append([]byte("before"), arch.layout)
				if diff := cmp.Diff(append([]byte("before"), want...), got); diff != "" {
					t.Errorf("bytes (-C +Go):\n%s", diff)
				}
			})
		}
	}
}

func TestGetMRArgsAreReadBack(t *testing.T) {
	for _, arch := range architectures {
		got := ParseGetMRArgs(records(t, arch.name)["rds_get_mr_args"], arch.layout)
		if diff := cmp.Diff(args, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arch.name, diff)
		}
	}
}

func TestMessageRecordsAreRead(t *testing.T) {
	tests := []struct {
		name          string
		parse         func([]byte, Layout) (MessageInfo, bool)
		size          int
		uekSize       int
		tosAt         int
		local, remote string
	}{
		{"rds_info_message", ParseMessageInfo, SizeofMessageInfo, UEK_SizeofMessageInfo, 25, "10.9.0.1:5000", "10.9.0.2:6000"},
		{"rds6_info_message", ParseMessageInfo6, SizeofMessageInfo6, UEK_SizeofMessageInfo6, 49, "[fd00::1]:5000", "[fd00::2]:6000"},
		{"rds6_info_message.mapped", ParseMessageInfo6, SizeofMessageInfo6, UEK_SizeofMessageInfo6, 49, "10.9.0.1:5000", "10.9.0.2:6000"},
	}
	for _, arch := range architectures {
		golden := records(t, arch.name)
		for _, tt := range tests {
			t.Run(tt.name+" on "+arch.name, func(t *testing.T) {
				b := golden[tt.name]
				if len(b) != tt.size {
					t.Errorf("C has %d bytes, the constant says %d", len(b), tt.size)
				}
				want := MessageInfo{
					Seq:    0x0102030405060708,
					Len:    0x0a0b0c0d,
					Local:  netip.MustParseAddrPort(tt.local),
					Remote: netip.MustParseAddrPort(tt.remote),
					Flags:  RDS_INFO_MESSAGE_FLAG_ACK | RDS_INFO_MESSAGE_FLAG_FAST_ACK,
					TOS:    5,
				}
				check := func(what string, b []byte, want MessageInfo) {
					t.Helper()
					got, ok := tt.parse(b, arch.layout)
					if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" || !ok {
						t.Errorf("%s: ok %t (-want +got):\n%s", what, ok, diff)
					}
				}
				check("as C has it", b, want)

				uek := arch.layout.AppendUint64(b[:len(b):len(b)], 1234567)
				if len(uek) != tt.uekSize {
					t.Errorf("UEK's record has %d bytes, the constant says %d", len(uek), tt.uekSize)
				}
				withTime := want
				withTime.Millis = 1234567
				check("UEK's", uek, withTime)
				check("longer than any known", append(uek, 1, 2, 3), withTime)
				for n := len(b); n < len(uek); n++ {
					check(fmt.Sprintf("with %d bytes of a time", n-len(b)), uek[:n], want)
				}

				old := want
				old.TOS = 0
				check("before the type of service", b[:tt.tosAt], old)
				for n := range tt.tosAt {
					if m, ok := tt.parse(b[:n], arch.layout); ok {
						t.Errorf("%d bytes were taken for %+v", n, m)
					}
				}
			})
		}
	}
}

func FuzzParseMessageInfo(f *testing.F) { fuzzMessageInfo(f, "rds_info_message", ParseMessageInfo) }

func FuzzParseMessageInfo6(f *testing.F) { fuzzMessageInfo(f, "rds6_info_message", ParseMessageInfo6) }

// fuzzMessageInfo holds a parser to what both promise: a record that is long
// enough is read, whatever is in it, and what the kernel adds at the end, or an
// old one leaves out, changes no other field.
func fuzzMessageInfo(f *testing.F, name string, parse func([]byte, Layout) (MessageInfo, bool)) {
	size := len(records(f, "x86-64")[name])
	for i, arch := range architectures {
		b := records(f, arch.name)[name]
		f.Add(uint8(i), b)
		f.Add(uint8(i), b[:size-1])
		f.Add(uint8(i), b[:size-2])
		f.Add(uint8(i), arch.layout.AppendUint64(b, 1234567))
	}
	f.Fuzz(func(t *testing.T, arch uint8, b []byte) {
		l := architectures[arch%4].layout
		got, ok := parse(b, l)
		if ok != (len(b) >= size-1) {
			t.Fatalf("%d bytes: %t", len(b), ok)
		}
		if !ok {
			return
		}
		want, _ := parse(b[:size-1], l)
		if len(b) >= size {
			want.TOS = b[size-1]
		}
		if len(b) >= size+8 {
			want.Millis = l.Uint64(b[size:])
		}
		if got != want || got.Local.Addr().Is4In6() || got.Remote.Addr().Is4In6() {
			t.Errorf("%x:\n%+v, want\n%+v", b, got, want)
		}
	})
}
