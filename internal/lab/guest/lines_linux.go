package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/rdskit/rdskit/internal/lab/job"
	"golang.org/x/sys/unix"
)

// The lines that join guest and launcher: raw bytes each, except that
// control carries one JSON message per line.
type lines struct {
	control, stdin, stdout, stderr *os.File

	mu  sync.Mutex // guards enc
	enc *json.Encoder

	// What the launcher says.
	signals  chan syscall.Signal
	stdinEOF chan int64
	bye      chan struct{}
}

func openLines(profile string) (*lines, error) {
	l := &lines{
		signals:  make(chan syscall.Signal),
		stdinEOF: make(chan int64, 1),
		bye:      make(chan struct{}),
	}
	for i, f := range []**os.File{&l.control, &l.stdin, &l.stdout, &l.stderr} {
		var err error
		if *f, err = openLine(profile, i); err != nil {
			return nil, fmt.Errorf("line %d: %w", i, err)
		}
	}
	l.enc = json.NewEncoder(l.control)
	go l.receive()
	return l, nil
}

func openLine(profile string, n int) (*os.File, error) {
	// Without O_NONBLOCK: a blocking read costs the guest less than the poller.
	fd, err := unix.Open(fmt.Sprintf("/dev/ttyS%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := makeRaw(fd); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("line %d", n)), nil
}

// makeRaw takes the terminal out of a terminal: no echo, no signals, no
// translation of bytes.
func makeRaw(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// receive hands on what the launcher says until it says goodbye.
func (l *lines) receive() {
	defer close(l.bye)
	dec := json.NewDecoder(l.control)
	for {
		var m job.Message
		if err := dec.Decode(&m); err != nil {
			console("control line: %v", err)
			return
		}
		switch {
		case m.Signal != 0:
			l.signals <- syscall.Signal(m.Signal)
		case m.StdinEOF != nil:
			l.stdinEOF <- *m.StdinEOF
		case m.Bye:
			return
		}
	}
}

func (l *lines) send(m job.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enc.Encode(m)
}

// finish tells the launcher that all is written and waits until it has it all:
// what the machine still holds in its lines is lost when it powers off.
func (l *lines) finish(d *job.Done) error {
	if err := l.send(job.Message{Done: d}); err != nil {
		return err
	}
	<-l.bye
	return nil
}
