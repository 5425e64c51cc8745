//go:build 386 || amd64 || arm64

// Netlink is in the order of the machine: what was recorded on one is of no use on another.

package tcpdiag

import (
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded is the answer of Linux 6.1.192 about a socket whose peer has lost every packet
// of late.
func recorded(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/lossy.hex")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func equateAddrPorts(a, b netip.AddrPort) bool { return a == b }

func TestAMessageOfTheKernelIsDecoded(t *testing.T) {
	got, err := decode(recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	known := func(v uint64) Optional { return Optional{v, true} }
	want := Socket{
		Local: netip.MustParseAddrPort("10.9.0.1:34697"), Remote: netip.MustParseAddrPort("10.9.0.2:16385"),
		State: 1, Retransmits: 1, SendQueue: 48, Congestion: "cubic",
		Info: &Info{
			RTO: 408 * time.Millisecond, RTT: 442 * time.Microsecond, RTTVar: 221 * time.Microsecond,
			SendMSS: 1448, PathMTU: 1500, Unacked: 1, Lost: 1, Retransmitted: 1, TotalRetrans: 2, Cwnd: 1, Ssthresh: 7,
			LastDataSent: 248 * time.Millisecond, LastDataRecv: 1232 * time.Millisecond, LastAckRecv: 1232 * time.Millisecond,
			BytesAcked: known(1), BytesReceived: known(8240), NotSent: known(0), MinRTT: known(442), DeliveryRate: known(0), BytesRetransmit: known(96),
		},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(equateAddrPorts)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnOlderKernelTellsLess(t *testing.T) {
	b := recorded(t)
	info := make([]byte, 232)
	copy(info, b[sizeofMessage+40:])
	for _, tt := range []struct {
		size                        int
		info, acked, minRTT, resent bool
	}{
		{103, false, false, false, false},
		{104, true, false, false, false},
		{136, true, true, false, false},
		{152, true, true, true, false},
		{216, true, true, true, true},
		{232, true, true, true, true},
	} {
		got := decodeInfo(info[:tt.size])
		if (got != nil) != tt.info {
			t.Errorf("%d bytes: %+v", tt.size, got)
		}
		if got != nil && (got.BytesAcked.Known != tt.acked || got.MinRTT.Known != tt.minRTT || got.BytesRetransmit.Known != tt.resent) {
			t.Errorf("%d bytes: %+v", tt.size, got)
		}
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	b := recorded(t)
	unix := append([]byte{1}, b[1:]...)
	overrun := append([]byte{}, b[:sizeofMessage+4]...)
	overrun[sizeofMessage] = 200
	for name, b := range map[string][]byte{"empty": nil, "cut": b[:sizeofMessage-1], "of another family": unix, "with an attribute beyond its end": overrun} {
		if s, err := decode(b); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b := recorded(f)
	f.Add(b)
	f.Add(b[:sizeofMessage])
	v6 := append([]byte{familyIPv6}, b[1:]...)
	f.Add(v6)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decode(b)
		if err == nil && (!s.Local.IsValid() || !s.Remote.IsValid()) {
			t.Errorf("%x gives %+v", b, s)
		}
	})
}
