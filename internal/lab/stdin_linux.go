package lab

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Stdin is what a command reads that has f for its stdin: nil, the null
// device, if f is that, is closed, or is the terminal of another job, which
// would stop whoever reads it.
func Stdin(f *os.File) io.Reader {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(info, null) {
		return nil
	}
	foreground, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	if err == nil && foreground != unix.Getpgrp() {
		return nil
	}
	return f
}
