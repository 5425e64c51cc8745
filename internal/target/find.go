package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/rdskit/rdskit/internal/module"
	"github.com/rdskit/rdskit/internal/route"
	"github.com/rdskit/rdskit/rdssock"
)

// A Finder turns what people name hosts by into targets. Its zero value takes
// both families and asks the routing table for the source.
type Finder struct {
	// Network is "ip4", "ip6" or "ip" for both, which is the default.
	Network string
	// Source is the address to send from: an address of this host, the name of an interface
	// or a host name. Empty leaves it to the routing table.
	Source string
	// TOS are the types of service to use, each a target of its own; empty means 0.
	TOS []uint8
	// NetNS is the descriptor of the network namespace to send from, 0 for the caller's.
	NetNS int
	// Load permits calls that make the kernel load RDS modules.
	Load bool
	// Resolver looks names up; nil means net.DefaultResolver.
	Resolver interface {
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
	// Unknown is what is said first of names that stand for no address, with %s for the name: the words of a C tool,
	// which scripts look for. Empty means those of rds-ping.
	Unknown string
	// Modules is where to look for modules.
	Modules module.System
}

// Find returns the targets for a host: a name or an address. A name that has
// several addresses stands for the first of them that can be reached; if none
// can, the error is about the first.
//
// It opens a socket to see that it can be done, but sends nothing.
func (f *Finder) Find(ctx context.Context, host string) ([]Target, error) {
	if err := f.CheckModule(); err != nil {
		return nil, err
	}
	addrs, err := f.Lookup(ctx, host)
	if err != nil {
		return nil, f.unknown("Cannot parse destination address <%s>", host, err)
	}
	var first error
	for i, a := range addrs {
		t := Target{Name: host, Addr: a}
		err := f.complete(ctx, &t)
		if err == nil {
			t.Others = append(append(t.Others, addrs[:i]...), addrs[i+1:]...)
			return f.withTOS(t)
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// withTOS makes a target for each type of service.
func (f *Finder) withTOS(t Target) ([]Target, error) {
	if len(f.TOS) == 0 {
		return []Target{t}, nil
	}
	var ts []Target
	for _, tos := range f.TOS {
		t.TOS = tos
		c, err := rdssock.Listen(netip.AddrPortFrom(t.Source, 0), &rdssock.Config{NetNS: f.NetNS, TOS: tos})
		if err != nil {
			return nil, newError("ERROR: failed to set TOS", err)
		}
		c.Close()
		ts = append(ts, t)
	}
	return ts, nil
}

// unknown is that a name stands for no address, said as rds-ping does unless f has other words.
func (f *Finder) unknown(ping, name string, err error) *Error {
	return &Error{What: fmt.Sprintf(cmp.Or(f.Unknown, ping), name), Err: err}
}

// Lookup returns the addresses of a host, at least one.
func (f *Finder) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	network := f.Network
	if network == "" {
		network = "ip"
	}
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		if network == "ip4" && !a.Is4() || network == "ip6" && !a.Is6() {
			return nil, fmt.Errorf("%v is not of the address family asked for", a)
		}
		return []netip.Addr{a}, nil
	}
	if host == "" || strings.ContainsAny(host, " \t\n") {
		return nil, errors.New("it is neither an address nor a name")
	}
	resolver := f.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	as, err := resolver.LookupNetIP(ctx, network, host)
	if err != nil {
		return nil, lookupError(err)
	}
	var addrs []netip.Addr
	for _, a := range as {
		a = a.Unmap()
		if network == "ip4" && !a.Is4() || network == "ip6" && !a.Is6() {
			continue
		}
		addrs = append(addrs, a)
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%s has no address of the family asked for", host)
	}
	return addrs, nil
}

// lookupError says what a resolver's error means to who named a host.
func lookupError(err error) error {
	d, ok := errors.AsType[*net.DNSError](err)
	switch {
	case !ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case d.IsNotFound:
		return errors.New("no such host: neither /etc/hosts nor DNS has it")
	case d.Server != "":
		why := d.Err[strings.LastIndex(d.Err, ": ")+1:] // behind the addresses of both ends
		return fmt.Errorf("/etc/hosts does not have it, and asking the name server %s failed: %s", d.Server, strings.TrimSpace(why))
	}
	return err
}

// complete finds source and transport.
func (f *Finder) complete(ctx context.Context, t *Target) error {
	if t.Addr.IsUnspecified() || t.Addr.IsMulticast() || t.Addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return &Error{"ERROR", syscall.EINVAL, fmt.Errorf("%v is no address of one host", t.Addr)}
	}
	if err := f.findSource(ctx, t); err != nil {
		return err
	}
	return f.findTransport(t)
}

// findSource fills in the address to send from.
func (f *Finder) findSource(ctx context.Context, t *Target) error {
	cfg := &route.Config{NetNS: f.NetNS}
	if f.Source != "" {
		a, err := f.namedSource(ctx, t.Addr)
		if _, explained := err.(*Error); explained {
			return err
		}
		if err != nil {
			return f.unknown("Unknown source address <%s>", f.Source, err)
		}
		if a.IsValid() {
			t.Source = a
			return nil
		}
		cfg.Device = f.Source
	}
	r, err := route.Lookup(ctx, t.Addr, cfg)
	if err != nil {
		return newError("unable to connect to "+t.Addr.String(), err)
	}
	t.Source = r.Source
	if r.Type == route.Local && f.Source == "" {
		// The kernel answers a ping between two of its addresses to the wrong one of them.
		t.Source = t.Addr
	}
	return nil
}

// namedSource finds the address that Source names, of the family of dst; invalid
// if it names an interface.
func (f *Finder) namedSource(ctx context.Context, dst netip.Addr) (netip.Addr, error) {
	cfg := &route.Config{NetNS: f.NetNS}
	a, err := netip.ParseAddr(f.Source)
	if err != nil {
		_, derr := route.Addresses(ctx, &route.Config{NetNS: f.NetNS, Device: f.Source})
		if !errors.Is(derr, route.ErrNoDevice) {
			return netip.Addr{}, derr
		}
		if a, err = f.sourceByName(ctx, dst); err != nil {
			return netip.Addr{}, err
		}
	}
	if a = a.Unmap(); a.Is4() != dst.Is4() {
		return netip.Addr{}, fmt.Errorf("%v and %v are not of one address family", a, dst)
	}
	local, err := route.IsLocal(ctx, a, cfg)
	if err != nil {
		return netip.Addr{}, err
	}
	if !local || a.IsUnspecified() {
		return netip.Addr{}, &Error{"bind() failed", syscall.EADDRNOTAVAIL,
			fmt.Errorf("%v is %w (ip address show lists them)", a, rdssock.ErrNotLocal)}
	}
	return a, nil
}

func (f *Finder) sourceByName(ctx context.Context, dst netip.Addr) (netip.Addr, error) {
	family := *f
	family.Network = "ip6"
	if dst.Is4() {
		family.Network = "ip4"
	}
	as, err := family.Lookup(ctx, f.Source)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("there is no such interface, nor such a host: %w", err)
	}
	return as[0], nil
}
