package lab

import (
	"bufio"
	"io"
	"sync"
	"time"
)

// A console keeps the end of what the machine's kernel, and the machine
// itself, say.
type console struct {
	mu    sync.Mutex
	lines []string
	eof   chan struct{}
}

const (
	consoleKept  = 200
	consoleShown = 40
)

func readConsole(r io.ReadCloser) *console {
	c := &console{eof: make(chan struct{})}
	go func() {
		defer close(c.eof)
		defer r.Close()
		for br := bufio.NewReader(r); ; {
			line, _, err := br.ReadLine() // of an endless line, the pieces
			if len(line) > 0 {
				c.add(string(line))
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

func (c *console) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lines) == consoleKept {
		copy(c.lines, c.lines[1:])
		c.lines = c.lines[:consoleKept-1]
	}
	c.lines = append(c.lines, line)
}

// tail is the end of what was said. When the machine is gone it waits
// a moment for the last words.
func (c *console) tail() []string {
	select {
	case <-c.eof:
	case <-time.After(100 * time.Millisecond):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.lines[max(0, len(c.lines)-consoleShown):]...)
}
