package abi

import (
	"encoding/binary"
	"math/bits"
)

// Layout is how one architecture lays out the integers and the C longs of a
// record. The zero value is the layout of the running program, which is the
// kernel's; others, from [LayoutOf], serve records captured elsewhere.
type Layout struct {
	word  uint8 // sizeof(long), 0 for the program's own
	align uint8 // of a u64 in a struct, 0 for the program's own
	swap  bool  // byte order is not the program's own
}

// LayoutOf returns the layout of an architecture whose C long has wordSize
// bytes, 4 or 8, which aligns a u64 in a struct to uint64Align bytes, 4 or 8,
// and whose integers are in the given order.
func LayoutOf(wordSize, uint64Align int, order binary.ByteOrder) Layout {
	var probe [2]byte
	order.PutUint16(probe[:], 1)
	return Layout{
		word:  uint8(wordSize),
		align: uint8(uint64Align),
		swap:  binary.NativeEndian.Uint16(probe[:]) != 1,
	}
}

// WordSize returns sizeof(long): 4 or 8.
func (l Layout) WordSize() int {
	if l.word == 0 {
		return bits.UintSize / 8
	}
	return int(l.word)
}

// Uint64Align returns to how many bytes C aligns a u64 in a struct: 8, but 4
// on 32-bit x86.
func (l Layout) Uint64Align() int {
	if l.align == 0 {
		return uint64Align
	}
	return int(l.align)
}

// ByteOrder returns binary.LittleEndian or binary.BigEndian.
func (l Layout) ByteOrder() binary.ByteOrder {
	if l.Uint16([]byte{0, 1}) == 1 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Uint16 reads the first 2 bytes of b, which must be that long.
func (l Layout) Uint16(b []byte) uint16 {
	v := binary.NativeEndian.Uint16(b)
	if l.swap {
		v = bits.ReverseBytes16(v)
	}
	return v
}

// Uint32 reads the first 4 bytes of b, which must be that long.
func (l Layout) Uint32(b []byte) uint32 {
	v := binary.NativeEndian.Uint32(b)
	if l.swap {
		v = bits.ReverseBytes32(v)
	}
	return v
}

// Uint64 reads the first 8 bytes of b, which must be that long.
func (l Layout) Uint64(b []byte) uint64 {
	v := binary.NativeEndian.Uint64(b)
	if l.swap {
		v = bits.ReverseBytes64(v)
	}
	return v
}

// PutUint16 writes v to the first 2 bytes of b, which must be that long.
func (l Layout) PutUint16(b []byte, v uint16) {
	if l.swap {
		v = bits.ReverseBytes16(v)
	}
	binary.NativeEndian.PutUint16(b, v)
}

// PutUint32 writes v to the first 4 bytes of b, which must be that long.
func (l Layout) PutUint32(b []byte, v uint32) {
	if l.swap {
		v = bits.ReverseBytes32(v)
	}
	binary.NativeEndian.PutUint32(b, v)
}

// AppendUint32 appends the 4 bytes of v to b.
func (l Layout) AppendUint32(b []byte, v uint32) []byte {
	if l.swap {
		v = bits.ReverseBytes32(v)
	}
	return binary.NativeEndian.AppendUint32(b, v)
}

// AppendUint64 appends the 8 bytes of v to b.
func (l Layout) AppendUint64(b []byte, v uint64) []byte {
	if l.swap {
		v = bits.ReverseBytes64(v)
	}
	return binary.NativeEndian.AppendUint64(b, v)
}
