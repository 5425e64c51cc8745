//go:build linux

package main

import (
	"fmt"
	"syscall"
)

// A crowd is RDS sockets and connections for programs to look at. They stay until compare
// ends.
type crowd struct {
	sockets, connections int
}

const afRDS = 21 // linux/socket.h

// open makes the crowd: sockets on 127.0.0.1, and from there connections to other
// addresses of 127.0.0.0/8.
func (c crowd) open() error {
	if c.sockets == 0 && c.connections == 0 {
		return nil
	}
	limit := syscall.Rlimit{Cur: uint64(c.sockets) + 1000, Max: uint64(c.sockets) + 1000}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("a limit of %d open files: %w", limit.Cur, err)
	}
	var socket int
	for i := range max(c.sockets, 1) {
		var err error
		if socket, err = syscall.Socket(afRDS, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0); err != nil {
			return fmt.Errorf("socket %d: %w", i, err)
		}
		if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return fmt.Errorf("socket %d: bind: %w", i, err)
		}
	}
	for i := range c.connections {
		// Port 0 is a ping: nothing waits to be read.
		to := &syscall.SockaddrInet4{Addr: [4]byte{127, 1, byte(i >> 8), byte(i)}}
		if err := syscall.Sendto(socket, nil, 0, to); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return nil
}
