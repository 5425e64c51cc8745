package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/info"
	"github.com/rdskit/rdskit/rdsinfo"
)

// joinOptions say what is looked up for the rows beyond the tables.
type joinOptions struct {
	procs, tcp, route, rdma, resolve bool
}

func (o *joinOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "procs", Destination: &o.procs, Usage: "with -k, the processes that have a socket open, from /proc"},
		&cli.BoolFlag{Name: "tcp-info", Destination: &o.tcp, Usage: "with -n and -T, how TCP fares: round trips, retransmissions, congestion window; the kernel may load tcp_diag"},
		&cli.BoolFlag{Name: "route", Destination: &o.route, Usage: "with -n, the device, gateway and neighbor on the way to the peer"},
		&cli.BoolFlag{Name: "rdma", Destination: &o.rdma, Usage: "with -n and -I, the RDMA device, port, GID, network interface and queue pair"},
		&cli.BoolFlag{Name: "resolve", Destination: &o.resolve, Usage: "the names of remote addresses, as far as they are found in 3 seconds"},
	}
}

// resolveTime is how long names are waited for.
const resolveTime = 3 * time.Second

// of looks up what was asked for of the rows of tables.
func (o *joinOptions) of(ctx context.Context, cfg *rdsinfo.Config, s *rdsinfo.Snapshot, tables []rdsinfo.Table, stderr io.Writer) (j info.Joins, err error) {
	connections := slices.Contains(tables, rdsinfo.Connections)
	if o.procs && slices.Contains(tables, rdsinfo.Sockets) {
		var unseen int
		if j.Processes, unseen, err = rdsinfo.Processes(); err != nil {
			return j, err
		}
		if unseen > 0 {
			fmt.Fprintf(stderr, "rds-info: what at least %d processes have open cannot be seen: run it as root\n", unseen)
		}
	}
	if o.tcp && (connections || slices.Contains(tables, rdsinfo.TCPSockets)) {
		health, err := rdsinfo.ReadTCPHealth(ctx, cfg)
		if err != nil {
			return j, explainTCPInfo(err)
		}
		j.TCP = info.NewTCPJoin(health)
	}
	if o.route && connections {
		// An absent table is told of where it is printed.
		rows, _ := s.Connections()
		j.Routes = info.NewRouteJoin(rdsinfo.Peers(ctx, cfg, rows))
	}
	if o.rdma && (connections || slices.Contains(tables, rdsinfo.IBConnections)) {
		ports, err := rdsinfo.RDMAPorts(ctx, info.RDMAAddresses(s)...)
		if err != nil {
			return j, err
		}
		connections, err := rdsinfo.RDMAConnections(ctx)
		if err != nil {
			return j, err
		}
		j.RDMA = info.NewRDMAJoin(ports, connections)
	}
	j.Names = o.names(ctx, s, tables)
	return j, nil
}

// stored has what was asked for from a bundle.
func (o *joinOptions) stored(ctx context.Context, b *rdsinfo.Bundle, tables []rdsinfo.Table) (j info.Joins, err error) {
	if o.tcp {
		if b.TCPHealth == nil {
			return j, errors.New("the bundle does not tell how TCP fares: take it by rds-info snapshot --tcp-info")
		}
		j.TCP = info.NewTCPJoin(b.TCPHealth)
	}
	if o.route {
		j.Routes = info.NewRouteJoin(b.Peers)
	}
	if o.rdma {
		j.RDMA = info.NewRDMAJoin(b.RDMAPorts, b.RDMAConnections)
	}
	j.Names = o.names(ctx, b.Snapshot, tables)
	return j, nil
}

func (o *joinOptions) names(ctx context.Context, s *rdsinfo.Snapshot, tables []rdsinfo.Table) map[netip.Addr]string {
	if !o.resolve {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	return info.ResolveNames(ctx, info.RemoteAddresses(s, tables))
}

// explainTCPInfo says what keeps the kernel from telling how TCP fares.
func explainTCPInfo(err error) error {
	hint := ""
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EPROTONOSUPPORT) {
		hint = ": the kernel has no module tcp_diag, or may not load it; try modprobe tcp_diag, or leave out --tcp-info"
	}
	return fmt.Errorf("how TCP fares cannot be told: %w%s", err, hint)
}
