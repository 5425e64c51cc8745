package abi

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"testing"
)

func TestZeroLayoutIsTheProgramsOwn(t *testing.T) {
	var l Layout
	if l.WordSize() != bits.UintSize/8 {
		t.Errorf("word size %d", l.WordSize())
	}
	if want := map[bool]int{true: 4, false: 8}[runtime.GOARCH == "386"]; l.Uint64Align() != want {
		t.Errorf("alignment of a u64 %d, want %d", l.Uint64Align(), want)
	}
	b := binary.NativeEndian.AppendUint64(nil, 0x0102030405060708)
	if got := l.Uint64(b); got != 0x0102030405060708 {
		t.Errorf("got %#x", got)
	}
}

func TestLayoutReadsAndWritesBothOrders(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		l := LayoutOf(4, 8, order)
		b := l.AppendUint64(l.AppendUint32(nil, 0x01020304), 0x1112131415161718)
		if got := order.Uint32(b); got != 0x01020304 {
			t.Errorf("%v: AppendUint32 wrote %#x", order, got)
		}
		if got := order.Uint64(b[4:]); got != 0x1112131415161718 {
			t.Errorf("%v: AppendUint64 wrote %#x", order, got)
		}
		if g32, g64, g16 := l.Uint32(b), l.Uint64(b[4:]), l.Uint16(b); g32 != 0x01020304 || g64 != 0x1112131415161718 || g16 != order.Uint16(b) {
			t.Errorf("%v: read %#x %#x %#x", order, g16, g32, g64)
		}
		l.PutUint16(b, 0x2122)
		l.PutUint32(b[4:], 0x31323334)
		if g16, g32 := order.Uint16(b), order.Uint32(b[4:]); g16 != 0x2122 || g32 != 0x31323334 {
			t.Errorf("%v: put %#x %#x", order, g16, g32)
		}
		if l.WordSize() != 4 || l.Uint64Align() != 8 || l.ByteOrder() != order {
			t.Errorf("%v: word size %d, alignment %d, order %v", order, l.WordSize(), l.Uint64Align(), l.ByteOrder())
		}
	}
}
