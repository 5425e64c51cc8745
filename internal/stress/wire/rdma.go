package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// An RDMAOp is what the receiver of a request does along with its answer, in the
// requester's memory.
type RDMAOp uint8

const (
	NoRDMA    RDMAOp = 0
	RDMARead  RDMAOp = 1
	RDMAWrite RDMAOp = 2
)

func (o RDMAOp) String() string {
	switch o {
	case NoRDMA:
		return "none"
	case RDMARead:
		return "read"
	case RDMAWrite:
		return "write"
	}
	return fmt.Sprintf("RDMA op %d", uint8(o))
}

// RDMA is the part of a header that asks for an operation; the answer repeats it. It is zero in
// messages without one.
type RDMA struct {
	Op      RDMAOp
	Addr    uint64 // the requester's address, which means nothing to others
	Offset  uint64 // in the region of Key
	Pattern uint64 // that fills the memory, see Fill
	// Key is that of the requester's region. In a request it may be 0, since the kernel sends it along.
	Key    uint64
	Size   uint32 // bytes of an element
	Vector uint32 // elements
}

// Offsets of the fields.
const (
	offRDMAOp      = offRDMA
	offRDMAAddr    = 20
	offRDMAOffset  = 28
	offRDMAPattern = 36
	offRDMAKey     = 44
	offRDMASize    = 52
	offRDMAVector  = 56
)

// PutRDMA and ParseRDMA access the RDMA of a header in place.
func PutRDMA(b []byte, r *RDMA) {
	be := binary.BigEndian
	b[offRDMAOp] = byte(r.Op)
	be.PutUint64(b[offRDMAAddr:], r.Addr)
	be.PutUint64(b[offRDMAOffset:], r.Offset)
	be.PutUint64(b[offRDMAPattern:], r.Pattern)
	be.PutUint64(b[offRDMAKey:], r.Key)
	be.PutUint32(b[offRDMASize:], r.Size)
	be.PutUint32(b[offRDMAVector:], r.Vector)
}

func ParseRDMA(b []byte) RDMA {
	be := binary.BigEndian
	return RDMA{
		Op:      RDMAOp(b[offRDMAOp]),
		Addr:    be.Uint64(b[offRDMAAddr:]),
		Offset:  be.Uint64(b[offRDMAOffset:]),
		Pattern: be.Uint64(b[offRDMAPattern:]),
		Key:     be.Uint64(b[offRDMAKey:]),
		Size:    be.Uint32(b[offRDMASize:]),
		Vector:  be.Uint32(b[offRDMAVector:]),
	}
}

// FirstRDMA is the sequence number of the first message that may ask for an operation. C has none before it.
const FirstRDMA = 11

// A Filling says what the words of 8 bytes of a pattern are.
type Filling bool

const (
	// Repeated has the pattern in each word, in the byte order of the host, as C has it.
	Repeated Filling = false
	// Counted has pattern+i*step in word i, little endian, so that no part of the memory passes for
	// another. It is for two of rdskit.
	Counted Filling = true
)

// step makes all words differ, in all their bytes.
const step = 0x9e3779b97f4a7c15

// Fill fills b with a pattern. What is left behind the last word has the first bytes of the next.
func (f Filling) Fill(b []byte, pattern uint64) {
	if f == Counted {
		for ; len(b) >= 8; b = b[8:] {
			binary.LittleEndian.PutUint64(b, pattern)
			pattern += step
		}
		copy(b, tail(pattern))
		return
	}
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], pattern)
	for n := copy(b, word[:]); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// Check returns where b differs from what Fill makes, in bytes from its begin; -1 if nowhere.
func (f Filling) Check(b []byte, pattern uint64) int {
	if f == Counted {
		at := 0
		for ; len(b)-at >= 8; at += 8 {
			if d := binary.LittleEndian.Uint64(b[at:]) ^ pattern; d != 0 {
				return at + bits.TrailingZeros64(d)/8
			}
			pattern += step
		}
		return differ(b, at, tail(pattern))
	}
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], pattern)
	n := min(len(b), len(word))
	if string(b[:n]) == string(word[:n]) && string(b[n:]) == string(b[:len(b)-n]) {
		return -1
	}
	for at := 0; at < len(b); at += len(word) {
		if i := differ(b[:min(len(b), at+len(word))], at, word[:]); i >= 0 {
			return i
		}
	}
	return -1
}

func tail(pattern uint64) []byte {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], pattern)
	return word[:]
}

// differ compares b from at with the first bytes of want.
func differ(b []byte, at int, want []byte) int {
	for i := range b[at:] {
		if b[at+i] != want[i] {
			return at + i
		}
	}
	return -1
}
