// Package call is how a process on one machine of a lab runs commands on the other, and
// kills it, boots it again, or cuts the cable between them.
package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/rdskit/rdskit/internal/lab/job"
)

// ErrNoMachines says that this is not a lab of several machines.
var ErrNoMachines = errors.New("this is no machine of a lab with others: rds-lab run --machines 2")

// A Command is what to run on another machine.
type Command struct {
	Machine int
	Args    []string
	Dir     string
	Env     []string

	Stdin          io.Reader // nil is an empty one
	Stdout, Stderr io.Writer
	Signals        <-chan os.Signal // are passed on to the command and its process group
}

// NotFoundError is a command that could not be started.
type NotFoundError struct{ Reason string }

func (e *NotFoundError) Error() string { return e.Reason }

// Run runs the command to its end and returns its status: 128 plus the signal's number if one
// ended it. The error is a [*NotFoundError] if it could not be started; any other says
// what became of the machine.
func (c *Command) Run() (int, error) {
	s, err := dial(&job.Call{To: c.Machine, Run: job.NewCommand(c.Args, c.Dir, c.Env)})
	if err != nil {
		return 0, err
	}
	defer s.conn.Close()
	window := make(chan struct{}, job.Window)
	for range job.Window {
		window <- struct{}{}
	}
	done := make(chan struct{})
	defer close(done)
	go s.feed(c.Stdin, window, done)
	go func() {
		for {
			select {
			case sig := <-c.Signals:
				if n, ok := sig.(syscall.Signal); ok {
					s.send(&job.Call{Signal: int(n)})
				}
			case <-done:
				return
			}
		}
	}()
	var werr error
	for {
		answer, err := s.receive()
		switch {
		case err != nil:
			return 0, err
		case answer.Exit != nil:
			return answer.Exit.Status, errors.Join(exitError(answer.Exit), werr)
		case answer.Taken:
			select {
			case window <- struct{}{}:
			default:
			}
		case answer.Data != nil:
			to := c.Stdout
			if answer.Stream == job.Stderr {
				to = c.Stderr
			}
			if _, err := to.Write(answer.Data); err != nil && werr == nil {
				// As a pipe without a reader would do.
				werr = err
				s.send(&job.Call{Signal: int(syscall.SIGPIPE)})
			}
			s.send(&job.Call{Stream: answer.Stream, Taken: true})
		}
	}
}

func exitError(e *job.Exit) error {
	switch {
	case e.Error == "":
		return nil
	case e.NotFound:
		return &NotFoundError{e.Error}
	}
	return errors.New(e.Error)
}

// Kill kills a machine, as if its power were cut.
func Kill(machine int) error { return ask(&job.Call{To: machine, Kill: true}) }

// Boot boots a machine that was killed. It returns when the machine is ready.
func Boot(machine int) error { return ask(&job.Call{To: machine, Boot: true}) }

// Cut cuts the cable between the machines: what they send is lost, and none sees why.
func Cut() error { return ask(&job.Call{Wire: job.CutWire}) }

// Mend ends what Cut began.
func Mend() error { return ask(&job.Call{Wire: job.MendWire}) }

// ask is a conversation of one question and one answer.
func ask(question *job.Call) error {
	s, err := dial(question)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	answer, err := s.receive()
	if err != nil {
		return err
	}
	if answer.Exit == nil {
		return errors.New("the lab's answer is none")
	}
	return exitError(answer.Exit)
}

// A conversation is one end of it.
type conversation struct {
	conn net.Conn
	dec  *json.Decoder

	mu  sync.Mutex // guards enc
	enc *json.Encoder
}

func dial(first *job.Call) (*conversation, error) {
	conn, err := net.Dial("unix", job.CallSocket)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoMachines
	}
	if err != nil {
		return nil, fmt.Errorf("process 1 of the lab: %w", err)
	}
	s := &conversation{conn: conn, dec: json.NewDecoder(conn), enc: json.NewEncoder(conn)}
	if err := s.send(first); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *conversation) send(c *job.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enc.Encode(c)
}

func (s *conversation) receive() (*job.Call, error) {
	answer := new(job.Call)
	if err := s.dec.Decode(answer); err != nil {
		return nil, fmt.Errorf("process 1 of the lab: %w", err)
	}
	return answer, nil
}

// feed sends stdin, as much ahead as the window allows.
func (s *conversation) feed(stdin io.Reader, window <-chan struct{}, done <-chan struct{}) {
	defer s.send(&job.Call{Stream: job.Stdin, EOF: true})
	if stdin == nil {
		return
	}
	buf := make([]byte, job.PieceSize)
	for {
		n, err := stdin.Read(buf)
		if n > 0 {
			select {
			case <-window:
			case <-done:
				return
			}
			if s.send(&job.Call{Stream: job.Stdin, Data: buf[:n]}) != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
