package guest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/rdskit/rdskit/internal/lab/job"
)

// calls takes the calls of this machine's processes to the launcher and the answers back, and
// serves those of the other machine.
type calls struct {
	self     int // number of this machine
	lines    *lines
	children *reaper

	mu      sync.Mutex
	lastID  int
	callers map[int]*caller  // by the conversation's id
	served  map[int]*service // those of the other machine, by their id
}

// serveCalls begins to take calls.
func serveCalls(self int, l *lines, children *reaper) error {
	c := &calls{self: self, lines: l, children: children, callers: map[int]*caller{}, served: map[int]*service{}}
	listener, err := net.Listen("unix", job.CallSocket)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				console("calls: %v", err)
				return
			}
			go c.serveCaller(conn)
		}
	}()
	go func() {
		for call := range l.calls {
			if call.Reply {
				c.answer(call)
			} else {
				c.serve(call)
			}
		}
	}()
	return nil
}

// A caller is a process on this machine that has a conversation.
type caller struct {
	answers chan *job.Call // has room for all that the other side may send ahead
}

// room is how many messages of one conversation can be under way: a window of each stream
// each way, and those without.
const room = 2*int(job.NumLines)*job.Window + 8

// serveCaller has a conversation on behalf of a process.
func (c *calls) serveCaller(conn net.Conn) {
	defer conn.Close()
	dec, me := json.NewDecoder(conn), &caller{answers: make(chan *job.Call, room)}
	first := new(job.Call)
	if err := dec.Decode(first); err != nil {
		return
	}
	id := c.add(me)
	send := func(call *job.Call) {
		call.From, call.To, call.ID, call.Reply = c.self, first.To, id, false
		c.lines.send(job.Message{Call: call})
	}
	go func() {
		send(&job.Call{Run: first.Run, Wire: first.Wire, Kill: first.Kill, Boot: first.Boot})
		for {
			next := new(job.Call)
			if err := dec.Decode(next); err != nil {
				break
			}
			send(next)
		}
		// The process is gone, or has heard the end.
		if c.remove(id) {
			send(&job.Call{Signal: int(syscall.SIGKILL), Hangup: true})
		}
	}()
	enc := json.NewEncoder(conn)
	for answer := range me.answers {
		enc.Encode(answer)
	}
}

func (c *calls) add(me *caller) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	c.callers[c.lastID] = me
	return c.lastID
}

// remove ends a conversation and tells whether that was under way.
func (c *calls) remove(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	me := c.callers[id]
	if me == nil {
		return false
	}
	delete(c.callers, id)
	close(me.answers)
	return true
}

// answer hands an answer to the process that waits for it.
func (c *calls) answer(call *job.Call) {
	c.mu.Lock()
	if me := c.callers[call.ID]; me != nil {
		select {
		case me.answers <- call:
		default: // more than was asked for
		}
	}
	c.mu.Unlock()
	if call.Exit != nil {
		c.remove(call.ID)
	}
}

// A service is a process that runs on behalf of the other machine.
type service struct {
	calls *calls
	call  *job.Call // that began it
	*command
	pieces chan *job.Call              // of stdin
	window [job.NumLines]chan struct{} // holds what may still be sent ahead
	gone   chan struct{}               // closed when nobody listens any more
	once   sync.Once
}

// serve takes a message of the other machine.
func (c *calls) serve(call *job.Call) {
	if call.Run != nil {
		c.run(call)
		return
	}
	c.mu.Lock()
	s := c.served[call.ID]
	c.mu.Unlock()
	if s != nil {
		s.take(call)
	}
}

// run starts a process for the other machine.
func (c *calls) run(call *job.Call) {
	s := &service{calls: c, call: call, command: new(command), pieces: make(chan *job.Call, room), gone: make(chan struct{})}
	for _, line := range []job.Line{job.Stdout, job.Stderr} {
		s.window[line] = make(chan struct{}, job.Window)
		for range job.Window {
			s.window[line] <- struct{}{}
		}
	}
	args, dir, env := call.Run.Strings()
	if len(args) == 0 {
		s.reply(&job.Call{Exit: &job.Exit{Error: "no command given"}})
		return
	}
	err := s.command.start(&process{args: args, dir: dir, env: env, on: job.InitialNamespace}, true, c.children)
	if err != nil {
		s.reply(&job.Call{Exit: &job.Exit{Error: err.Error(), NotFound: true}})
		return
	}
	c.mu.Lock()
	c.served[call.ID] = s
	c.mu.Unlock()
	go s.feed()
	go s.finish()
}

// take takes a later message of the conversation.
func (s *service) take(call *job.Call) {
	switch {
	case call.Hangup:
		s.once.Do(func() { close(s.gone) })
		syscall.Kill(-s.pid, syscall.SIGKILL)
	case call.Signal != 0:
		syscall.Kill(-s.pid, syscall.Signal(call.Signal))
	case call.Taken && (call.Stream == job.Stdout || call.Stream == job.Stderr):
		select {
		case s.window[call.Stream] <- struct{}{}:
		default: // more than was sent
		}
	case call.Stream == job.Stdin:
		select {
		case s.pieces <- call:
		default: // more than the window
		}
	}
}

func (s *service) reply(call *job.Call) {
	call.From, call.To, call.ID, call.Reply = s.call.From, s.call.To, s.call.ID, true
	s.calls.lines.send(job.Message{Call: call})
}

// feed hands stdin to the process.
func (s *service) feed() {
	defer s.stdin.Close()
	for {
		select {
		case piece := <-s.pieces:
			if piece.EOF {
				return
			}
			s.stdin.Write(piece.Data) // if nobody reads it is lost, as in a pipe
			s.reply(&job.Call{Stream: job.Stdin, Taken: true})
		case <-s.gone:
			return
		}
	}
}

// finish copies what the process writes, and tells how it ended.
func (s *service) finish() {
	var copied sync.WaitGroup
	copied.Go(func() { s.stdout.copyTo(&outgoing{s, job.Stdout}) })
	copied.Go(func() { s.stderr.copyTo(&outgoing{s, job.Stderr}) })
	ws := <-s.ended
	s.stdout.end()
	s.stderr.end()
	copied.Wait()
	s.stdout.r.Close()
	s.stderr.r.Close()
	s.once.Do(func() { close(s.gone) })
	s.calls.mu.Lock()
	delete(s.calls.served, s.call.ID)
	s.calls.mu.Unlock()
	status := ws.ExitStatus()
	if ws.Signaled() {
		status = 128 + int(ws.Signal())
	}
	s.reply(&job.Call{Exit: &job.Exit{Status: status}})
}

// outgoing is a stream to the other machine.
type outgoing struct {
	s    *service
	line job.Line
}

func (o *outgoing) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		piece := b[:min(len(b), job.PieceSize)]
		select {
		case <-o.s.window[o.line]:
		case <-o.s.gone:
			return n, fmt.Errorf("machine %d hung up: %w", o.s.call.From, os.ErrClosed)
		}
		o.s.reply(&job.Call{Stream: o.line, Data: piece})
		n, b = n+len(piece), b[len(piece):]
	}
	return n, nil
}
