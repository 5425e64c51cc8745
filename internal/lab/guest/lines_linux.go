package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/rdskit/rdskit/internal/lab/job"
	"golang.org/x/sys/unix"
)

// The lines that join guest and launcher.
type lines struct {
	files [job.NumLines]*os.File

	mu  sync.Mutex // guards enc
	enc *json.Encoder

	// What the launcher says.
	signals  chan syscall.Signal
	stdinEOF chan int64
	goAhead  chan struct{} // closed when the other machines are ready, too
	stop     chan struct{} // closed when the others do not need this machine any more
	calls    chan *job.Call
	resized  chan job.WindowSize
}

func openLines() (*lines, error) {
	l := &lines{
		signals:  make(chan syscall.Signal),
		stdinEOF: make(chan int64, 1),
		goAhead:  make(chan struct{}),
		stop:     make(chan struct{}),
		calls:    make(chan *job.Call),
		resized:  make(chan job.WindowSize, 1),
	}
	ports, err := virtioPorts()
	if err != nil {
		return nil, err
	}
	for line := range job.NumLines {
		path := ports[job.PortPrefix+line.String()]
		if path == "" {
			path = fmt.Sprintf("/dev/ttyS%d", line)
		}
		if l.files[line], err = openLine(path); err != nil {
			return nil, fmt.Errorf("line %s: %w", line, err)
		}
	}
	l.enc = json.NewEncoder(l.files[job.Control])
	go l.receive()
	return l, nil
}

// virtioPorts finds the devices of virtio serial ports by their names.
func virtioPorts() (map[string]string, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	ports := map[string]string{}
	for _, file := range names {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		ports[strings.TrimSpace(string(b))] = filepath.Join("/dev", filepath.Base(filepath.Dir(file)))
	}
	return ports, nil
}

// openLine opens a line for blocking calls, which cost the guest less than the
// runtime's poller, and makes it transparent if it is a terminal.
func openLine(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := makeRaw(fd); err != nil && !errors.Is(err, unix.ENOTTY) {
		return nil, fmt.Errorf("%s: make raw: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
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

// receive hands on what the launcher says. A launcher that is gone, its keeper too,
// is the end of the machine.
func (l *lines) receive() {
	dec := json.NewDecoder(l.files[job.Control])
	for {
		var m job.Message
		if err := dec.Decode(&m); err != nil {
			console("control line: %v", err)
			powerOff()
		}
		switch {
		case m.Signal != 0:
			l.signals <- syscall.Signal(m.Signal)
		case m.StdinEOF != nil:
			l.stdinEOF <- *m.StdinEOF
		case m.WindowSize != nil:
			select {
			case <-l.resized: // an older one
			default:
			}
			l.resized <- *m.WindowSize
		case m.Go:
			close(l.goAhead)
		case m.Stop:
			close(l.stop)
		case m.Call != nil:
			l.calls <- m.Call
		}
	}
}

func (l *lines) send(m job.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enc.Encode(m)
}

// finish tells the launcher that all is written, and leaves the rest to it: what
// the machine still holds in its lines would be lost if it powered off.
func (l *lines) finish(d *job.Done) error {
	if err := l.send(job.Message{Done: d}); err != nil {
		return err
	}
	select {}
}
