package route

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/rdskit/rdskit/internal/sys"
)

const bindToDeviceCall = "setsockopt SO_BINDTODEVICE"

// anyPort is for connect(2), which wants a port; nothing is sent to it.
const anyPort = 9

// lookupUDP asks the kernel through a connected UDP socket: connect(2) does the
// look-up, getsockname(2) tells the source. Device, gateway, type and MTU stay
// unknown.
func lookupUDP(ctx context.Context, q query) (Route, error) {
	d := net.Dialer{Control: bindToDevice(q.device)}
	if q.source.IsValid() {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(q.source, 0))
	}
	var source netip.Addr
	err := sys.InNetNS(q.netns, func() error {
		conn, err := d.DialContext(ctx, "udp", netip.AddrPortFrom(q.dst, anyPort).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		source = conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
		return nil
	})
	if err != nil {
		return Route{}, udpError(q, err)
	}
	if source.IsUnspecified() {
		return Route{}, noAddress(q, q.device)
	}
	return Route{Source: zoned(source, q.device), Device: q.device}, nil
}

// isLocalUDP tries to bind a UDP socket to the address. bind(2) does not look at
// the device of an IPv4 address.
func isLocalUDP(ctx context.Context, q query) (bool, error) {
	lc := net.ListenConfig{Control: bindToDevice(q.device)}
	err := sys.InNetNS(q.netns, func() error {
		conn, err := lc.ListenPacket(ctx, "udp", netip.AddrPortFrom(q.dst, 0).String())
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return false, nil
	}
	if err != nil {
		return false, udpError(q, err)
	}
	return true, nil
}

// bindToDevice holds a socket to the device that must be used. A link-local
// address then needs no zone, which package net would look up over netlink.
func bindToDevice(device string) func(network, address string, c syscall.RawConn) error {
	if device == "" {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), device) }); cerr != nil {
			return cerr
		}
		return os.NewSyscallError(bindToDeviceCall, err)
	}
}

func udpError(q query, err error) error {
	switch {
	case isSyscall(err, "setns"):
		return netnsError(err)
	case isSyscall(err, bindToDeviceCall):
		return deviceError(q.dst, q.device, err)
	case isSyscall(err, "bind") && errors.Is(err, syscall.EADDRNOTAVAIL):
		return notLocal(q)
	case isSyscall(err, "connect") && errors.Is(err, syscall.EADDRNOTAVAIL):
		return noAddress(q, q.device)
	}
	if e := refusal(q, err); e != nil {
		return e
	}
	return fmt.Errorf("route to %v: %w", q.dst, err)
}
