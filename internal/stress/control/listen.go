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
	l      *net.TCPListener
	cfg    ListenConfig
	mu     sync.Mutex // of cfg.Dropped
	offers chan *Offer
	slots  chan struct{}
	ctx    context.Context // done when the Listener is closed
	cancel context.CancelFunc
	all    sync.WaitGroup
}

// A ListenConfig says who may connect, and who hears of it.
type ListenConfig struct {
	// NetNS is the descriptor of a network namespace, 0 for that of the calling thread.
	NetNS int
	// Allow limits who may connect, if it is not empty.
	Allow []netip.Prefix
	// Dropped, if not nil, hears of each connection that comes to nothing, one at a time.
	Dropped func(from netip.AddrPort, why error)
	// Waiting, if not nil, is called once a second for each peer of rdskit that has not been accepted yet, to tell it so.
	Waiting func(*Conn) error
}

// An Offer is a peer that has sent its options. One of rdskit has been answered.
type Offer struct {
	*Conn
	Options wire.Options
	Form    wire.Form
}

// Listen opens the control port; an invalid address is every address of this host.
func (cfg ListenConfig) Listen(ctx context.Context, local netip.Addr, port uint16) (*Listener, error) {
	network, host := "tcp", ""
	if local.IsValid() {
		host = local.String()
		network = "tcp6"
		if local.Is4() {
			network = "tcp4"
		}
	}
	var nl net.Listener
	err := netns.Do(cfg.NetNS, func() (err error) {
		nl, err = (&net.ListenConfig{}).Listen(ctx, network, net.JoinHostPort(host, fmt.Sprint(port)))
		return err
	})
	if err != nil {
		return nil, err
	}
	l := &Listener{l: nl.(*net.TCPListener), cfg: cfg, offers: make(chan *Offer), slots: make(chan struct{}, maxHandshakes)}
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

func (l *Listener) dropped(from netip.AddrPort, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Dropped != nil {
		l.cfg.Dropped(from, why)
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
	allowed := len(l.cfg.Allow) == 0
	for _, p := range l.cfg.Allow {
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
	offer, err := receiveOffer(c)
	if !stop() {
		return
	}
	if err == nil {
		err = l.hand(offer)
	}
	if err != nil {
		l.dropped(c.RemoteAddr(), err)
		c.Close()
	}
}

// receiveOffer has a peer of rdskit answered before its turn has come, so that it need not wait for that in the dark.
func receiveOffer(c *Conn) (*Offer, error) {
	options, form, err := c.ReceiveOptions()
	if err == nil && options.Sender == wire.SenderRDSKit {
		if _, err = c.WaitGo(int(options.Tasks)); err == nil {
			err = c.Ready(0, true)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Offer{c, *options, form}, nil
}

// hand waits until the offer is accepted.
func (l *Listener) hand(o *Offer) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case l.offers <- o:
			return nil
		case <-l.ctx.Done():
			return o.Close()
		case <-second.C:
		}
		if o.Options.Sender == wire.SenderRDSKit && l.cfg.Waiting != nil {
			if err := l.cfg.Waiting(o.Conn); err != nil {
				return err
			}
		}
	}
}
