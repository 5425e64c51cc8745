// Package ping sends RDS pings and says what became of each.
//
// A ping is an empty message to port 0, which the kernel of the destination
// answers with another (net/rds/recv.c:rds_recv_incoming). Neither
// carries a number: what tells answers apart is the socket they come to.
// So each ping that is not answered yet has a socket to itself, and a
// socket whose answer may still come is never used for another ping. It is closed,
// which also makes the kernel forget the ping, and replaced by one on another port.
package ping

import (
	"errors"
	"os"
	"time"

	"github.com/rdskit/rdskit/internal/target"
)

const (
	// DefaultInterval is the time between two pings unless Config says
	// otherwise.
	DefaultInterval = time.Second
	// DefaultOutstanding is how many pings to one target may be unanswered.
	DefaultOutstanding = 8
	// MaxOutstanding is the most that Config.Outstanding takes.
	MaxOutstanding = 1024
)

// minHold is how long at least a ping keeps its socket when others need it.
const minHold = time.Second

// A Config says whom to ping and how. Only Targets is needed.
type Config struct {
	Targets []target.Target

	// Count is how many pings each target gets, 0 for no limit.
	Count uint64

	// Interval is the time between two pings to one target, and how long the
	// last one waits for its answer unless Timeout is set. 0 means
	// DefaultInterval.
	Interval time.Duration

	// Timeout is how long each ping waits for its answer before it is counted lost.
	// With 0 it is lost when another ping needs its socket, or at the end.
	Timeout time.Duration

	// Deadline ends the run after this time, whatever is unanswered. 0 means
	// no deadline.
	Deadline time.Duration

	// Flood sends a ping as soon as fewer than Outstanding are
	// unanswered, rather than at intervals. It needs Count or Deadline.
	Flood bool

	// Outstanding is how many pings to one target may be unanswered at a time. 0 means
	// DefaultOutstanding.
	Outstanding int

	// ReportWaiting asks for an event for each ping that has no answer yet
	// when the next one is sent.
	ReportWaiting bool

	// NetNS is the descriptor of the network namespace to ping from, 0 for
	// the caller's.
	NetNS int

	// Interim, when it receives, asks for a summary of what was so far.
	Interim <-chan os.Signal
}

func (c *Config) withDefaults() (Config, error) {
	d := *c
	if d.Interval == 0 {
		d.Interval = DefaultInterval
	}
	if d.Outstanding == 0 {
		d.Outstanding = DefaultOutstanding
	}
	switch {
	case len(d.Targets) == 0:
		return d, errors.New("ping: no target")
	case d.Interval < 0 || d.Timeout < 0 || d.Deadline < 0:
		return d, errors.New("ping: a time is negative")
	case d.Outstanding < 0 || d.Outstanding > MaxOutstanding:
		return d, errors.New("ping: too many or too few pings outstanding")
	case d.Flood && d.Count == 0 && d.Deadline == 0:
		return d, errors.New("ping: a flood needs a count or a deadline")
	}
	return d, nil
}

// hold is how long a ping keeps its socket when all are taken.
func (c *Config) hold() time.Duration { return max(c.Interval, minHold) }

// wait is how long a ping may be unanswered at the end of the run.
func (c *Config) wait() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return c.Interval
}
