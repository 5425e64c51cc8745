package ping

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rdskit/rdskit/internal/latency"
	"github.com/rdskit/rdskit/internal/target"
)

// An Event is something that happened in a run. Which fields have a meaning
// depends on Kind.
type Event struct {
	Kind   Kind
	Time   time.Time // when it was noticed
	Target *target.Target

	// Seq is the number of the ping, from 1, for each target on its own. It is 0 in events
	// about no ping.
	Seq uint64

	// RTT is the time from before the ping was sent to after its answer was received:
	// of Reply, Late and Duplicate.
	RTT time.Duration
	// From is where the answer came from: of Reply, Late and Duplicate.
	From netip.Addr

	// Wait is how long a ping has been unanswered, of Lost and Waiting; and by how much it was
	// sent late, of Delayed.
	Wait time.Duration

	// Err is why a ping could not be sent, or a target not be pinged: of
	// Failed.
	Err error

	// Report is how things stand, of Interim and Summary.
	Report *Report
}

// A Kind is what an Event is about.
type Kind int

const (
	Start     Kind = iota // a target is going to be pinged
	Reply                 // a ping was answered
	Lost                  // a ping was given up
	Late                  // the answer to a ping that had been given up
	Duplicate             // another answer to an answered ping
	Waiting               // a ping has no answer yet while the next is sent
	Delayed               // a ping was sent late, for all sockets were taken
	Failed                // a ping could not be sent, or a target not be tried
	Interim               // a summary on request
	Summary               // the summary at the end
)

// String returns the kind in lower case, as JSON has it.
func (k Kind) String() string {
	switch k {
	case Start:
		return "start"
	case Reply:
		return "reply"
	case Lost:
		return "lost"
	case Late:
		return "late"
	case Duplicate:
		return "duplicate"
	case Waiting:
		return "waiting"
	case Delayed:
		return "delayed"
	case Failed:
		return "error"
	case Interim:
		return "interim"
	case Summary:
		return "summary"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// A Report counts what became of the pings to one target. Each ping that was
// sent is in exactly one of Received, Lost and Outstanding.
type Report struct {
	Sent     uint64
	Received uint64 // answered in time
	Lost     uint64 // given up
	Late     uint64 // of Lost: answered after all
	// Outstanding were neither answered nor given up: a run that is
	// interrupted does not wait for them.
	Outstanding uint64
	Duplicates  uint64 // further answers to answered pings
	Errors      uint64 // pings that could not be sent, not in Sent
	Elapsed     time.Duration

	// RTT sums up the round trips of Received and Late. It has a value if
	// HasRTT.
	RTT    latency.Summary
	HasRTT bool
}

// LossPercent returns which part of the pings whose fate is known was lost, 0
// if there is none.
func (r *Report) LossPercent() float64 {
	if r.Lost == 0 {
		return 0
	}
	return 100 * float64(r.Lost) / float64(r.Received+r.Lost)
}
