package nlconn

import (
	"context"
	"errors"
	"time"

	"github.com/mdlayher/netlink"
)

// A Conn is a netlink socket, used for a few questions and closed.
type Conn struct {
	*netlink.Conn
	stop func() bool
}

// Dial opens a socket of a netlink protocol in the network namespace that netns, a descriptor,
// refers to; 0 is that of the calling thread. Cancelling ctx ends the exchanges on it.
func Dial(ctx context.Context, protocol, netns int) (*Conn, error) {
	conn, err := netlink.Dial(protocol, &netlink.Config{NetNS: netns})
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return &Conn{conn, stop}, nil
}

// Close closes the socket.
func (c *Conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// maxDumps bounds how often a dump is asked for again because the table changed
// meanwhile.
const maxDumps = 10

var errChanging = errors.New("the table keeps changing while it is read")

// Ask asks one question and returns the data of the replies of the type wanted.
func (c *Conn) Ask(typ, want netlink.HeaderType, flags netlink.HeaderFlags, request []byte) ([][]byte, error) {
	m := netlink.Message{Header: netlink.Header{Type: typ, Flags: netlink.Request | flags}, Data: request}
next:
	for range maxDumps {
		replies, err := c.Execute(m)
		if err != nil {
			return nil, err
		}
		data := make([][]byte, 0, len(replies))
		for _, r := range replies {
			if r.Header.Flags&netlink.DumpInterrupted != 0 {
				continue next
			}
			if r.Header.Type == want {
				data = append(data, r.Data)
			}
		}
		return data, nil
	}
	return nil, errChanging
}
