//go:build unix

package stress

import (
	"net"
	"os"
	"syscall"
)

// socketPair returns two connected sockets. Unlike the ends of net.Pipe, both can be written to before either
// is read.
func socketPair() (a, b net.Conn, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if a, err = fileConn(fds[0]); err != nil {
		syscall.Close(fds[1])
		return nil, nil, err
	}
	if b, err = fileConn(fds[1]); err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// fileConn takes over a descriptor.
func fileConn(fd int) (net.Conn, error) {
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "control")
	defer f.Close()
	return net.FileConn(f)
}
