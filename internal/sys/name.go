package sys

import (
	"net/netip"

	"github.com/rdskit/rdskit/internal/abi"
)

// A Name is a socket address in the form of the kernel, made once for many calls.
type Name struct {
	raw [abi.SizeofSockaddrIn6]byte
	n   int
}

// NewName returns the Name of an address, which must be valid.
func NewName(ap netip.AddrPort, scope uint32) Name {
	var n Name
	n.n = abi.PutSockaddr(&n.raw, ap, scope)
	return n
}

// Equal reports whether that is what the kernel wrote, the scope of IPv6 included.
func (n *Name) Equal(name []byte) bool { return string(n.raw[:n.n]) == string(name) }

// Bytes is what the kernel reads.
func (n *Name) Bytes() []byte { return n.raw[:n.n] }
