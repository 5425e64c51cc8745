package route

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

var (
	// ErrNoRoute says that the kernel has no way to the destination.
	ErrNoRoute = errors.New("no route to the host")

	// ErrNoAddress says that there is a way to the destination, but no local
	// address to send from.
	ErrNoAddress = errors.New("no local address to send from")

	// ErrNotLocal says that the source asked for is not an address of this host.
	ErrNotLocal = errors.New("not an address of this host")

	// ErrNoDevice says that the device asked for does not exist in the network
	// namespace.
	ErrNoDevice = errors.New("no such network device")
)

// An Error says why a destination has no route, or no source to use.
type Error struct {
	Dst    netip.Addr
	Device string // the device that was asked for, if any

	// Kind is [ErrNoRoute], [ErrNoAddress], [ErrNotLocal] or [ErrNoDevice].
	Kind error

	// Type is the kind of the route that refuses the destination: Blackhole,
	// Unreachable, Prohibit or Throw; 0 when no route refuses it.
	Type Type

	// Reason is the cause in words, with the way out.
	Reason string

	// Err is the kernel's errno, nil where it named none.
	Err error
}

// Error returns the destination, the kernel's word and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "route to %v", e.Dst)
	if e.Device != "" {
		fmt.Fprintf(&b, " on %s", e.Device)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	} else {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, ": %s", e.Reason)
	}
	return b.String()
}

// Unwrap makes errors.Is see both the kind and the errno.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
