package guest

import (
	"fmt"
	"os"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
	"golang.org/x/sys/unix"
)

// startOnTerminal starts the process on a terminal of its own, which controls it.
func (c *command) startOnTerminal(p *process, size job.WindowSize, resized <-chan job.WindowSize, children *reaper) error {
	master, slave, err := openTerminal()
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer slave.Close()
	resize(master, size)
	p.files, p.tty = []*os.File{slave, slave, slave}, true
	if c.pid, c.ended, err = children.start(p); err != nil {
		return err
	}
	c.stdin, c.stdout = master, &output{r: master, grace: 300 * time.Millisecond}
	go func() {
		for size := range resized {
			resize(master, size)
		}
	}()
	return nil
}

func openTerminal() (master, slave *os.File, err error) {
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

// resize gives the terminal a size. The kernel tells the processes on it.
func resize(master *os.File, size job.WindowSize) {
	control(master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
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
	return ferr
}
