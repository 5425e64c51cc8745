package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/netns"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// maxHandshakes bounds how many peers may be about to send their options.
const maxHandshakes = 64

// A Listener takes peers in that send options. Connections that do not are
// dropped, without ending it or holding others up.
type Listener struct {
	l       *net.TCPListener
	allow   []netip.Prefix
	dropped func(from netip.AddrPort, why error)
	offers  chan *Offer
	slots   chan struct{}
	ctx     context.Context // done when the Listener is closed
	cancel  context.CancelFunc
	all     sync.WaitGroup
}

// An Offer is a peer that has sent its options.
type Offer struct {
	*Conn
	Options wire.Options
	Form    wire.Form
}

// Listen opens the control port; an invalid address is every address of this host. allow limits
// who may connect, if it is not empty. dropped hears of each connection that comes to nothing, one at
// a time.
//
// netnsFD is the descriptor of a network namespace, 0 for that of the calling thread.
func Listen(ctx context.Context, netnsFD int, local netip.Addr, port uint16, allow []netip.Prefix, dropped func(from netip.AddrPort, why error)) (*Listener, error) {
	network, host := "tcp", ""
	if local.IsValid() {
		host = local.String()
		network = "tcp6"
		if local.Is4() {
			network = "tcp4"
		}
	}
	var nl net.Listener
	err := netns.Do(netnsFD, func() (err error) {
		nl, err = (&net.ListenConfig{}).Listen(ctx, network, net.JoinHostPort(host, fmt.Sprint(port)))
		return err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	l := &Listener{
		l: nl.(*net.TCPListener), allow: allow,
		dropped: func(from netip.AddrPort, why error) {
			mu.Lock()
			defer mu.Unlock()
			if dropped != nil {
				dropped(from, why)
			}
		},
		offers: make(chan *Offer), slots: make(chan struct{}, maxHandshakes),
	}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.all.Go(l.accept)
	return l, nil
}

// Addr is where it listens.
func (l *Listener) Addr() netip.AddrPort { return addrPort(l.l.Addr()) }

// Close ends it, and the connections that it has not handed out. It may be called again.
func (l *Listener) Close() error {
	l.cancel()
	err := l.l.Close()
	l.all.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Accept waits for a peer with options.
func (l *Listener) Accept(ctx context.Context) (*Offer, error) {
	select {
	case o := <-l.offers:
		return o, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Drop closes the connection of an offer that cannot be taken up, and says why.
func (l *Listener) Drop(o *Offer, why error) {
	l.dropped(o.RemoteAddr(), why)
	o.Close()
}

func (l *Listener) accept() {
	for {
		nc, err := l.l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Out of descriptors or memory: others have to give some back first.
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-l.ctx.Done():
				return
			}
		}
		c := NewConn(nc)
		if err := l.admit(c); err != nil {
			l.dropped(c.RemoteAddr(), err)
			c.Close()
			continue
		}
		l.all.Go(func() {
			defer func() { <-l.slots }()
			l.handshake(c)
		})
	}
}

// errBusy says that too many connections are open.
var errBusy = errors.New("too many connections have sent no options yet")

// admit takes one of the slots.
func (l *Listener) admit(c *Conn) error {
	from := c.RemoteAddr().Addr()
	allowed := len(l.allow) == 0
	for _, p := range l.allow {
		allowed = allowed || p.Contains(from.WithZone(""))
	}
	if !allowed {
		return fmt.Errorf("%v is not allowed to connect: %w", from, syscall.EACCES)
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
		return errBusy
	}
}

func (l *Listener) handshake(c *Conn) {
	stop := context.AfterFunc(l.ctx, func() { c.Close() })
	options, form, err := c.ReceiveOptions()
	if !stop() {
		return
	}
	if err != nil {
		l.dropped(c.RemoteAddr(), err)
		c.Close()
		return
	}
	select {
	case l.offers <- &Offer{c, *options, form}:
	case <-l.ctx.Done():
		c.Close()
	}
}
