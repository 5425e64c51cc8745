package stress

import (
	"syscall"
	"testing"
	"time"
)

func TestMemoryIsRegisteredOnAConnectionThatHasAnswered(t *testing.T) {
	const ms = time.Millisecond
	var c connection
	pings, sent := 0, true
	ping := func() bool { pings++; return sent }
	expect := func(now time.Duration, ready bool, n int) {
		t.Helper()
		if got := c.ready(now, ping); got != ready || pings != n {
			t.Errorf("after %v ready is %v after %d pings, want %v after %d", now, got, pings, ready, n)
		}
	}
	expect(1*ms, true, 0)
	if c.hold(syscall.EAGAIN, 1*ms) {
		t.Error("the first EAGAIN is taken for more than a full send buffer")
	}
	expect(1*ms, true, 0)
	if !c.hold(syscall.EAGAIN, 1*ms) {
		t.Error("the second EAGAIN is taken for a full send buffer")
	}
	expect(2*ms, false, 0)
	expect(4*ms, false, 1)
	expect(500*ms, false, 1)
	c.answered()
	expect(500*ms, true, 1)
	c.took()

	c.breaks()
	sent = false
	expect(600*ms, false, 2)
	expect(650*ms, false, 2)
	sent = true
	expect(700*ms, false, 3)
	c.breaks() // by the next operation of those that were under way
	expect(800*ms, false, 3)
	expect(700*ms+pongPatience, true, 3)

	for _, errno := range []syscall.Errno{syscall.EINVAL, syscall.EBUSY} {
		c = connection{}
		if !c.hold(errno, 1*ms) || !c.hold(errno, 2*ms) || c.hold(errno, 2*ms+connectPatience) {
			t.Errorf("%v is not tried again for %v", errno, connectPatience)
		}
	}
	if c.hold(syscall.EMSGSIZE, 1*ms) {
		t.Error("EMSGSIZE is tried again")
	}
}
