package stress

import (
	"syscall"
	"time"
)

const (
	// connectPatience is how long the kernel may refuse to register memory, which it does while there
	// is no connection, or the device has nothing free.
	connectPatience = 10 * time.Second
	minHold         = time.Millisecond
	maxHold         = 100 * time.Millisecond
	// pongPatience is how long the peer's kernel may take to answer before memory is registered all the same: it may
	// not answer pings.
	pongPatience = 2 * time.Second
)

// A connection is what a worker knows of the kernel's, on which it registers memory along with requests.
//
// That must not be done on one that is just being made: sendmsg(2) may then never return, nor its thread be
// killed (net/rds/ib_frmr.c:rds_ib_post_reg_frmr waits for a report of the device that was dropped). So when it is
// known to be broken, requests wait for the answer to a ping.
type connection struct {
	broken   bool          // and no answer has come since
	pinged   time.Duration // when it was asked for an answer; 0 if it is still to be
	held     time.Duration // until when nothing is tried
	refused  time.Duration // when the kernel refused first
	refusals int           // since it took something
}

// breaks notes that the connection is broken.
func (c *connection) breaks() {
	if !c.broken {
		c.broken, c.pinged = true, 0
	}
}

// answered notes that the peer's kernel answered a ping.
func (c *connection) answered() { c.broken = false }

// took notes that the kernel took a message that registers memory.
func (c *connection) took() { c.refusals, c.refused = 0, 0 }

// hold says whether a message that registers memory and was refused is to be tried again later, rather than
// when the send buffer has room: for EAGAIN, it does so as well when it could register no memory.
func (c *connection) hold(errno syscall.Errno, now time.Duration) bool {
	switch errno {
	case syscall.EAGAIN:
		if c.refusals++; c.refusals == 1 {
			return false
		}
		c.breaks()
	case syscall.EINVAL: // the queue pair is not, or no longer, connected
		c.refusals++
		c.breaks()
	case syscall.EBUSY: // the region is not free yet
		c.refusals++
	default:
		return false
	}
	if c.refused == 0 {
		c.refused = now
	}
	if errno != syscall.EAGAIN && now-c.refused > connectPatience {
		return false
	}
	c.held = now + min(minHold<<min(c.refusals-1, 10), maxHold)
	return true
}

// ready reports whether memory may be registered now. ping sends one, and reports whether it could.
func (c *connection) ready(now time.Duration, ping func() bool) bool {
	if now < c.held {
		return false
	}
	c.held = 0
	if !c.broken {
		return true
	}
	switch {
	case c.pinged > 0:
		c.broken = now-c.pinged < pongPatience
	case ping():
		c.pinged = now
	default:
		c.held = now + maxHold
	}
	return !c.broken
}
