package rdmadev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/mdlayher/netlink"
)

// ErrNoRDMA says that the kernel has no RDMA subsystem: ib_core is not loaded.
var ErrNoRDMA = errors.New("this kernel has no RDMA subsystem (module ib_core)")

// A Client asks the kernel about RDMA devices. Its methods may not be called at the same time.
type Client struct {
	conn conn
	sys  string // where sysfs is
}

// conn is what a Client needs of an nlconn.Conn.
type conn interface {
	Ask(typ, want netlink.HeaderType, flags netlink.HeaderFlags, request []byte) ([][]byte, error)
	Close() error
}

// Dial opens an RDMA netlink socket. It takes no rights. Cancelling ctx ends what is
// asked on it. The error is [ErrNoRDMA] where there can be no devices; a socket would
// load the subsystem.
func Dial(ctx context.Context) (*Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rdmadev: %w", err)
	}
	c := &Client{sys: "/sys"}
	if _, err := os.Stat(c.class()); err != nil {
		return nil, fmt.Errorf("rdmadev: %w", ErrNoRDMA)
	}
	var err error
	if c.conn, err = dial(ctx); err != nil {
		return nil, fmt.Errorf("rdmadev: RDMA netlink socket: %w", err)
	}
	return c, nil
}

// Close closes the socket.
func (c *Client) Close() error { return c.conn.Close() }

// class is the directory of the devices in sysfs, by elements below it.
func (c *Client) class(elem ...string) string {
	return filepath.Join(slices.Concat([]string{c.sys, "class/infiniband"}, elem)...)
}

// A command is one of enum rdma_nldev_command.
type command uint16

const (
	cmdGet        command = 1
	cmdPortGet    command = 5
	cmdResQPGet   command = 10
	cmdResCMIDGet command = 11
	cmdResMRGet   command = 13
	cmdGetChardev command = 15
	cmdStatGet    command = 17
)

// typeOf is the message type of a command: RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd).
func typeOf(cmd command) netlink.HeaderType { return netlink.HeaderType(5<<10 | uint16(cmd)) }

// ask sends one request and returns the data of the replies.
func (c *Client) ask(cmd command, flags netlink.HeaderFlags, attrs func(*netlink.AttributeEncoder)) ([][]byte, error) {
	ae := netlink.NewAttributeEncoder()
	if attrs != nil {
		attrs(ae)
	}
	request, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	return c.conn.Ask(typeOf(cmd), typeOf(cmd), flags, request)
}

// ofDevice is the attribute of a request about one device.
func ofDevice(index uint32) func(*netlink.AttributeEncoder) {
	return func(ae *netlink.AttributeEncoder) { ae.Uint32(attrDevIndex, index) }
}

// list asks a question about each device and decodes the answers. A device that went
// away meanwhile has nothing to say.
func list[T any](c *Client, what string, cmd command, decode func([]byte) ([]T, error)) ([]T, error) {
	devices, err := c.Devices()
	if err != nil {
		return nil, err
	}
	var all []T
	for _, d := range devices {
		data, err := c.ask(cmd, netlink.Dump, ofDevice(d.Index))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNoDevice) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("rdmadev: %s of %s: %w", what, d.Name, err)
		}
		for _, b := range data {
			items, err := decode(b)
			if err != nil {
				return nil, fmt.Errorf("rdmadev: %s of %s: %w", what, d.Name, err)
			}
			all = append(all, items...)
		}
	}
	return all, nil
}
