package lab

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// A group is several machines that are joined by a wire, as the launcher sees them: the one
// of the command, and others that run what is sent to them.
type group struct {
	config  *Config
	kernel  kernel.Image
	primary int
	wire    *wire
	events  chan event
	done    chan struct{} // closed at the end

	members  map[int]*member
	pending  map[conversation]int // the machine that runs the command
	casualty *Failure             // the first machine that ended by itself
	begun    bool                 // all machines were ready once
}

// A member is a place in the group, with or without a running machine.
type member struct {
	*machine
	n       int
	alive   bool
	ready   bool
	killer  *job.Call // waits for its end
	booter  *job.Call // waits until it is ready
	outbox  chan job.Message
	stopped bool // it was told to end
}

// A conversation is known by the machine that began it and its id there.
type conversation struct{ from, id int }

// An event is a message of a machine other than the command's, or the end of that machine.
type event struct {
	from *member
	of   *machine
	msg  job.Message
	end  bool
}

// outboxSize is how much may wait for a machine that does not read. Of each conversation
// at most a window does.
const outboxSize = 4096

func newGroup(c *Config, k kernel.Image, own *machine) *group {
	g := &group{
		config: c, kernel: k, primary: c.primary(), wire: newWire(),
		events: make(chan event), done: make(chan struct{}),
		members: map[int]*member{}, pending: map[conversation]int{},
	}
	for n := 1; n <= c.Machines; n++ {
		g.members[n] = &member{n: n}
	}
	g.join(g.members[g.primary], own)
	return g
}

// join makes a machine that was started a member.
func (g *group) join(m *member, machine *machine) {
	m.machine, m.alive, m.ready, m.stopped = machine, true, false, false
	m.outbox = make(chan job.Message, outboxSize)
	g.wire.attach(m.n, machine.wire)
	outbox, gone := m.outbox, machine.keeper.Exited()
	go func() {
		for {
			select {
			case msg := <-outbox:
				machine.send(msg) // one that takes nothing is about to end, or hangs
			case <-gone:
				return
			case <-g.done:
				return
			}
		}
	}()
	if m.n == g.primary {
		return
	}
	go func() {
		for {
			msg, ok := <-machine.messages
			select {
			case g.events <- event{m, machine, msg, !ok}:
			case <-g.done:
				return
			}
			if !ok {
				return
			}
		}
	}()
}

// bootOthers starts the machines other than the command's.
func (g *group) bootOthers() error {
	for _, m := range g.members {
		if m.n == g.primary {
			continue
		}
		if err := g.boot(m); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) boot(m *member) error {
	machine, err := boot(g.config, g.kernel, m.n)
	if err != nil {
		return fmt.Errorf("machine %s: %w", job.MachineName(m.n), err)
	}
	g.join(m, machine)
	return nil
}

// others is where the events come; nil without a group.
func (g *group) others() <-chan event {
	if g == nil {
		return nil
	}
	return g.events
}

// heed does what a message of the command's machine asks the group for, and tells
// whether it did.
func (g *group) heed(msg job.Message) bool {
	own := g.members[g.primary]
	switch {
	case msg.Ready:
		g.getReady(own)
	case msg.Call != nil:
		g.route(own, msg.Call)
	default:
		return false
	}
	return true
}

// take takes an event. The error is the end of the lab.
func (g *group) take(ev event) error {
	m := ev.from
	switch {
	case ev.of != m.machine: // an earlier one in its place
	case ev.end:
		return g.lose(m)
	case ev.msg.Ready:
		g.getReady(m)
	case ev.msg.Started:
		if m.booter != nil {
			g.reply(m.booter, "")
			m.booter = nil
		}
	case ev.msg.Call != nil:
		g.route(m, ev.msg.Call)
	case ev.msg.Done != nil && !m.stopped:
		_, err := m.readResult()
		return g.name(m, err)
	}
	return nil
}

// getReady lets the machines go on when all are ready, and later each at once.
func (g *group) getReady(m *member) {
	m.ready = true
	if g.begun {
		m.outbox <- job.Message{Go: true}
		return
	}
	for _, m := range g.members {
		if !m.ready {
			return
		}
	}
	g.begun = true
	for _, m := range g.members {
		m.outbox <- job.Message{Go: true}
	}
}

// lose takes note that a machine has ended. Before the command has begun that is the end.
func (g *group) lose(m *member) error {
	killed := m.killer != nil
	m.alive = false
	failure := g.name(m, m.lost(g.begun))
	reason := failure.Error()
	if killed {
		reason = fmt.Sprintf("machine %s was killed", job.MachineName(m.n))
	}
	for c, to := range g.pending {
		if to == m.n {
			g.reply(&job.Call{From: c.from, To: to, ID: c.id}, reason)
			delete(g.pending, c)
		}
	}
	err := m.remove()
	if killed {
		g.reply(m.killer, errorText(err))
		m.killer = nil
		return nil
	}
	if m.booter != nil {
		g.reply(m.booter, reason)
		m.booter = nil
	}
	if !g.begun {
		return failure
	}
	if g.casualty == nil {
		g.casualty, _ = errors.AsType[*Failure](failure)
	}
	return nil
}

// name puts the machine's name before the reason of its failure.
func (g *group) name(m *member, err error) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		named := *f
		named.Reason = fmt.Sprintf("machine %s: %s", job.MachineName(m.n), f.Reason)
		return &named
	}
	return err
}

// route takes a call, or the answer to one, to where it belongs.
func (g *group) route(from *member, call *job.Call) {
	if call.Reply {
		key := conversation{call.From, call.ID}
		if g.pending[key] != from.n {
			return
		}
		if call.Exit != nil {
			delete(g.pending, key)
		}
		g.post(call.From, call)
		return
	}
	call.From = from.n
	to := g.members[call.To]
	switch {
	case call.Wire != "":
		g.wire.cut.Store(call.Wire == job.CutWire)
		g.reply(call, "")
	case call.Hangup || call.Run == nil && !call.Kill && !call.Boot:
		if g.pending[conversation{call.From, call.ID}] == call.To {
			g.post(call.To, call)
		}
	case to == nil:
		g.reply(call, fmt.Sprintf("there is no machine %s", job.MachineName(call.To)))
	case call.Kill:
		g.kill(to, call)
	case call.Boot:
		g.bootAgain(to, call)
	case !to.alive || to.killer != nil:
		g.reply(call, fmt.Sprintf("machine %s does not run", job.MachineName(to.n)))
	default:
		g.pending[conversation{call.From, call.ID}] = to.n
		g.post(to.n, call)
	}
}

func (g *group) kill(m *member, call *job.Call) {
	switch {
	case m.n == g.primary:
		g.reply(call, fmt.Sprintf("the lab's command runs on machine %s: its end is that of the lab", job.MachineName(m.n)))
	case !m.alive:
		g.reply(call, "")
	case m.killer != nil:
		g.reply(call, fmt.Sprintf("machine %s is being killed", job.MachineName(m.n)))
	default:
		m.killer = call
		m.keeper.Stop()
	}
}

func (g *group) bootAgain(m *member, call *job.Call) {
	if m.alive {
		g.reply(call, fmt.Sprintf("machine %s runs", job.MachineName(m.n)))
		return
	}
	if err := g.boot(m); err != nil {
		g.reply(call, err.Error())
		return
	}
	m.booter = call
}

// reply ends a conversation that the launcher itself answers.
func (g *group) reply(call *job.Call, failure string) {
	g.post(call.From, &job.Call{From: call.From, To: call.To, ID: call.ID, Reply: true, Exit: &job.Exit{Error: failure}})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// post sends a call to a machine.
func (g *group) post(n int, call *job.Call) {
	m := g.members[n]
	if m == nil || !m.alive {
		return
	}
	select {
	case m.outbox <- job.Message{Call: call}:
	default: // it does not read: whoever waits for an answer waits for its end
	}
}

// finish tells the other machines to end, and waits until they have left their results.
func (g *group) finish() {
	waiting := 0
	for _, m := range g.members {
		if m.n != g.primary && m.alive && m.ready && m.killer == nil {
			m.stopped = true
			m.outbox <- job.Message{Stop: true}
			waiting++
		}
	}
	for limit := time.After(endTimeout); waiting > 0; {
		select {
		case ev := <-g.events:
			if ev.of == ev.from.machine && ev.from.stopped && (ev.msg.Done != nil || ev.end) {
				waiting--
			}
		case <-limit:
			return
		}
	}
}

// judge looks at what became of the other machines while the command ran, which ended with
// the status.
func (g *group) judge(status int) *Failure {
	if f := g.casualty; f != nil {
		if status != 0 {
			f.Status = status
		}
		return f
	}
	for _, m := range g.members {
		if !m.stopped {
			continue
		}
		r, err := m.readResult()
		if err != nil {
			err = g.name(m, err)
		} else if r.TaintAfter != r.TaintBefore {
			r.ExitCode = status // of the command, which ran elsewhere
			err = g.name(m, tainted(r, 0))
		}
		if f, ok := errors.AsType[*Failure](err); ok {
			return f
		}
	}
	return new(Failure)
}

// stop kills the other machines.
func (g *group) stop() error {
	var errs []error
	for _, m := range g.members {
		if m.n != g.primary && m.alive {
			m.keeper.Stop()
		}
	}
	close(g.done)
	for _, m := range g.members {
		if m.n != g.primary && m.alive {
			errs = append(errs, m.remove())
		}
	}
	return errors.Join(errs...)
}
