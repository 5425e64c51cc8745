package stress

import (
	"errors"
	"net/netip"
	"os"
	"time"

	"github.com/rdskit/rdskit/rdsinfo"
)

// A Cancellation is that the kernel dropped what a task had queued for one destination (RDS_CANCEL_SENT_TO).
type Cancellation struct {
	Task int
	To   netip.AddrPort
	Took time.Duration
}

// Cancel drops, for each destination, what the peer's kernel has not acknowledged. From then on nothing is sent. It goes
// with Quiet, before.
func (r *Run) Cancel() ([]Cancellation, error) {
	r.Hush()
	type answer struct {
		all []Cancellation
		err error
	}
	var whole answer
	for _, a := range ask(r, func(w *worker) (a answer) {
		w.canceled = true
		for i, to := range w.remotes {
			began := r.now()
			if errno := w.sock.Cancel(&w.names[i]); errno != 0 {
				a.err = errors.Join(a.err, os.NewSyscallError("setsockopt RDS_CANCEL_SENT_TO", errno))
				continue
			}
			a.all = append(a.all, Cancellation{w.task, to, r.now() - began})
		}
		return a
	}) {
		whole.all = append(whole.all, a.all...)
		whole.err = errors.Join(whole.err, a.err)
	}
	return whole.all, whole.err
}

// Queued is how many messages of this side the kernel keeps, because the peer's has not acknowledged them.
func (r *Run) Queued() (int, error) {
	c := r.cfg
	snapshot, err := rdsinfo.Read(&rdsinfo.Config{NetNS: c.NetNS}, rdsinfo.SendQueue, rdsinfo.RetransmitQueue)
	if err != nil {
		return 0, err
	}
	local := c.Local.WithZone("")
	all := map[rdsinfo.Message]bool{} // one may move from queue to queue meanwhile
	for _, queue := range []rdsinfo.Table{rdsinfo.SendQueue, rdsinfo.RetransmitQueue} {
		messages, err := snapshot.Queue(queue)
		if err != nil {
			return 0, err
		}
		for _, m := range messages {
			if task := int(m.Local.Port()) - int(c.port(0)); m.Local.Addr() == local && task >= 0 && task < c.Tasks {
				all[m] = true
			}
		}
	}
	return len(all), nil
}
