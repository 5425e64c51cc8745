package route

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/mdlayher/netlink"

	"github.com/rdskit/rdskit/internal/nlconn"
)

// A client is one rtnetlink socket, used for one question and closed.
//
// Messages are packed and unpacked by package rtnetlink, but exchanged here: its
// services take for granted that every reply is of the type asked for, and do
// not notice a dump that was interrupted by a change.
type client struct {
	conn *nlconn.Conn
}

func dial(ctx context.Context, netns int) (_ *client, close func(), _ error) {
	conn, err := nlconn.Dial(ctx, syscall.NETLINK_ROUTE, netns)
	if err != nil {
		return nil, nil, err
	}
	return &client{conn}, func() { conn.Close() }, nil
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

// get asks one question and returns the data of the replies of the type wanted.
func (c *client) get(typ, want netlink.HeaderType, flags netlink.HeaderFlags, req ...encoding.BinaryMarshaler) ([][]byte, error) {
	var request []byte
	for _, part := range req {
		b, err := part.MarshalBinary()
		if err != nil {
			return nil, err
		}
		request = append(request, b...)
	}
	return c.conn.Ask(typ, want, flags, request)
}

// attributes encodes what package rtnetlink has no field for.
type attributes func(*netlink.AttributeEncoder)

func (f attributes) MarshalBinary() ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	f(ae)
	return ae.Encode()
}
