package cmsg

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/abi"
)

func TestSeveralMessagesAreWalked(t *testing.T) {
	type entry struct {
		Kind        Kind
		Level, Type int
		Data        int
	}
	want := []entry{
		{KindRDMADest, 276, 2, 8},
		{KindZerocopyCookie, 276, 12, 4},
		{KindUnknown, 99, 77, 5},
		{KindCongestionUpdate, 276, 5, 8},
	}
	for _, arch := range architectures {
		oob := golden(t, arch)["several"]
		var got []entry
		it := parse(arch.layout, Mainline, oob)
		for it.Next() {
			m := it.Message()
			got = append(got, entry{m.Kind(), m.Level, m.Type, len(m.Data)})
			if m.Kind() == KindUnknown && string(m.Data) != "hello" {
				t.Errorf("%s: data of the unknown message %q", arch.name, m.Data)
			}
			if len(m.Data) != cap(m.Data) {
				t.Errorf("%s: an append to the data of %v would write into the buffer", arch.name, m.Kind())
			}
		}
		if err := it.Err(); err != nil {
			t.Errorf("%s: %v", arch.name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arch.name, diff)
		}
	}
}

func TestDataIsPartOfTheBuffer(t *testing.T) {
	oob := Encoder{}.AppendRDMADest(nil, 1)
	m := one(t, Parse(Mainline, oob))
	m.Data[0] ^= 0xff
	if again := one(t, Parse(Mainline, oob)); again.Data[0] != m.Data[0] {
		t.Error("the data is a copy")
	}
}

func TestKindDependsOnTheDialect(t *testing.T) {
	tests := []struct {
		level, typ    int
		mainline, uek Kind
	}{
		{276, 0, KindUnknown, KindUnknown},
		{276, 1, KindRDMAArgs, KindRDMAArgs},
		{276, 2, KindRDMADest, KindRDMADest},
		{276, 3, KindRDMAMap, KindRDMAMap},
		{276, 4, KindRDMAStatus, KindRDMAStatus},
		{276, 5, KindCongestionUpdate, KindCongestionUpdate},
		{276, 6, KindAtomic, KindAtomic},
		{276, 7, KindAtomic, KindAtomic},
		{276, 8, KindAtomic, KindUnknown},
		{276, 9, KindAtomic, KindUnknown},
		{276, 10, KindUnknown, KindAsyncSend},
		{276, 11, KindRXPathLatency, KindRXPathLatency},
		{276, 12, KindZerocopyCookie, KindINQ},
		{276, 13, KindZerocopyCompletion, KindUnknown},
		{276, 14, KindUnknown, KindUnknown},
		{276, 29, KindUnknown, KindUnknown}, // a timestamp is at level SOL_SOCKET
		{abi.SOL_SOCKET, 29, KindTimestamp, KindTimestamp},
		{abi.SOL_SOCKET, 63, KindTimestamp, KindTimestamp},
		{abi.SOL_SOCKET, 4, KindUnknown, KindUnknown},
		{0, 4, KindUnknown, KindUnknown},
		{-1, -1, KindUnknown, KindUnknown},
	}
	for _, tt := range tests {
		oob := appendHeader(nil, abi.Layout{}, tt.level, tt.typ, 0)
		for d, want := range map[Dialect]Kind{Mainline: tt.mainline, UEK: tt.uek} {
			if m := one(t, Parse(d, oob)); m.Kind() != want || m.Level != tt.level || m.Type != tt.typ {
				t.Errorf("%v: level %d, type %d is %v (%d, %d), want %v", d, tt.level, tt.typ, m.Kind(), m.Level, m.Type, want)
			}
		}
	}
}

func TestBufferThatCannotBeFollowed(t *testing.T) {
	first := Encoder{layout: architectures[0].layout}.AppendRDMADest(nil, key) // 24 bytes
	tests := []struct {
		name string
		tail []byte // after the first message
		err  error
		text string
	}{
		{"a few bytes", make([]byte, 15), ErrTruncated, "cmsg: offset 24: truncated: 15 bytes left, a header has 16"},
		{"a header of zeros", make([]byte, 16), ErrMalformed, "cmsg: offset 24: malformed: length 0, the header alone has 16"},
		{
			"a length inside the header",
			[]byte{15, 0, 0, 0, 0, 0, 0, 0, 0x14, 1, 0, 0, 4, 0, 0, 0},
			ErrMalformed, "cmsg: offset 24, level 276, type 4 (RDMA status): malformed: length 15, the header alone has 16",
		},
		{
			"a length beyond the end",
			[]byte{25, 0, 0, 0, 0, 0, 0, 0, 0x14, 1, 0, 0, 2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8},
			ErrTruncated, "cmsg: offset 24, level 276, type 2 (RDMA dest): truncated: length 25, 24 bytes left",
		},
		{
			"the greatest length",
			slices.Concat(slices.Repeat([]byte{0xff}, 16), first),
			ErrTruncated, "cmsg: offset 24, level -1, type -1 (unknown): truncated: length 18446744073709551615, 40 bytes left",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			it := parse(architectures[0].layout, Mainline, slices.Concat(first, tt.tail))
			if !it.Next() {
				t.Fatalf("the sound message before it is missing: %v", it.Err())
			}
			if k, err := it.Message().RDMADest(); k != key || err != nil {
				t.Errorf("the message before it is %v, %v", k, err)
			}
			for range 2 {
				if it.Next() {
					t.Fatalf("went on to %+v", it.Message())
				}
			}
			err := it.Err()
			if !errors.Is(err, tt.err) || err.Error() != tt.text {
				t.Errorf("error %q, want %q", err, tt.text)
			}
			var pe *ParseError
			if !errors.As(err, &pe) || pe.Offset != 24 {
				t.Errorf("error %#v, want a ParseError at 24", err)
			}
		})
	}
}

func TestEmptyBufferHasNoMessage(t *testing.T) {
	for _, oob := range [][]byte{nil, {}} {
		if it := Parse(Mainline, oob); it.Next() || it.Err() != nil {
			t.Errorf("%v, %v", it.Message(), it.Err())
		}
	}
	var it Iterator
	if it.Next() || it.Err() != nil {
		t.Errorf("zero Iterator: %v, %v", it.Message(), it.Err())
	}
}

func TestPaddingAfterTheLastMessageMayBeMissing(t *testing.T) {
	for _, arch := range architectures {
		e := Encoder{layout: arch.layout}
		oob, err := e.AppendZerocopyCookie(nil, 7)
		if err != nil {
			t.Fatal(err)
		}
		oob = oob[:headerSize(arch.layout)+4]
		if cookie, err := one(t, parse(arch.layout, Mainline, oob)).ZerocopyCookie(); cookie != 7 || err != nil {
			t.Errorf("%s: %d, %v", arch.name, cookie, err)
		}
	}
}

// resize returns the only message of oob with another number of bytes of data,
// and if it is not to be the last one, with a message after it.
func resize(oob []byte, l abi.Layout, level, typ, size int, last bool) []byte {
	data := append(oob[headerSize(l):len(oob):len(oob)], slices.Repeat([]byte{0xee}, 64)...)
	b := appendHeader(nil, l, level, typ, size)
	b = append(b, data[:size]...)
	if last {
		return b
	}
	b = appendPadding(b, l, size)
	return Encoder{layout: l}.AppendRDMADest(b, key)
}

func TestLongerDataIsToleratedAndShorterRefused(t *testing.T) {
	for _, arch := range architectures {
		for _, s := range samples() {
			t.Run(s.name+" on "+arch.name, func(t *testing.T) {
				oob := golden(t, arch)[s.name]
				m := one(t, parse(arch.layout, s.dialect, oob))
				need := len(m.Data)
				if s.kind == KindRDMAStatus {
					need = 12 // i386 has no padding
				}
				if s.kind == KindTimestamp {
					need = 16
				}
				for size := range need + 40 {
					for _, last := range []bool{true, false} {
						it := parse(arch.layout, s.dialect, resize(oob, arch.layout, m.Level, m.Type, size, last))
						if !it.Next() {
							t.Fatal(it.Err())
						}
						got, err := s.decode(it.Message())
						if size >= need {
							// From 32 bytes on a trace is one of 64-bit alignment.
							if s.kind == KindRXPathLatency && size >= 32 && need < 32 {
								continue
							}
							if err != nil || !cmp.Equal(got, s.value) {
								t.Errorf("%d bytes: %v, %v", size, got, err)
							}
							continue
						}
						want := ErrMalformed
						if last {
							want = ErrTruncated
						}
						var pe *ParseError
						if !errors.Is(err, want) || !errors.As(err, &pe) || pe.Offset != 0 || pe.Level != m.Level || pe.Type != m.Type || pe.Kind != s.kind {
							t.Errorf("%d bytes, last %t: error %v, want one that is %v", size, last, err, want)
						}
					}
				}
			})
		}
	}
}

func TestErrorsSayWhatWhereAndWhy(t *testing.T) {
	l := architectures[0].layout
	oob := Encoder{layout: l}.AppendRDMADest(nil, key)
	oob = appendHeader(oob, l, abi.SOL_RDS, abi.RDS_CMSG_RDMA_STATUS, 8)
	oob = append(oob, make([]byte, 8)...)
	it := parse(l, Mainline, oob)
	it.Next()
	it.Next()
	_, err := it.Message().RDMAStatus()
	if want := "cmsg: offset 24, level 276, type 4 (RDMA status): truncated: 8 bytes of data, 12 are needed"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = it.Message().CongestionUpdate()
	if want := "cmsg: offset 24, level 276, type 4 (RDMA status): wrong kind: decoded as congestion update"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !errors.Is(err, ErrWrongKind) {
		t.Errorf("%v is not ErrWrongKind", err)
	}
}

func TestEveryMethodRefusesOtherKinds(t *testing.T) {
	all := samples()
	for _, s := range all {
		oob, err := s.append(Encoder{Dialect: s.dialect}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := one(t, Parse(s.dialect, oob))
		for _, other := range all {
			if other.kind == s.kind {
				continue
			}
			if v, err := other.decode(m); !errors.Is(err, ErrWrongKind) {
				t.Errorf("%s was decoded as %v: %v, %v", s.name, other.kind, v, err)
			}
		}
	}
}

func TestValuesThatCannotBeAreRefused(t *testing.T) {
	l := architectures[0].layout
	message := func(d Dialect, level, typ int, data []byte) Message {
		return one(t, parse(l, d, append(appendHeader(nil, l, level, typ, len(data)), data...)))
	}
	nine := make([]byte, 36)
	nine[0] = 9
	four := make([]byte, 32)
	four[0] = 4
	million := l.AppendUint64(make([]byte, 8), 1000000)
	before := l.AppendUint64(make([]byte, 8), 1<<64-1)
	tests := []struct {
		name string
		err  func() error
	}{
		{"nine zerocopy cookies", func() error {
			_, err := message(Mainline, 276, 13, nine).ZerocopyCompletion()
			return err
		}},
		{"four latencies", func() error {
			_, err := message(Mainline, 276, 11, four).RXPathLatency()
			return err
		}},
		{"a negative queue length", func() error {
			_, err := message(UEK, 276, 12, []byte{0xff, 0xff, 0xff, 0xff}).INQ()
			return err
		}},
		{"a million microseconds", func() error {
			_, err := message(Mainline, abi.SOL_SOCKET, 63, million).Timestamp()
			return err
		}},
		{"negative microseconds", func() error {
			_, err := message(Mainline, abi.SOL_SOCKET, 29, before).Timestamp()
			return err
		}},
	}
	for _, tt := range tests {
		if err := tt.err(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A 32-bit x86 program on a 64-bit kernel gets the record of the latter.
func TestLatencyOf64BitKernelFor32BitProgram(t *testing.T) {
	x86, i386 := architectures[0].layout, architectures[1].layout
	want := RXPathLatency{N: 2, Traces: [3]RXTrace{{RXDelivery, 1234567}, {RXReassembly, 89}}}
	data := one(t, parse(x86, Mainline, golden(t, architectures[0])["rxpath_latency"])).Data
	oob := append(appendHeader(nil, i386, abi.SOL_RDS, abi.RDS_CMSG_RXPATH_LATENCY, len(data)), data...)
	got, err := one(t, parse(i386, Mainline, oob)).RXPathLatency()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTimestampsOfAnyTime(t *testing.T) {
	for _, want := range []time.Time{
		time.Unix(0, 0), time.Unix(-1, 999999000), time.Unix(1<<33, 1000), time.Unix(-1<<40, 0),
	} {
		for _, arch := range architectures {
			oob := Encoder{layout: arch.layout}.AppendTimestamp(nil, want)
			if got, err := one(t, parse(arch.layout, Mainline, oob)).Timestamp(); err != nil || !got.Equal(want) {
				t.Errorf("%s: %v became %v, %v", arch.name, want, got, err)
			}
		}
	}
	// The old form of 32-bit programs ends in 2038 and knows times before 1970.
	l := architectures[1].layout
	oob := appendHeader(nil, l, abi.SOL_SOCKET, abi.SO_TIMESTAMP_OLD, 8)
	oob = l.AppendUint32(l.AppendUint32(oob, 0xffffffff), 5)
	if got, err := one(t, parse(l, Mainline, oob)).Timestamp(); err != nil || !got.Equal(time.Unix(-1, 5000)) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	var oob []byte
	for _, s := range samples() {
		if s.dialect == Mainline {
			var err error
			if oob, err = s.append(Encoder{}, oob); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := 0
	if n := testing.AllocsPerRun(100, func() {
		seen = 0
		it := Parse(Mainline, oob)
		for it.Next() {
			m := it.Message()
			var err error
			switch m.Kind() {
			case KindRDMAArgs:
				_, err = m.RDMAArgs()
			case KindRDMADest:
				_, err = m.RDMADest()
			case KindRDMAMap:
				_, err = m.RDMAMap()
			case KindAtomic:
				_, err = m.Atomic()
			case KindZerocopyCookie:
				_, err = m.ZerocopyCookie()
			case KindRDMAStatus:
				_, err = m.RDMAStatus()
			case KindCongestionUpdate:
				_, err = m.CongestionUpdate()
			case KindRXPathLatency:
				_, err = m.RXPathLatency()
			case KindZerocopyCompletion:
				_, err = m.ZerocopyCompletion()
			case KindTimestamp:
				_, err = m.Timestamp()
			}
			if err != nil {
				t.Error(err)
			}
			seen++
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if seen != 13 {
		t.Errorf("%d messages", seen)
	}
}

func BenchmarkParse(b *testing.B) {
	oob := Encoder{}.AppendRDMADest(nil, key)
	oob = Encoder{}.AppendTimestamp(oob, time.Unix(1700000000, 0))
	for b.Loop() {
		it := Parse(Mainline, oob)
		for it.Next() {
			m := it.Message()
			switch m.Kind() {
			case KindRDMADest:
				m.RDMADest()
			case KindTimestamp:
				m.Timestamp()
			}
		}
	}
}

func TestNames(t *testing.T) {
	names := map[string]string{
		KindUnknown.String():                "unknown",
		KindRXPathLatency.String():          "receive-path latency",
		Kind(99).String():                   "kind 99",
		AtomicOp(9).String():                "atomic 9",
		StatusSuccess.String():              "success",
		StatusRemoteError.String():          "remote error",
		StatusCanceled.String():             "canceled",
		StatusDropped.String():              "dropped",
		StatusOtherError.String():           "other error",
		Status(-7).String():                 "status -7",
		RXHeaderToStart.String():            "header to start",
		RXReassembly.String():               "reassembly",
		RXDelivery.String():                 "delivery",
		RXPoint(3).String():                 "point 3",
		key.String():                        "100:203",
		Flags(0).String():                   "0",
		(FlagReadWrite | 1<<12).String():    "READWRITE|0x1000",
		(FlagNotifyMe | FlagFence).String(): "FENCE|NOTIFY_ME",
		Flags(0x1ef).String():               "READWRITE|FENCE|INVALIDATE|USE_ONCE|NOTIFY_ME|SILENT|REMOTE_COMPLETE|SEND_NOTIFY_ME",
		AtomicMaskedCompareSwap.String():    "masked compare-swap",
		AtomicCompareSwap.String():          "compare-swap",
		AtomicMaskedFetchAdd.String():       "masked fetch-add",
		AtomicFetchAdd.String():             "fetch-add",
	}
	for got, want := range names {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	seen := map[string]bool{}
	for k := KindUnknown; k <= KindTimestamp; k++ {
		if s := k.String(); seen[s] || strings.HasPrefix(s, "kind ") {
			t.Errorf("kind %d has no name of its own: %q", k, s)
		} else {
			seen[s] = true
		}
	}
}

func TestKeyIsOffsetAndRKey(t *testing.T) {
	if key.RKey() != 0x203 || key.Offset() != 0x100 {
		t.Errorf("RKey %#x, offset %#x", key.RKey(), key.Offset())
	}
}

func TestCongestionMaskIsByPortModulo64(t *testing.T) {
	m := CongestionMaskOf(6063) | CongestionMaskOf(6032)
	if m != 1<<47|1<<16 {
		t.Errorf("mask %#x", uint64(m))
	}
	for port, want := range map[uint16]bool{6063: true, 6032: true, 47: true, 65535: false, 6064: false, 111: true} {
		if m.Contains(port) != want {
			t.Errorf("port %d: %t", port, !want)
		}
	}
}

func TestRawBytesParseOnTheirOwn(t *testing.T) {
	var e Encoder
	oob := e.AppendTimestamp(nil, time.Unix(1, 0))
	first := len(oob)
	oob = e.AppendRDMAStatus(oob, RDMAStatus{Token: 7, Status: StatusDropped})
	it := Parse(Mainline, oob)
	var raws [][]byte
	for it.Next() {
		raws = append(raws, it.Raw())
	}
	if diff := cmp.Diff([][]byte{oob[:first], oob[first:]}, raws); diff != "" {
		t.Errorf("raw messages (-want +got):\n%s", diff)
	}
	one := Parse(Mainline, raws[1])
	if !one.Next() || one.Message().Kind() != KindRDMAStatus || one.Next() || one.Err() != nil {
		t.Errorf("the second message alone parses as %v: %v", one.Message(), one.Err())
	}
}
