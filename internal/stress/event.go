package stress

import (
	"net/netip"
	"time"

	"github.com/rdskit/rdskit/rdssock"
)

// A Kind says what an Event tells.
type Kind int

const (
	// Listening: the passive side waits at Addr.
	Listening Kind = iota
	// Dropped: a connection from Addr came to nothing, Err says why.
	Dropped
	// Accepted: a peer at Addr has connected to Local.
	Accepted
	// Connecting to Addr; Retrying after Err.
	Connecting
	Retrying
	// NotConnected: Err says why it is given up.
	NotConnected
	// Connected: the next is to agree on the options.
	Connected
	// Note is something to tell people: Text.
	Note
	// Negotiated: both sides know what to do. Config is set from here on.
	Negotiated
	// Starting, and StartingUp once a second until Started.
	Starting
	StartingUp
	Started
	// Interval: Sample is set.
	Interval
	// Found: Finding is set.
	Found
	// Outlier: RTT is set.
	Outlier
	// Canceled: what was queued for one destination was dropped. Canceled is set.
	Canceled
	// End: Summary is set.
	End
)

func (k Kind) String() string {
	names := [...]string{
		"listening", "dropped", "accepted", "connecting", "retrying", "not connected", "connected", "note", "negotiated",
		"starting", "starting up", "started", "interval", "finding", "outlier", "canceled", "end",
	}
	if k < 0 || int(k) >= len(names) {
		return "event"
	}
	return names[k]
}

// An Event is something that a side tells of.
type Event struct {
	Kind        Kind
	Time        time.Time
	Active      bool // the side that tells
	Addr, Local netip.AddrPort
	Text        string
	Err         error
	Config      *Config
	Transport   rdssock.Transport
	Sample      *Sample
	Finding     *Finding
	RTT         time.Duration
	Canceled    *Cancellation
	Summary     *Summary
}

// A Sample is what was measured in one interval.
type Sample struct {
	Number  int           // from 1
	Elapsed time.Duration // of the interval
	Total   time.Duration // since Started
	Tasks   int
	Stats
	Latencies  Latencies   // if Plan.Latencies says so
	Processors *Processors // nil if they were not asked for
	Keys       *KeyReuse   // nil without RDMA.KeyMeter
	Usage      Usage
}

// A Summary is what a whole run came to.
type Summary struct {
	// Measured is from Started to the last sample.
	Measured Sample
	// Whole is from the first message to the last.
	Whole Stats
	// Lost messages of the peer did not arrive. Without an account of the peer, those after the
	// last that arrived are not among them.
	Lost uint64
	// Undelivered messages of the peer did not arrive either, but nobody waited for them: the run was interrupted, or a side
	// canceled them.
	Undelivered uint64
	// Canceled messages of this side were queued when Config.CancelSentTo had them dropped.
	Canceled int
	// Unanswered requests are left at the end; Outstanding says where.
	Unanswered  int
	Outstanding []Outstanding
	// Gap is the longest time without anything, Recovery the longest until it was over.
	Gap, Recovery time.Duration
	// Peer is what the other side came to, nil if it does not tell.
	Peer *Verdict
	// Err is why the run ended before its time.
	Err error
	// PeerVersion is what the other side calls itself, if it does.
	PeerVersion string
}

// A Verdict is what one side tells the other at the end.
type Verdict struct {
	Stats       Stats  `json:"stats"`
	Lost        uint64 `json:"lost"`
	Undelivered uint64 `json:"undelivered"`
	Unanswered  int    `json:"unanswered"`
	Error       Said   `json:"error,omitempty"`
}

// Faulty reports whether a message was not as it should be.
func (v *Verdict) Faulty() bool { return v.Lost > 0 || v.Stats.Faults() > 0 || v.Error != "" }

// Failed reports whether the run failed: on either side.
func (s *Summary) Failed() bool { return s.Err != nil || s.Faulty() }

// Faulty reports whether a message was not as it should be, on either side.
func (s *Summary) Faulty() bool {
	return s.Lost > 0 || s.Whole.Faults() > 0 || s.Peer != nil && s.Peer.Faulty()
}
