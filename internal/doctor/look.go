package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rdskit/rdskit/internal/ping"
	"github.com/rdskit/rdskit/internal/target"
	"github.com/rdskit/rdskit/rdsinfo"
	"github.com/rdskit/rdskit/rdssock"
)

// A Config says what to look at.
type Config struct {
	// NetNS is the descriptor of the network namespace, 0 for that of the caller.
	NetNS int
	// Local is the address to look at among those of this host, invalid for all.
	Local netip.Addr
	// Host is the name or address of a host that should be reached, or empty.
	Host string
	// Probe permits to make connections to Host, one for each of TOS; none of TOS means 0.
	Probe bool
	TOS   []uint8
	// Interval is the time between the two looks.
	Interval time.Duration
	// Timeout is how long a ping waits for its answer.
	Timeout time.Duration
}

// The pings along each connection.
const (
	pingCount    = 2
	pingInterval = 200 * time.Millisecond
)

// Look gathers the facts about this host. Without a host it sends nothing but, for
// one that is a name, questions to the name server. It loads no module.
func Look(ctx context.Context, cfg *Config) (*Facts, error) {
	read := &rdsinfo.Config{NetNS: cfg.NetNS}
	first, err := rdsinfo.Collect(ctx, read)
	if err != nil {
		return nil, err
	}
	f := &Facts{First: first, Last: first, Local: cfg.Local}
	var meanwhile sync.WaitGroup
	if cfg.Host != "" {
		f.Host = &Host{Name: cfg.Host, Probed: cfg.Probe}
		meanwhile.Go(func() { f.Host.reach(ctx, cfg, first) })
	}
	err = f.watch(ctx, read, cfg.Interval)
	meanwhile.Wait()
	if err != nil {
		return nil, err
	}
	if f.Last, err = rdsinfo.Collect(ctx, read); err != nil {
		return nil, err
	}
	if f.Host != nil && f.Host.Err == nil {
		// What the kernel knows of the neighbor came with the pings.
		f.Host.Way = rdsinfo.LookupPeer(ctx, read, f.Host.Way.Local, f.Host.Way.Remote)
	}
	// Who has sockets open says more, but no verdict needs it.
	f.Processes, _, _ = rdsinfo.Processes()
	return f, nil
}

// betweenLooks is how many looks at the connections there are in the interval.
const betweenLooks = 10

// watch takes looks at the connections until the interval is over.
func (f *Facts) watch(ctx context.Context, cfg *rdsinfo.Config, interval time.Duration) error {
	over := time.NewTimer(interval)
	defer over.Stop()
	next := time.NewTicker(max(interval/betweenLooks, time.Millisecond))
	defer next.Stop()
	for {
		select {
		case <-over.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
		}
		if f.First.SocketError != "" {
			continue
		}
		s, err := rdsinfo.Read(cfg, rdsinfo.Connections, rdsinfo.TCPSockets)
		if err != nil {
			continue // the module was unloaded; the last look says so
		}
		f.Between = append(f.Between, s)
	}
}

// reach finds the host's address and the way to it, and pings it.
func (h *Host) reach(ctx context.Context, cfg *Config, b *rdsinfo.Bundle) {
	addrs, err := new(target.Finder).Lookup(ctx, h.Name)
	if err != nil {
		h.Err = err
		return
	}
	if err := checkIsHost(addrs[0]); err != nil {
		h.Err = err
		return
	}
	if addrs = ofFamily(addrs, cfg.Local); len(addrs) == 0 {
		h.Err = fmt.Errorf("none of its addresses is of the family of %v", cfg.Local)
		return
	}
	h.choose(ctx, cfg, addrs)
	if b.SocketError != "" {
		h.PingErr = errors.New("no RDS socket can be made")
		return
	}
	targets := h.connected(cfg, b)
	if h.Probed {
		more, err := h.probes(cfg, b, targets)
		if err != nil && len(targets) == 0 {
			h.PingErr = err
		}
		targets = append(targets, more...)
	}
	if len(targets) == 0 {
		return
	}
	h.PingErr = h.ping(ctx, cfg, targets)
}

// checkIsHost refuses addresses that stand for none or for many.
func checkIsHost(a netip.Addr) error {
	switch {
	case a.IsUnspecified():
		return fmt.Errorf("%v stands for no host", a)
	case a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%v stands for many hosts, and RDS reaches one at a time", a)
	}
	return nil
}

// ofFamily leaves out the addresses that are not of the family of local, if that is valid.
func ofFamily(addrs []netip.Addr, local netip.Addr) []netip.Addr {
	return slices.DeleteFunc(addrs, func(a netip.Addr) bool { return local.IsValid() && a.Is4() != local.Is4() })
}

// choose takes the first address that there is a way to, else the first.
func (h *Host) choose(ctx context.Context, cfg *Config, addrs []netip.Addr) {
	read := &rdsinfo.Config{NetNS: cfg.NetNS}
	for i, a := range addrs {
		way := rdsinfo.LookupPeer(ctx, read, cfg.Local, a)
		if i == 0 || way.RouteError == "" {
			h.Way = way
			h.Others = slices.Concat(addrs[:i:i], addrs[i+1:])
		}
		if way.RouteError == "" {
			return
		}
	}
}

// connected returns a target for each connection to the host that there is.
func (h *Host) connected(cfg *Config, b *rdsinfo.Bundle) []target.Target {
	connections, _ := b.Snapshot.Connections()
	own := make([]netip.Addr, len(b.Namespace.Addresses))
	for i, a := range b.Namespace.Addresses {
		own[i] = a.Addr
	}
	targets := slices.DeleteFunc(target.Along(connections, own), func(t target.Target) bool {
		return !same(t.Addr, h.Way.Remote) || cfg.Local.IsValid() && !same(t.Source, cfg.Local)
	})
	for i := range targets {
		targets[i].Name = h.Name
	}
	return targets
}

// probes returns a target for each type of service that there is no connection
// of.
func (h *Host) probes(cfg *Config, b *rdsinfo.Bundle, have []target.Target) ([]target.Target, error) {
	if h.Way.RouteError != "" {
		return nil, errors.New(h.Way.RouteError)
	}
	name := ""
	source := h.Way.Local // of --local it may lack the zone
	for _, a := range b.Namespace.Addresses {
		if same(a.Addr, source) {
			name, source = a.Transport, a.Addr
		}
	}
	if h.Way.Local.IsLoopback() {
		name = rdssock.TransportLoopback.String()
	}
	transport := target.TransportNamed(name)
	if transport == rdssock.TransportAny {
		return nil, fmt.Errorf("no transport serves %v", h.Way.Local)
	}
	services := cfg.TOS
	if len(services) == 0 {
		services = []uint8{0}
	}
	var targets []target.Target
	for _, tos := range services {
		if slices.ContainsFunc(have, func(t target.Target) bool { return same(t.Source, h.Way.Local) && t.TOS == tos }) {
			continue
		}
		targets = append(targets, target.Target{Name: h.Name, Addr: h.Way.Remote, Source: source, TOS: tos, Transport: transport})
	}
	return targets, nil
}

// ping pings the targets and notes what became of it.
func (h *Host) ping(ctx context.Context, cfg *Config, targets []target.Target) error {
	failed := make(map[*target.Target]error)
	p := &ping.Config{Targets: targets, Count: pingCount, Interval: pingInterval, Timeout: cfg.Timeout, NetNS: cfg.NetNS}
	reports, err := ping.Run(ctx, p, func(e ping.Event) {
		if e.Kind == ping.Failed {
			failed[e.Target] = e.Err
		}
	})
	if err != nil {
		return err
	}
	for i := range targets {
		t, r := &p.Targets[i], reports[i]
		h.Pings = append(h.Pings, Ping{
			Local: t.Source, Remote: t.Addr, TOS: t.TOS, Transport: t.Transport.String(),
			Sent: r.Sent, Received: r.Received, RTT: r.RTT.Min, Err: failed[t],
		})
	}
	return nil
}
