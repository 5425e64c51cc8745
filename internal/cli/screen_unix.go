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

// A Screen shows lines on the whole of a terminal, and takes the keys that are typed on it. What the
// terminal showed before, and how it treats what is typed, come back when the Screen is closed, its
// context is done, or the process is stopped or hung up.
type Screen struct {
	terminal *os.File
	keyboard *os.File // nil if it is no terminal
	keys     chan byte
	redraw   chan struct{}
	signals  chan os.Signal
	done     chan struct{}
	ended    sync.WaitGroup

	mu     sync.Mutex
	open   bool
	closed bool
	cooked *term.State // of the keyboard, before it was taken
}

// OpenScreen takes the terminal, and the keyboard if that is one too.
func OpenScreen(ctx context.Context, keyboard, terminal *os.File) *Screen {
	s := &Screen{
		terminal: terminal, keys: make(chan byte, 16), redraw: make(chan struct{}, 1),
		signals: make(chan os.Signal, 4), done: make(chan struct{}),
	}
	if IsTerminal(keyboard) {
		s.keyboard = keyboard
		go s.read() // until the terminal goes: nothing wakes a read from it
	}
	signal.Notify(s.signals, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGHUP, syscall.SIGWINCH)
	s.enter()
	s.ended.Go(func() { s.watch(ctx) })
	return s
}

// Keys receives what is typed: a character each. Keys that send several, such as those with arrows, are
// left out.
func (s *Screen) Keys() <-chan byte { return s.keys }

// Redraw receives when what is shown is lost, or no longer fits: the size of the terminal changed, or the
// process continued.
func (s *Screen) Redraw() <-chan struct{} { return s.redraw }

// What Ctrl-C, Ctrl-\ and Ctrl-Z send where the terminal leaves it to the program.
const (
	interrupt = 'C' - '@'
	quit      = '\\' - '@'
	suspend   = 'Z' - '@'
	escape    = '[' - '@'
)

// read takes what is typed. A terminal from which each character comes at once makes no signals of them:
// read does.
func (s *Screen) read() {
	signals := map[byte]syscall.Signal{interrupt: syscall.SIGINT, quit: syscall.SIGQUIT, suspend: syscall.SIGTSTP}
	buf := make([]byte, 64)
	for {
		n, err := s.keyboard.Read(buf)
		if err != nil {
			return
		}
		typed := buf[:n]
		if n > 1 && typed[0] == escape {
			continue
		}
		for _, c := range typed {
			if sig, ok := signals[c]; ok {
				_ = syscall.Kill(0, sig) // the terminal sends it to the group of processes, too
				continue
			}
			select {
			case s.keys <- c:
			default: // nobody asks for it
			}
		}
	}
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
				s.askRedraw()
			case syscall.SIGWINCH:
				s.askRedraw()
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

func (s *Screen) askRedraw() {
	select {
	case s.redraw <- struct{}{}:
	default: // asked already
	}
}

func (s *Screen) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.keyboard != nil {
		// The shell may have changed it back while the process was stopped.
		if was, err := term.MakeRaw(int(s.keyboard.Fd())); err == nil && !s.open {
			s.cooked = was
		}
	}
	if !s.open {
		s.open = true
		_, _ = s.terminal.WriteString(enterScreen)
	}
}

func (s *Screen) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return
	}
	s.open = false
	// In the background this would stop the process before its end.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_, _ = s.terminal.WriteString(leaveScreen)
	if s.cooked != nil {
		_ = term.Restore(int(s.keyboard.Fd()), s.cooked)
		s.cooked = nil
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
