package tcpdiag

import (
	"context"
	"errors"
	"syscall"

	"github.com/mdlayher/netlink"

	"github.com/rdskit/rdskit/internal/nlconn"
)

// From linux/netlink.h and linux/sock_diag.h.
const (
	netlinkSockDiag  = 4  // NETLINK_SOCK_DIAG
	sockDiagByFamily = 20 // SOCK_DIAG_BY_FAMILY
)

func sockets(ctx context.Context, cfg *Config) ([]Socket, error) {
	c, err := nlconn.Dial(ctx, netlinkSockDiag, cfg.NetNS)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var all []Socket
	for _, family := range []uint8{familyIPv4, familyIPv6} {
		requests := [][]byte{request(family, cfg.Port, 0), request(family, 0, cfg.Port)}
		if cfg.Port == 0 {
			requests = requests[:1]
		}
		for i, r := range requests {
			answers, err := c.Ask(sockDiagByFamily, sockDiagByFamily, netlink.Dump, r)
			switch {
			case family == familyIPv6 && errors.Is(err, syscall.ENOENT):
				continue // no IPv6
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				return nil, err
			}
			for _, b := range answers {
				s, err := decode(b)
				if err != nil {
					return nil, err
				}
				if i == 1 && s.Local.Port() == cfg.Port {
					continue // with the port at both ends it was there before
				}
				all = append(all, s)
			}
		}
	}
	return all, nil
}
