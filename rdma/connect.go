package rdma

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/sys"
	"github.com/rdskit/rdskit/rdssock"
)

const (
	// connectPatience is for how long EINVAL is taken to mean that the connection is being made.
	connectPatience = 10 * time.Second

	// answerPatience is how long an answer may take before it is asked for again.
	answerPatience = time.Second

	firstDelay, lastDelay = time.Millisecond, 100 * time.Millisecond
)

// connect makes the connection to an address carry a message and its answer, unless
// one is known to have; fresh is that it was not.
//
// Memory must not be registered earlier: sendmsg(2) then never returns, nor can its
// thread be killed. The kernel waits for the device to report the registration, but
// takes no reports between the device being connected and RDS being so, if there was
// a connection before (net/rds/ib_cm.c:rds_ib_tasklet_fn_send, i_cq_quiesce). Soft RoCE
// of Linux 6.1 makes none if a message before the registration found no receive
// buffer at the peer, as the first of a connection may
// (drivers/infiniband/sw/rxe/rxe_req.c:req_retry has the registration done twice).
func (c *Conn) connect(ctx context.Context, peer netip.Addr) (fresh bool, err error) {
	peer = peer.Unmap()
	c.mu.Lock()
	connected := c.connected[peer]
	c.mu.Unlock()
	if connected {
		return false, nil
	}
	if err := c.ping(ctx, peer); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected[peer] = true
	return true, nil
}

func (c *Conn) disconnected(peer netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.connected, peer.Unmap())
}

// ping sends an empty message to port 0, which the peer's kernel answers, from a socket
// of its own on the same connection.
func (c *Conn) ping(ctx context.Context, peer netip.Addr) error {
	tos, err := c.sock.TOS()
	if err != nil {
		return err
	}
	sock, err := rdssock.Listen(netip.AddrPortFrom(c.self.Addr(), 0), &rdssock.Config{Transport: c.sock.Transport(), TOS: tos})
	if err != nil {
		return err
	}
	defer sock.Close()
	for {
		if _, _, err := sock.WriteMsgContext(ctx, nil, nil, netip.AddrPortFrom(peer, 0)); err != nil {
			return err
		}
		answer, cancel := context.WithTimeout(ctx, answerPatience)
		_, _, _, _, err := sock.ReadMsgContext(answer, nil, nil)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return &hintError{err: ctx.Err(), hint: fmt.Sprintf("no RDMA connection to %v yet", peer)}
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// writeConnected sends a message that registers memory, on a connection.
func (c *Conn) writeConnected(ctx context.Context, payload, control []byte, peer netip.AddrPort) error {
	var began time.Time
	for delay := firstDelay; ; delay = min(2*delay, lastDelay) {
		fresh, err := c.connect(ctx, peer.Addr())
		if err != nil {
			return err
		}
		_, _, err = c.sock.TryWriteMsgAddrPort(payload, control, peer)
		var name string
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.EAGAIN) && (fresh || !c.writable()):
			// It is for room that it waits.
			_, _, err := c.sock.WriteMsgContext(ctx, payload, control, peer)
			return err
		case errors.Is(err, syscall.EAGAIN): // there is no queue pair
			name = "EAGAIN"
		case errors.Is(err, syscall.EINVAL): // there is one that is not connected (net/rds/ib_frmr.c:rds_ib_post_reg_frmr)
			name = "EINVAL"
			if began.IsZero() {
				began = time.Now()
			}
			if time.Since(began) > connectPatience {
				return err
			}
		default:
			return err
		}
		c.disconnected(peer.Addr())
		if err := pause(ctx, delay); err != nil {
			return &hintError{err: err, hint: fmt.Sprintf("no RDMA connection to %v yet (%s)", peer.Addr(), name)}
		}
	}
}

// writable is whether the send buffer has room.
func (c *Conn) writable() (room bool) {
	_ = c.raw.Control(func(fd uintptr) { room = sys.Writable(fd) })
	return room
}
