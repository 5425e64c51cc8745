package cmsg

import (
	"bytes"
	"testing"
	"time"
)

// fuzzMessage fuzzes the decoder of one kind with data of any kind of
// architecture. What it accepts must survive encoding: the same value comes
// back, and encoding that once more gives the same bytes.
func fuzzMessage[T comparable](f *testing.F, k Kind, app func(Encoder, []byte, T) ([]byte, error), dec func(Message) (T, error)) {
	seeds := 0
	for i, arch := range architectures {
		bytes := golden(f, arch)
		for _, s := range samples() {
			if s.kind != k {
				continue
			}
			m := one(f, parse(arch.layout, s.dialect, bytes[s.name]))
			for _, n := range []int{0, len(m.Data) / 2, len(m.Data)} {
				f.Add(uint8(i), uint8(s.dialect), m.Level, m.Type, m.Data[:n])
				seeds++
			}
		}
	}
	if seeds == 0 {
		f.Fatalf("no seed is of kind %v", k)
	}
	f.Fuzz(func(t *testing.T, arch, dialect uint8, level, typ int, data []byte) {
		l, d := architectures[arch%4].layout, Dialect(dialect%2)
		level, typ = int(int32(level)), int(int32(typ))
		m := one(t, parse(l, d, append(appendHeader(nil, l, level, typ, len(data)), data...)))
		if m.Level != level || m.Type != typ || !bytes.Equal(m.Data, data) {
			t.Fatalf("%d, %d, %x was read as %+v", level, typ, data, m)
		}
		v, err := dec(m)
		if err != nil {
			return
		}
		if m.Kind() != k {
			t.Fatalf("a %v was decoded as %v", m.Kind(), k)
		}
		e := Encoder{Dialect: d, layout: l}
		oob, err := app(e, nil, v)
		if err != nil {
			t.Fatalf("%+v was decoded but not encoded: %v", v, err)
		}
		if len(oob)%l.WordSize() != 0 {
			t.Errorf("%d bytes are not padded", len(oob))
		}
		back, err := dec(one(t, parse(l, d, oob)))
		if err != nil || back != v {
			t.Fatalf("%+v became %+v, %v", v, back, err)
		}
		if again, err := app(e, nil, back); err != nil || !bytes.Equal(again, oob) {
			t.Fatalf("%x became %x, %v", oob, again, err)
		}
	})
}

func FuzzRDMAArgs(f *testing.F) {
	fuzzMessage(f, KindRDMAArgs, sure(Encoder.AppendRDMAArgs), Message.RDMAArgs)
}

func FuzzRDMADest(f *testing.F) {
	fuzzMessage(f, KindRDMADest, sure(Encoder.AppendRDMADest), Message.RDMADest)
}

func FuzzRDMAMap(f *testing.F) {
	fuzzMessage(f, KindRDMAMap, sure(Encoder.AppendRDMAMap), Message.RDMAMap)
}

func FuzzAtomic(f *testing.F) {
	fuzzMessage(f, KindAtomic, Encoder.AppendAtomic, Message.Atomic)
}

func FuzzAsyncSend(f *testing.F) {
	fuzzMessage(f, KindAsyncSend, Encoder.AppendAsyncSend, Message.AsyncSend)
}

func FuzzZerocopyCookie(f *testing.F) {
	fuzzMessage(f, KindZerocopyCookie, Encoder.AppendZerocopyCookie, Message.ZerocopyCookie)
}

func FuzzRDMAStatus(f *testing.F) {
	fuzzMessage(f, KindRDMAStatus, sure(Encoder.AppendRDMAStatus), Message.RDMAStatus)
}

func FuzzCongestionUpdate(f *testing.F) {
	fuzzMessage(f, KindCongestionUpdate, sure(Encoder.AppendCongestionUpdate), Message.CongestionUpdate)
}

func FuzzRXPathLatency(f *testing.F) {
	fuzzMessage(f, KindRXPathLatency, Encoder.AppendRXPathLatency, Message.RXPathLatency)
}

func FuzzZerocopyCompletion(f *testing.F) {
	fuzzMessage(f, KindZerocopyCompletion, Encoder.AppendZerocopyCompletion, Message.ZerocopyCompletion)
}

func FuzzINQ(f *testing.F) {
	fuzzMessage(f, KindINQ, Encoder.AppendINQ, Message.INQ)
}

func FuzzTimestamp(f *testing.F) {
	fuzzMessage(f, KindTimestamp, sure(Encoder.AppendTimestamp), func(m Message) (time.Time, error) { return m.Timestamp() })
}

// FuzzParse walks over any buffer: messages lie in it one after the other
// without overlap, and every byte is accounted for, by a message, by padding or
// by the error.
func FuzzParse(f *testing.F) {
	addBuffers(f)
	f.Fuzz(func(t *testing.T, arch, dialect uint8, oob []byte) {
		l := architectures[arch%4].layout
		it := parse(l, Dialect(dialect%2), oob)
		end := 0
		for it.Next() {
			m := it.Message()
			if m.offset != end {
				t.Fatalf("message at %d, the one before it ended at %d", m.offset, end)
			}
			from := m.offset + headerSize(l)
			to := from + len(m.Data)
			if to > len(oob) || !bytes.Equal(m.Data, oob[from:to]) {
				t.Fatalf("the data of the message at %d is %x", m.offset, m.Data)
			}
			end = min(m.offset+headerSize(l)+align(len(m.Data), l), len(oob))
		}
		if (it.Err() == nil) != (end == len(oob)) {
			t.Fatalf("the last message ended at %d of %d: %v", end, len(oob), it.Err())
		}
		if it.Next() {
			t.Fatal("there is more after the end")
		}
	})
}

// FuzzCheck holds Check to what it promises: what it passes can be decoded
// message by message, and is one message of a kind.
func FuzzCheck(f *testing.F) {
	addBuffers(f)
	f.Fuzz(func(t *testing.T, arch, dialect uint8, oob []byte) {
		l, d := architectures[arch%4].layout, Dialect(dialect%2)
		it := parse(l, d, oob)
		if it.check() != nil {
			return
		}
		seen := map[Kind]int{}
		it = parse(l, d, oob)
		for it.Next() {
			m := it.Message()
			if m.Level != 276 {
				continue
			}
			k := m.Kind()
			if seen[k]++; seen[k] > 1 && k != KindAsyncSend && k != KindZerocopyCookie {
				t.Errorf("%d messages of kind %v passed", seen[k], k)
			}
			var err error
			switch k {
			case KindRDMAArgs:
				_, err = m.RDMAArgs()
			case KindRDMADest:
				_, err = m.RDMADest()
			case KindRDMAMap:
				_, err = m.RDMAMap()
			case KindAtomic:
				_, err = m.Atomic()
			case KindAsyncSend:
				_, err = m.AsyncSend()
			case KindZerocopyCookie:
				_, err = m.ZerocopyCookie()
			default:
				t.Errorf("a %v passed", k)
			}
			if err != nil {
				t.Errorf("passed, but %v", err)
			}
		}
		if it.Err() != nil && len(oob)-it.next >= headerSize(l) {
			t.Errorf("passed, but %v", it.Err())
		}
	})
}

// addBuffers seeds a target that takes whole control buffers.
func addBuffers(f *testing.F) {
	for i, arch := range architectures {
		for _, oob := range golden(f, arch) {
			for d := range uint8(2) {
				f.Add(uint8(i), d, oob)
				f.Add(uint8(i), d, oob[:len(oob)-1])
			}
		}
	}
}
