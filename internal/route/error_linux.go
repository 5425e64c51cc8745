package route

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// refusal explains the errno with which the kernel refused a destination; nil if
// err holds no errno that speaks of one.
//
// The errno of each kind of route: net/ipv4/fib_semantics.c fib_props and
// net/ipv6/route.c ip6_rt_type_to_error. The look-up goes on after a throw
// route, so that it looks like none.
func refusal(q query, err error) *Error {
	errno, _ := errors.AsType[syscall.Errno](err)
	switch errno {
	case syscall.EHOSTUNREACH:
		return refusedBy(q, Unreachable, errno)
	case syscall.EACCES:
		return refusedBy(q, Prohibit, errno)
	case syscall.EINVAL:
		// net/ipv4/route.c __mkroute_output
		if q.source.IsLoopback() {
			return &Error{
				Dst: q.dst, Device: q.device, Kind: ErrNoRoute, Err: errno,
				Reason: fmt.Sprintf("%v is a loopback address, from which only this host is reached", q.source),
			}
		}
		return refusedBy(q, Blackhole, errno)
	case syscall.ENETUNREACH:
		return &Error{
			Dst: q.dst, Device: q.device, Kind: ErrNoRoute, Err: errno,
			Reason: "no entry of the routing table covers it (see: ip route)",
		}
	case syscall.EOPNOTSUPP, syscall.EAFNOSUPPORT:
		if q.dst.Is6() {
			return &Error{
				Dst: q.dst, Device: q.device, Kind: ErrNoRoute, Err: errno,
				Reason: "this kernel runs without IPv6 (module ipv6 not loaded, or booted with ipv6.disable=1)",
			}
		}
	}
	return nil
}

func refusedBy(q query, t Type, err error) *Error {
	return &Error{
		Dst: q.dst, Device: q.device, Kind: ErrNoRoute, Type: t, Err: err,
		Reason: fmt.Sprintf("a route of type %v forbids it (see: ip route show type %[1]v)", t),
	}
}

// noAddress says that no local address fits the destination.
func noAddress(q query, device string) *Error {
	e := &Error{Dst: q.dst, Device: q.device, Kind: ErrNoAddress, Err: syscall.EADDRNOTAVAIL}
	family := "IPv4"
	if q.dst.Is6() {
		family = "IPv6"
	}
	if device == "" {
		e.Reason = fmt.Sprintf("this host has no %s address that fits", family)
	} else {
		e.Reason = fmt.Sprintf("%s has no %s address (add one with: ip address add ADDRESS/LENGTH dev %[1]s)", device, family)
	}
	return e
}

// notLocal says that the source asked for cannot be used.
func notLocal(q query) *Error {
	return &Error{
		Dst: q.dst, Device: q.device, Kind: ErrNotLocal, Err: syscall.EADDRNOTAVAIL,
		Reason: fmt.Sprintf("%v is not an address of this host (see: ip address)", q.source),
	}
}

// deviceError says what is wrong with a device that was asked for by name.
func deviceError(dst netip.Addr, device string, err error) error {
	if errors.Is(err, syscall.ENODEV) {
		return &Error{
			Dst: dst, Device: device, Kind: ErrNoDevice, Err: syscall.ENODEV,
			Reason: "it does not exist in this network namespace (see: ip link)",
		}
	}
	return fmt.Errorf("route: device %s: %w", device, err)
}
