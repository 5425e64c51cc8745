package route

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
)

// A client is one rtnetlink socket, used for one question and closed.
//
// Messages are packed and unpacked by package rtnetlink, but exchanged here: its
// services take for granted that every reply is of the type asked for, and do
// not notice a dump that was interrupted by a change.
type client struct {
	conn *netlink.Conn
}

// dial opens an rtnetlink socket in the network namespace netns. Cancelling ctx
// ends the exchanges on it; close must be called.
func dial(ctx context.Context, netns int) (_ *client, close func(), _ error) {
	conn, err := netlink.Dial(syscall.NETLINK_ROUTE, &netlink.Config{NetNS: netns})
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return &client{conn}, func() { stop(); conn.Close() }, nil
}

// dialError explains why no rtnetlink socket could be had.
func dialError(err error) error {
	if isSyscall(err, "setns") {
		return netnsError(err)
	}
	return fmt.Errorf("route: rtnetlink socket: %w", err)
}

func netnsError(err error) error {
	return fmt.Errorf("route: entering the network namespace needs CAP_SYS_ADMIN and a descriptor of a namespace: %w", err)
}

// refused reports whether err says that this process may not use rtnetlink at
// all, as under a seccomp filter, rather than that rtnetlink answered no: the
// errno of an answer comes without os.SyscallError.
func refused(err error) bool {
	if se, ok := errors.AsType[*os.SyscallError](err); !ok || se.Syscall == "setns" {
		return false
	}
	for _, errno := range []error{
		syscall.EPERM, syscall.EACCES, syscall.ENOSYS,
		syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ESOCKTNOSUPPORT,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func isSyscall(err error, name string) bool {
	se, ok := errors.AsType[*os.SyscallError](err)
	return ok && se.Syscall == name
}

// maxDumps bounds how often a dump is asked for again because the table changed
// meanwhile.
const maxDumps = 10

var errChanging = errors.New("the table keeps changing while it is read")

// get asks one question and returns the data of the replies of the type wanted.
func (c *client) get(typ, want netlink.HeaderType, flags netlink.HeaderFlags, req ...encoding.BinaryMarshaler) ([][]byte, error) {
	m := netlink.Message{Header: netlink.Header{Type: typ, Flags: netlink.Request | flags}}
	for _, part := range req {
		b, err := part.MarshalBinary()
		if err != nil {
			return nil, err
		}
		m.Data = append(m.Data, b...)
	}
next:
	for range maxDumps {
		replies, err := c.conn.Execute(m)
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

// attributes encodes what package rtnetlink has no field for.
type attributes func(*netlink.AttributeEncoder)

func (f attributes) MarshalBinary() ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	f(ae)
	return ae.Encode()
}
