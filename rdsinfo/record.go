package rdsinfo

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/rdskit/rdskit/internal/abi"
)

// A record is one record of a table, as long as the kernel says that it is.
// Its scalars are in host order, its addresses and ports in network order.
// Methods without "maybe" in their name must not be called beyond its end.
type record struct {
	b      []byte
	layout abi.Layout
}

func (r record) has(offset, size int) bool { return offset+size <= len(r.b) }

func (r record) u8(offset int) uint8   { return r.b[offset] }
func (r record) u32(offset int) uint32 { return r.layout.Uint32(r.b[offset:]) }
func (r record) u64(offset int) uint64 { return r.layout.Uint64(r.b[offset:]) }

// be16 is a port.
func (r record) be16(offset int) uint16 { return binary.BigEndian.Uint16(r.b[offset:]) }

// addr is an address of size bytes, 4 or 16; IPv4-mapped ones are unmapped.
func (r record) addr(offset, size int) netip.Addr {
	a, _ := netip.AddrFromSlice(r.b[offset : offset+size])
	return a.Unmap()
}

// text is a name that need not end in a NUL byte.
func (r record) text(offset, size int) string {
	name, _, _ := bytes.Cut(r.b[offset:offset+size], []byte{0})
	return string(name)
}

func (r record) maybe8(offset int) Optional[uint8] {
	if !r.has(offset, 1) {
		return Optional[uint8]{}
	}
	return known(r.u8(offset))
}

func (r record) maybe16(offset int) Optional[uint16] {
	if !r.has(offset, 2) {
		return Optional[uint16]{}
	}
	return known(r.layout.Uint16(r.b[offset:]))
}

func (r record) maybe32(offset int) Optional[uint32] {
	if !r.has(offset, 4) {
		return Optional[uint32]{}
	}
	return known(r.u32(offset))
}

func (r record) maybeInt32(offset int) Optional[int32] {
	if !r.has(offset, 4) {
		return Optional[int32]{}
	}
	return known(int32(r.u32(offset)))
}

func (r record) maybe64(offset int) Optional[uint64] {
	if !r.has(offset, 8) {
		return Optional[uint64]{}
	}
	return known(r.u64(offset))
}
