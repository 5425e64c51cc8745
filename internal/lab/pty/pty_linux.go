// Package pty makes pseudo-terminals: see pty(7).
package pty

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open makes a pseudo-terminal. The master is in the runtime's poller, and has deadlines.
func Open() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	var n uint32
	err = control(master, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	return master, slave, err
}

// Resize gives a terminal a size in characters. The kernel tells the processes on it.
func Resize(f *os.File, rows, columns uint16) error {
	return control(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
}

// control calls f with the descriptor of a file that stays in the runtime's poller.
func control(file *os.File, f func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if err := conn.Control(func(fd uintptr) { ferr = f(int(fd)) }); err != nil {
		return err
	}
	return os.NewSyscallError("ioctl", ferr)
}
