package cmsg

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/abi"
)

type architecture struct {
	name   string
	layout abi.Layout
}

// architectures names the files of testdata with messages, and what they say.
var architectures = []architecture{
	{"x86-64", abi.LayoutOf(8, 8, binary.LittleEndian)},
	{"i386", abi.LayoutOf(4, 4, binary.LittleEndian)},
	{"s390x", abi.LayoutOf(8, 8, binary.BigEndian)},
	{"powerpc", abi.LayoutOf(4, 8, binary.BigEndian)},
}

// golden reads the messages of an architecture, by name.
func golden(t testing.TB, arch architecture) map[string][]byte {
	t.Helper()
	f, err := os.Open("testdata/messages-" + arch.name + ".txt")
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
		renumber(arch.layout, m[name])
	}
	return m
}

// renumber changes the level SOL_SOCKET in oob, which was not written on MIPS,
// to the number it has where the test runs.
func renumber(l abi.Layout, oob []byte) {
	it := parse(l, Mainline, oob)
	for it.Next() {
		if m := it.Message(); m.Level == 1 {
			l.PutUint32(oob[m.offset+l.WordSize():], abi.SOL_SOCKET)
		}
	}
}

// parse is Parse for another architecture.
func parse(l abi.Layout, d Dialect, oob []byte) Iterator {
	it := Parse(d, oob)
	it.layout = l
	return it
}

// one returns the only message of oob.
func one(t testing.TB, it Iterator) Message {
	t.Helper()
	if !it.Next() {
		t.Fatalf("no message: %v", it.Err())
	}
	m := it.Message()
	if it.Next() {
		t.Fatalf("another message: %+v", it.Message())
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

// sample is a control message of testdata, its value, and the two methods that
// lead from one to the other.
type sample struct {
	name    string
	dialect Dialect
	kind    Kind
	value   any
	append  func(e Encoder, b []byte) ([]byte, error)
	decode  func(m Message) (any, error)
}

// sampleOf ties the types together.
func sampleOf[T any](name string, d Dialect, k Kind, v T, app func(Encoder, []byte, T) ([]byte, error), dec func(Message) (T, error)) sample {
	return sample{
		name: name, dialect: d, kind: k, value: v,
		append: func(e Encoder, b []byte) ([]byte, error) { return app(e, b, v) },
		decode: func(m Message) (any, error) { return dec(m) },
	}
}

// sure gives an appending method that cannot fail the shape of those that can.
func sure[T any](app func(Encoder, []byte, T) []byte) func(Encoder, []byte, T) ([]byte, error) {
	return func(e Encoder, b []byte, v T) ([]byte, error) { return app(e, b, v), nil }
}

const key Key = 0x0000010000000203

func atomicOf(op AtomicOp) Atomic {
	return Atomic{
		Op: op, Key: key, LocalAddr: 0x7f0000002000, RemoteAddr: 64,
		Flags: FlagNotifyMe | FlagSilent, Token: 0xb1b2b3b4b5b6b7b8,
	}
}

// samples returns the messages of testdata. timestamp_old is not among them:
// no method writes it.
func samples() []sample {
	fadd, cswp := atomicOf(AtomicFetchAdd), atomicOf(AtomicCompareSwap)
	fadd.Add = 0x0102030405060708
	cswp.Compare, cswp.Swap = 0x1112131415161718, 0x2122232425262728
	mfadd, mcswp := fadd, cswp
	mfadd.Op, mfadd.NoCarryMask = AtomicMaskedFetchAdd, 0x3132333435363738
	mcswp.Op, mcswp.CompareMask, mcswp.SwapMask = AtomicMaskedCompareSwap, 0x4142434445464748, 0x5152535455565758

	return []sample{
		sampleOf("rdma_args", Mainline, KindRDMAArgs, RDMAArgs{
			Key:        key,
			Remote:     Iovec{Addr: 0x2000, Len: 65536},
			LocalAddr:  0x1122334455667788,
			LocalCount: 3,
			Flags:      FlagReadWrite | FlagNotifyMe,
			Token:      0xa1a2a3a4a5a6a7a8,
		}, sure(Encoder.AppendRDMAArgs), Message.RDMAArgs),
		sampleOf("rdma_dest", Mainline, KindRDMADest, key, sure(Encoder.AppendRDMADest), Message.RDMADest),
		sampleOf("rdma_map", Mainline, KindRDMAMap, RDMAMap{
			Vec:     Iovec{Addr: 0x7f0000001000, Len: 8192},
			KeyAddr: 0x8877665544332211,
			Flags:   FlagUseOnce | FlagInvalidate,
		}, sure(Encoder.AppendRDMAMap), Message.RDMAMap),
		sampleOf("atomic_fadd", Mainline, KindAtomic, fadd, Encoder.AppendAtomic, Message.Atomic),
		sampleOf("atomic_cswp", Mainline, KindAtomic, cswp, Encoder.AppendAtomic, Message.Atomic),
		sampleOf("masked_atomic_fadd", Mainline, KindAtomic, mfadd, Encoder.AppendAtomic, Message.Atomic),
		sampleOf("masked_atomic_cswp", Mainline, KindAtomic, mcswp, Encoder.AppendAtomic, Message.Atomic),
		sampleOf("uek.atomic_fadd", UEK, KindAtomic, fadd, Encoder.AppendAtomic, Message.Atomic),
		sampleOf("uek.atomic_cswp", UEK, KindAtomic, cswp, Encoder.AppendAtomic, Message.Atomic),
		sampleOf("uek.async_send", UEK, KindAsyncSend, AsyncSend{Token: 0xc1c2c3c4c5c6c7c8, Flags: FlagSendNotifyMe},
			Encoder.AppendAsyncSend, Message.AsyncSend),
		sampleOf("zcopy_cookie", Mainline, KindZerocopyCookie, uint32(0xd1d2d3d4), Encoder.AppendZerocopyCookie, Message.ZerocopyCookie),

		sampleOf("rdma_status", Mainline, KindRDMAStatus, RDMAStatus{Token: 0xa1a2a3a4a5a6a7a8, Status: StatusDropped},
			sure(Encoder.AppendRDMAStatus), Message.RDMAStatus),
		sampleOf("cong_update", Mainline, KindCongestionUpdate, CongestionMask(1<<47|1<<16|1),
			sure(Encoder.AppendCongestionUpdate), Message.CongestionUpdate),
		sampleOf("rxpath_latency", Mainline, KindRXPathLatency, RXPathLatency{N: 2, Traces: [3]RXTrace{
			{RXDelivery, 1234567}, {RXReassembly, 89},
		}}, Encoder.AppendRXPathLatency, Message.RXPathLatency),
		sampleOf("zcopy_completion", Mainline, KindZerocopyCompletion,
			ZerocopyCompletion{N: 3, Cookies: [8]uint32{0xd1d2d3d4, 7, 0xffffffff}},
			Encoder.AppendZerocopyCompletion, Message.ZerocopyCompletion),
		sampleOf("uek.inq", UEK, KindINQ, 123456, Encoder.AppendINQ, Message.INQ),
		sampleOf("timestamp_new", Mainline, KindTimestamp, time.Unix(1700000000, 987654000), sure(Encoder.AppendTimestamp), Message.Timestamp),
	}
}

func TestMessagesAreTheBytesOfC(t *testing.T) {
	for _, arch := range architectures {
		bytes := golden(t, arch)
		for _, s := range samples() {
			t.Run(s.name+" on "+arch.name, func(t *testing.T) {
				want, ok := bytes[s.name]
				if !ok {
					t.Fatal("not in testdata")
				}
				got, err := s.append(Encoder{Dialect: s.dialect, layout: arch.layout}, []byte("before"))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(append([]byte("before"), want...), got); diff != "" {
					t.Errorf("bytes (-C +Go):\n%s", diff)
				}
			})
		}
	}
}

func TestBytesOfCAreDecoded(t *testing.T) {
	all := append(samples(), sampleOf("timestamp_old", Mainline, KindTimestamp,
		time.Unix(1700000000, 987654000), nil, Message.Timestamp))
	for _, arch := range architectures {
		bytes := golden(t, arch)
		for _, s := range all {
			t.Run(s.name+" on "+arch.name, func(t *testing.T) {
				m := one(t, parse(arch.layout, s.dialect, bytes[s.name]))
				if m.Kind() != s.kind {
					t.Errorf("kind %v, want %v", m.Kind(), s.kind)
				}
				got, err := s.decode(m)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(s.value, got); diff != "" {
					t.Errorf("value (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// The messages that both dialects have must not depend on which one is told.
func TestDialectsShareWhatIsNotTheirOwn(t *testing.T) {
	shared := map[Kind]bool{
		KindRDMAArgs: true, KindRDMADest: true, KindRDMAMap: true, KindRDMAStatus: true,
		KindCongestionUpdate: true, KindRXPathLatency: true, KindTimestamp: true,
	}
	seen := 0
	for _, s := range samples() {
		if !shared[s.kind] {
			continue
		}
		seen++
		mainline, err := s.append(Encoder{Dialect: Mainline}, nil)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		uek, err := s.append(Encoder{Dialect: UEK}, nil)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if diff := cmp.Diff(mainline, uek); diff != "" {
			t.Errorf("%s (-mainline +UEK):\n%s", s.name, diff)
		}
		if got, err := s.decode(one(t, Parse(UEK, uek))); err != nil || !cmp.Equal(got, s.value) {
			t.Errorf("%s read as UEK: %v, %v", s.name, got, err)
		}
	}
	if seen != len(shared) {
		t.Errorf("%d samples of %d kinds", seen, len(shared))
	}
}

func TestIovecIsTheBytesOfC(t *testing.T) {
	for _, arch := range architectures {
		got := Encoder{layout: arch.layout}.AppendIovec(nil, Iovec{Addr: 0x7f0000001000, Len: 8192})
		if diff := cmp.Diff(golden(t, arch)["iovec"], got); diff != "" || len(got) != SizeofIovec {
			t.Errorf("%s (-C +Go):\n%s", arch.name, diff)
		}
	}
}

// Space is for the architecture that the tests run on; the golden file of the
// matching one says how much C takes.
func TestSpaceIsWhatCTakes(t *testing.T) {
	arch := architectures[0]
	if bits.UintSize == 32 {
		arch = architectures[3] // i386 has a shorter RDMA status
	}
	bytes := golden(t, arch)
	for _, s := range samples() {
		if got, want := s.kind.Space(s.dialect), len(bytes[s.name]); got != want {
			t.Errorf("%s: %d bytes, C takes %d (GOARCH %s)", s.name, got, want, runtime.GOARCH)
		}
	}
	for _, k := range []Kind{KindZerocopyCookie, KindZerocopyCompletion, KindUnknown, Kind(99)} {
		if n := k.Space(UEK); n != 0 {
			t.Errorf("UEK has no %v, but space %d", k, n)
		}
	}
	for _, k := range []Kind{KindAsyncSend, KindINQ, KindUnknown} {
		if n := k.Space(Mainline); n != 0 {
			t.Errorf("mainline has no %v, but space %d", k, n)
		}
	}
}
