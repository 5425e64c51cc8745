package wire

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var addrs = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func host(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 0, n}) }

// The blocks were recorded from C rds-stress.
func TestOptionsOfC(t *testing.T) {
	for _, tt := range []struct {
		name string
		form Form
		hex  string
		want Options
	}{
		{"2.0.7 -s 10.9.0.2 -p 4000 -q 256 -d 2 -t 2 -T 2", Short,
			`00000002 00000100 0000003f 00000000 0a090002 0a090001 0fa0 0002 00000002
			 00 00 00 00 00 00 01 00 00 01 00 00 ff 00 00 00000001 00000000 00000000`,
			Options{Depth: 2, ReqSize: 256, AckSize: 63, SendAddr: host(2), RecvAddr: host(1), Port: 4000, Tasks: 2, Time: 2,
				CongMonitor: true, RDMAUseFence: true, Sender: SenderC, RDMAVector: 1}},
		{"2.0.7 -q 256 -a 100 -d 3 -t 2 -v -z and many more", Short,
			`00000003 00000100 00000064 00000000 0a090002 0a090001 0fa0 0002 00000000
			 01 00 00 01 01 00 00 00 00 01 00 01 ff 00 02 00000004 00000008 00000003`,
			Options{Depth: 3, ReqSize: 256, AckSize: 100, SendAddr: host(2), RecvAddr: host(1), Port: 4000, Tasks: 2,
				SummaryOnly: true, Verify: true, ShowParams: true, RDMAUseFence: true, RDMAKeyOMeter: true,
				Sender: SenderC, RDMAMode: RDMAWriteOnly, RDMAVector: 4, RDMAAlignment: 8, ConnectRetries: 3}},
		{"2.0.7 -Q 3 -v -o -q 256 -p 4100 -T 1", Long,
			`32 2e 30 2e 37 00 ff ff ff ff ff ff ff ff ff ff
			 00000001 00000100 0000003f 00000000 0a090002 0a090001 1004 0001 00000001
			 00 00 00 01 00 00 01 00 00 01 00 00 ff 01 00 00000001 00000000 00000000 03 00`,
			Options{Version: "2.0.7", Depth: 1, ReqSize: 256, AckSize: 63, SendAddr: host(2), RecvAddr: host(1), Port: 4100, Tasks: 1, Time: 1,
				Verify: true, CongMonitor: true, RDMAUseFence: true, Sender: SenderC, Simplex: true, RDMAVector: 1, TOS: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			if len(b) != tt.form.Size() {
				t.Fatalf("%d bytes, the form has %d", len(b), tt.form.Size())
			}
			if forms := Forms(b[:PrefixSize], false); forms[len(forms)-1] != tt.form {
				t.Errorf("recognised as %v", forms)
			}
			var got Options
			if err := got.Decode(b, tt.form); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, addrs); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			if tt.form == Short {
				if diff := cmp.Diff(b, got.Append(nil, tt.form)); diff != "" {
					t.Errorf("encoded (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestTheJSONFlagFollowsTheVersion(t *testing.T) {
	o := Options{Version: "2.3.11", WantsJSON: true, SendAddr: host(2), RecvAddr: host(1)}
	b := o.Append(nil, LongMainline)
	if got, want := hex.EncodeToString(b[:PrefixSize]), "322e332e31310000006a736f6e000000"; got != want {
		t.Errorf("version bytes %s, C sends %s", got, want)
	}
	var got Options
	if err := got.Decode(b, LongMainline); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o, got, addrs); diff != "" {
		t.Error(diff)
	}
}

func TestOptionsSurviveEveryFormThatHasRoomForThem(t *testing.T) {
	six := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	o := Options{
		Depth: 1, ReqSize: 2, AckSize: 3, RDMASize: 4, Port: 5, Tasks: 6, Time: 7,
		SummaryOnly: true, Trace: true, ShowParams: true, CongMonitor: true, RDMAUseGetMR: true, RDMACacheMRs: true,
		RDMAMode: RDMAReadOnly, RDMAVector: 8, RDMAAlignment: 9, ConnectRetries: 10, Sender: SenderRDSKit,
	}
	for _, form := range []Form{Short, Long, LongMainline, IPv6, IPv6Mainline} {
		t.Run(form.String(), func(t *testing.T) {
			want := o
			want.SendAddr, want.RecvAddr = host(2), host(1)
			if form != Short {
				want.Version, want.TOS = "2.3.11", 11
				want.Async = form.hasAsync()
			}
			if form == IPv6 || form == IPv6Mainline {
				want.SendAddr, want.RecvAddr, want.Scope = six("fe80::2"), six("fe80::1"), 12
			}
			b := want.Append(nil, form)
			if len(b) != form.Size() {
				t.Errorf("%d bytes, want %d", len(b), form.Size())
			}
			var got Options
			if err := got.Decode(b, form); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, addrs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for n := range len(b) {
				if err := got.Decode(b[:n], form); !errors.Is(err, ErrShort) {
					t.Fatalf("%d bytes: error %v", n, err)
				}
			}
		})
	}
}

// The messages were recorded from C rds-stress 2.0.7.
func TestHeadersOfC(t *testing.T) {
	ap := func(a string, p uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(a), p) }
	for _, tt := range []struct {
		name string
		hex  string
		want Header
	}{
		{"request", `00000000 0a090001 0a090002 1005 1005 0000 01 00` + strings.Repeat("00", 43),
			Header{From: ap("10.9.0.1", 4101), To: ap("10.9.0.2", 4101), Op: Request}},
		{"ack", `00000000 0a090002 0a090001 1005 1005 0000 02 00` + strings.Repeat("00", 43),
			Header{From: ap("10.9.0.2", 4101), To: ap("10.9.0.1", 4101), Op: Ack}},
		{"request with RDMA", `0000000c 0a080001 0a080002 0fa2 0fa2 0000 01 01 00007f1e5b302000 0000000000000000
			0000000c00000092 0000000000000000 00002000 00000002 000000`,
			Header{Seq: 12, From: ap("10.8.0.1", 4002), To: ap("10.8.0.2", 4002), Op: Request, RDMA: RDMA{Op: RDMARead,
				Addr: 0x7f1e5b302000, Pattern: 12<<32 | 0x92, Size: 8192, Vector: 2}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			got, ok := Async.Parse(b)
			if !ok {
				t.Fatal("refused")
			}
			if diff := cmp.Diff(tt.want, got, addrs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again := make([]byte, Async)
			Async.Put(again, &got)
			if diff := cmp.Diff(b, again); diff != "" {
				t.Errorf("put back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeadersSurviveEveryLayout(t *testing.T) {
	for _, l := range []Layout{Basic, Async, Basic6, Async6} {
		h := Header{Seq: 1, From: netip.MustParseAddrPort("10.0.0.1:2"), To: netip.MustParseAddrPort("10.0.0.3:4"),
			Index: 5, Op: Ack, RDMA: RDMA{Op: RDMAWrite, Addr: 6, Offset: 7, Pattern: 8, Key: 9, Size: 10, Vector: 11}, Retry: l.hasRetry()}
		if l.IPv6() {
			h.From, h.To = netip.MustParseAddrPort("[fd00::1]:2"), netip.MustParseAddrPort("[fd00::3]:4")
		}
		b := make([]byte, l)
		l.Put(b, &h)
		got, ok := l.Parse(b)
		if diff := cmp.Diff(h, got, addrs); diff != "" || !ok {
			t.Errorf("layout %d (-want +got):\n%s", l, diff)
		}
		if _, ok := l.Parse(b[:l-1]); ok {
			t.Errorf("layout %d: a short one passes", l)
		}
		PutMessage(b, 77, 78, Request)
		if seq, index, op := Message(b); seq != 77 || index != 78 || op != Request {
			t.Errorf("layout %d: message %d %d %v", l, seq, index, op)
		}
		other := append([]byte(nil), b...)
		PutMessage(other, 1, 2, Ack)
		if !l.SameFlow(b, other) {
			t.Errorf("layout %d: another message is another flow", l)
		}
		for _, at := range []int{offFrom, offToPort + 1} {
			other := append([]byte(nil), b...)
			other[at] ^= 1
			if l.SameFlow(b, other) {
				t.Errorf("layout %d: another flow by byte %d is the same", l, at)
			}
		}
		other[len(other)-1] ^= 1
		if l.SameFlow(b, other) == l.IPv6() {
			t.Errorf("layout %d: the last byte of the header", l)
		}
	}
}

func TestPatternOfC(t *testing.T) {
	p := AppendPattern(nil, 2048)
	if got, want := hex.EncodeToString(p[:16]), "0b3e694ca73ac508c3b6a1445fb2fd00"; got != want {
		t.Errorf("begins with %s, want %s", got, want)
	}
	if got, want := hex.EncodeToString(p[254:259]), "8d100c6824"; got != want {
		t.Errorf("byte 254 on is %s, want %s", got, want)
	}
}

func TestThePatternShowsAWrongOffset(t *testing.T) {
	const size = 4096
	p := AppendPattern(nil, size+Strides)
	for seq := range uint32(Strides) {
		for other := range uint32(Strides) {
			if a, b := p[Shift(seq):][:64], p[Shift(other):][:64]; seq != other && string(a) == string(b) {
				t.Fatalf("messages %d and %d begin alike", seq, other)
			}
		}
	}
}

func FuzzOptions(f *testing.F) {
	f.Add(make([]byte, MaxSize), true)
	f.Add([]byte("2.3.11\x00\x00\x00json\x00\x00\x00"+strings.Repeat("\x01", 100)), false)
	f.Fuzz(func(t *testing.T, b []byte, ipv6 bool) {
		if len(b) < PrefixSize {
			return
		}
		for _, form := range Forms(b[:PrefixSize], ipv6) {
			var o, again Options
			if err := o.Decode(b, form); err != nil {
				continue
			}
			if err := again.Decode(o.Append(nil, form), form); err != nil {
				t.Fatal(err)
			}
			// What a version has behind a NUL, or beyond its room, is not kept.
			if diff := cmp.Diff(o, again, addrs, cmpopts.IgnoreFields(Options{}, "Version", "WantsJSON")); diff != "" {
				t.Errorf("(-first +again):\n%s", diff)
			}
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add(make([]byte, MaxHeader))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, l := range []Layout{Basic, Async, Basic6, Async6} {
			h, ok := l.Parse(b)
			if ok != (len(b) >= int(l)) {
				t.Fatalf("layout %d of %d bytes: %v", l, len(b), ok)
			}
			if !ok {
				continue
			}
			c := make([]byte, l)
			l.Put(c, &h)
			if again, _ := l.Parse(c); again != h {
				t.Errorf("%+v became %+v", h, again)
			}
		}
	})
}
