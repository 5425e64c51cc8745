// Package target finds what people name: the address of a host, the local address to reach it
// from, and the transport of RDS that is there.
package target

import (
	"net/netip"

	"github.com/rdskit/rdskit/rdssock"
)

// A Target is one destination, reached from one source with one type of
// service.
type Target struct {
	// Name is what was asked for: a host name, or the address as it was written.
	Name string
	// Addr is the address.
	Addr netip.Addr
	// Others are the further addresses of Name, which are left out.
	Others []netip.Addr
	// Source is the local address.
	Source netip.Addr
	// TOS is the type of service.
	TOS uint8
	// Transport is what carries messages to it.
	Transport rdssock.Transport
}
