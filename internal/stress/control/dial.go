package control

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/netns"
)

// A Dialer connects the active side to the passive side.
type Dialer struct {
	// Local is the address to connect from; an invalid one leaves it to the kernel.
	Local netip.Addr
	// NetNS is the descriptor of a network namespace, 0 for that of the calling thread.
	NetNS int
	// Retries is how often to try again, once a second, where the peer may only not be there yet.
	Retries int
	// Retrying, if not nil, hears of each failure that another try follows.
	Retrying func(err error)
}

// Dial connects to the peer.
func (d *Dialer) Dial(ctx context.Context, peer netip.AddrPort) (*Conn, error) {
	nd := net.Dialer{Timeout: 30 * time.Second}
	if d.Local.IsValid() {
		nd.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.Local, 0))
	}
	for retries := 0; ; retries++ {
		var nc net.Conn
		err := netns.Do(d.NetNS, func() (err error) {
			nc, err = nd.DialContext(ctx, "tcp", peer.String())
			return err
		})
		if err == nil {
			return NewConn(nc), nil
		}
		again := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
		if !again || retries >= d.Retries {
			return nil, err
		}
		if d.Retrying != nil {
			d.Retrying(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
