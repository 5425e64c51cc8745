package info

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/rdskit/rdskit/rdsinfo"
)

// maxLookups bounds how many names are looked up at a time.
const maxLookups = 32

// ResolveNames looks up the names of addresses, of which a host has several and the first
// counts. Those that have none, or are not answered until ctx ends, are left out.
func ResolveNames(ctx context.Context, addrs []netip.Addr) map[netip.Addr]string {
	return resolveNames(ctx, net.DefaultResolver.LookupAddr, addrs)
}

func resolveNames(ctx context.Context, lookup func(context.Context, string) ([]string, error), addrs []netip.Addr) map[netip.Addr]string {
	names := make(map[netip.Addr]string)
	var mu sync.Mutex
	var running sync.WaitGroup
	free := make(chan struct{}, maxLookups)
	addrs = slices.Clone(addrs)
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, a := range slices.Compact(addrs) {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			running.Wait()
			return names
		}
		running.Go(func() {
			defer func() { <-free }()
			found, err := lookup(ctx, a.String())
			if err != nil || len(found) == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			names[a] = strings.TrimSuffix(found[0], ".")
		})
	}
	running.Wait()
	return names
}

// RemoteAddresses are those of the rows of tables, as often as they are there.
func RemoteAddresses(s *rdsinfo.Snapshot, tables []rdsinfo.Table) []netip.Addr {
	var addrs []netip.Addr
	add := func(a netip.Addr) {
		if a.IsValid() && !a.IsUnspecified() {
			addrs = append(addrs, a)
		}
	}
	v := visitor{
		counters: func([]rdsinfo.Counter) {},
		connections: func(rows []rdsinfo.Connection) {
			for _, c := range rows {
				add(c.Remote)
			}
		},
		sockets: func(rows []rdsinfo.Socket) {
			for i := range rows {
				add(rows[i].Connected.Addr())
			}
		},
		queue: func(_ rdsinfo.Table, rows []rdsinfo.Message) {
			for _, m := range rows {
				add(m.Remote.Addr())
			}
		},
		tcpSockets: func(rows []rdsinfo.TCPSocket) {
			for _, k := range rows {
				add(k.Remote.Addr())
			}
		},
		ibConnections: func(rows []rdsinfo.IBConnection) {
			for i := range rows {
				add(rows[i].Remote)
			}
		},
		pathConnections: func([]rdsinfo.PathConnection) {},
	}
	for _, t := range tables {
		_ = visit(s, t, true, Filter{}, v) // a table that is not there has no addresses
	}
	return addrs
}
