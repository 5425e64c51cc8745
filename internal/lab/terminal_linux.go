package lab

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/rdskit/rdskit/internal/lab/job"
	"golang.org/x/term"
)

// A Terminal is that of the user, from which a command on a terminal of the guest's takes
// what is typed.
type Terminal struct {
	in, out int
	state   *term.State
	resized chan os.Signal
}

// ErrNoTerminal says that the files are not a terminal.
var ErrNoTerminal = errors.New("stdin and stdout are not a terminal")

// OpenTerminal is the terminal that is stdin and stdout. It is raw while a command runs: Ctrl-C, too,
// is for the guest. Close must be called.
func OpenTerminal(stdin, stdout *os.File) (*Terminal, error) {
	t := &Terminal{in: int(stdin.Fd()), out: int(stdout.Fd()), resized: make(chan os.Signal, 1)}
	if !term.IsTerminal(t.in) || !term.IsTerminal(t.out) {
		return nil, ErrNoTerminal
	}
	var err error
	if t.state, err = term.GetState(t.in); err != nil {
		return nil, err
	}
	signal.Notify(t.resized, syscall.SIGWINCH)
	return t, nil
}

// Close gives the terminal back as it was.
func (t *Terminal) Close() error {
	signal.Stop(t.resized)
	return term.Restore(t.in, t.state)
}

func (t *Terminal) makeRaw() error {
	_, err := term.MakeRaw(t.in)
	return err
}

// size is zero if the terminal does not know it.
func (t *Terminal) size() job.WindowSize {
	columns, rows, err := term.GetSize(t.out)
	if err != nil {
		return job.WindowSize{}
	}
	return job.WindowSize{Rows: uint16(rows), Columns: uint16(columns)}
}
