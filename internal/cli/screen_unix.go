//go:build unix

package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// Control sequences of xterm, which terminals follow.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// A Screen shows lines on the whole of a terminal. What the terminal showed
// before comes back when the Screen is closed, its context is done, or the
// process is stopped or hung up.
type Screen struct {
	terminal *os.File
	mu       sync.Mutex
	open     bool
	closed   bool
	signals  chan os.Signal
	done     chan struct{}
	ended    sync.WaitGroup
}

// OpenScreen takes the terminal.
func OpenScreen(ctx context.Context, terminal *os.File) *Screen {
	s := &Screen{terminal: terminal, signals: make(chan os.Signal, 4), done: make(chan struct{})}
	signal.Notify(s.signals, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGHUP)
	s.enter()
	s.ended.Go(func() { s.watch(ctx) })
	return s
}

// watch gives the terminal back while the process is stopped.
func (s *Screen) watch(ctx context.Context) {
	for {
		select {
		case <-s.done:
			return
		case <-ctx.Done():
			s.leave()
			return
		case sig := <-s.signals:
			switch sig {
			case syscall.SIGCONT:
				s.enter()
			case syscall.SIGTSTP:
				s.leave()
				// SIGSTOP cannot be caught: it does what SIGTSTP would have.
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			case syscall.SIGHUP:
				s.leave()
				signal.Reset(syscall.SIGHUP)
				_ = syscall.Kill(os.Getpid(), syscall.SIGHUP)
			}
		}
	}
}

func (s *Screen) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open && !s.closed {
		s.open = true
		_, _ = s.terminal.WriteString(enterScreen)
	}
}

func (s *Screen) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.open = false
		_, _ = s.terminal.WriteString(leaveScreen)
	}
}

// Size returns how many characters a line has, and how many lines there are.
func (s *Screen) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Show shows lines instead of what was there before.
func (s *Screen) Show(lines []string) error {
	text := home + strings.Join(lines, clearLine+"\r\n") + clearLine + clearBelow
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil
	}
	if _, err := s.terminal.WriteString(text); err != nil {
		return writeError(err)
	}
	return nil
}

// Close gives the terminal back.
func (s *Screen) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.mu.Unlock()
	signal.Stop(s.signals)
	close(s.done)
	s.ended.Wait()
	s.leave()
}
