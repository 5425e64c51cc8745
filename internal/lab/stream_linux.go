package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A stream copies one of the command's outputs from its line. The line
// itself has no end that can be told from the machine's, so that the guest says at
// last how many bytes there were.
type stream struct {
	name string
	from *os.File
	to   io.Writer

	mu    sync.Mutex
	n     int64
	total int64 // -1 until it is known
	err   error // of writing
	done  chan struct{}
}

func copyStream(name string, from *os.File, to io.Writer) *stream {
	s := &stream{name: name, from: from, to: to, total: -1, done: make(chan struct{})}
	go s.copy()
	return s
}

func (s *stream) copy() {
	defer close(s.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := s.from.Read(buf)
		if s.add(buf[:n]) || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// add hands on what came and tells whether it was all.
func (s *stream) add(b []byte) bool {
	if len(b) > 0 && s.err == nil {
		// After an error the line is still emptied, or the guest would wait.
		_, s.err = s.to.Write(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += int64(len(b))
	return s.total >= 0 && s.n >= s.total
}

// end says how many bytes there are in all. What was written before is in the
// line already, or was read.
func (s *stream) end(total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total = total
	if s.n >= total {
		s.from.SetReadDeadline(time.Unix(1, 0)) // wake copy
	}
}

// check tells, after done, whether all bytes came through.
func (s *stream) check() error {
	if s.err != nil {
		return fmt.Errorf("%s of the command: %w", s.name, s.err)
	}
	if s.n != s.total {
		return fmt.Errorf("%s of the command: the machine wrote %d bytes, and %d came", s.name, s.total, s.n)
	}
	return nil
}
