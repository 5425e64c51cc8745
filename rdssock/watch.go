package rdssock

import (
	"net"
	"sync"

	"github.com/rdskit/rdskit/internal/sys"
)

// watches are a duplicate of the descriptor and the two directions in which it
// is waited on. It has a place of its own in the runtime's poller, so that
// waiting there neither takes the locks of the Conn's own reads and writes nor
// misses edges that these consume. It is made when somebody first waits.
type watches struct {
	mu     sync.Mutex
	closed bool
	dup    *sys.Socket
	read   *watch
	write  *watch
}

// open returns both watches, made by the first call.
func (ws *watches) open(c *Conn) (read, write *watch, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return nil, nil, net.ErrClosed
	}
	if ws.dup == nil {
		dup, err := c.sock.Dup()
		if err != nil {
			return nil, nil, err
		}
		peek := newPeekOp(c)
		ws.dup = dup
		ws.read = newWatch(dup.Raw().Read, dup.SetReadDeadline, peek.learn)
		ws.write = newWatch(dup.Raw().Write, dup.SetWriteDeadline, func(fd uintptr) {
			if sys.Writable(fd) {
				c.waiters.each(event{kind: eventWritable}, ws.write.wake)
			}
		})
	}
	return ws.read, ws.write, nil
}

// current returns the watches if there are any.
func (ws *watches) current() (read, write *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.read, ws.write
}

// interrupt makes the leaders look at their deadlines.
func (ws *watches) interrupt() {
	read, write := ws.current()
	if read != nil {
		read.interrupt()
		write.interrupt()
	}
}

func (ws *watches) close() {
	ws.mu.Lock()
	ws.closed = true
	dup := ws.dup
	ws.mu.Unlock()
	// Closing waits for the leaders, who need the lock on their way out.
	if dup != nil {
		dup.Close()
	}
}
