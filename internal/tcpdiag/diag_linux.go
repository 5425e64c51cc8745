package tcpdiag

import (
	"context"
	"encoding/binary"
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

// What to ask for, of linux/inet_diag.h and include/net/tcp_states.h.
const (
	sizeofRequest = 56 // struct inet_diag_req_v2
	protocolTCP   = 6

	// idiag_ext has a bit for each attribute, counted from 1.
	extensions = 1<<(attrInfo-1) | 1<<(attrCong-1)

	stateTimeWait   = 6
	stateClose      = 7
	stateListen     = 10
	stateNewSynRecv = 12

	allStates = 1<<(stateNewSynRecv+1) - 1
	wanted    = allStates &^ (1<<0 | 1<<stateTimeWait | 1<<stateClose | 1<<stateListen)
)

// request packs a struct inet_diag_req_v2 for the sockets of a family with these ports; 0 is any.
func request(family uint8, localPort, remotePort uint16) []byte {
	b := make([]byte, sizeofRequest)
	b[0], b[1], b[2] = family, protocolTCP, extensions
	binary.NativeEndian.PutUint32(b[4:], wanted)
	binary.BigEndian.PutUint16(b[8:], localPort)
	binary.BigEndian.PutUint16(b[10:], remotePort)
	return b
}

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
