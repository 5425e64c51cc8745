package lab

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rdskit/rdskit/internal/lab/job"
)

// A wire is the cable between the Ethernet devices of two machines: it takes the frames of one
// to the other, as long as it is not cut. As in a switch, frames for a machine that does not
// take them are lost, and a machine does not see what became of the other.
type wire struct {
	cut  atomic.Bool
	ends [job.MaxMachines]chan []byte // frames to the machine, with their lengths
}

const (
	wireQueue = 4096     // frames that wait for a machine
	maxFrame  = 68 << 10 // NET_BUFSIZE of QEMU
)

func newWire() *wire {
	w := new(wire)
	for i := range w.ends {
		w.ends[i] = make(chan []byte, wireQueue)
	}
	return w
}

// attach connects machine n, until f is closed. QEMU puts a length of four bytes before each
// frame (net/socket.c).
func (w *wire) attach(n int, f *os.File) *sync.WaitGroup {
	mine, others := w.ends[n-1], w.ends[job.MaxMachines-n]
	for len(mine) > 0 {
		<-mine // for the machine that was there before
	}
	var done sync.WaitGroup
	gone := make(chan struct{})
	done.Go(func() {
		defer close(gone)
		for r := bufio.NewReaderSize(f, maxFrame); ; {
			frame, err := readFrame(r)
			if err != nil {
				return
			}
			if w.cut.Load() {
				continue
			}
			select {
			case others <- frame:
			default:
			}
		}
	})
	done.Go(func() {
		for {
			select {
			case frame := <-mine:
				if _, err := f.Write(frame); err != nil {
					return
				}
			case <-gone:
				return
			}
		}
	})
	return &done
}

// readFrame reads a frame, and returns it with its length before it.
func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	frame := make([]byte, 4+n)
	copy(frame, size[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}
