// Package stress is the engine of rds-stress: it loads the sockets of a run,
// checks every message, and measures.
//
// Its rooms: wire has the bytes of the protocol, flow the account of messages,
// transport the sockets, control the TCP connection to the peer. The workers
// here join them.
package stress

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/transport"
	"github.com/rdskit/rdskit/rdssock"
)

// A Config is what both sides of a run agreed on, and what concerns this side
// alone.
type Config struct {
	// Local and Peer are the addresses. Task i has port Port+1+i on both.
	Local, Peer netip.Addr
	Port        uint16
	Tasks       int
	Shape       flow.Shape
	// DetectLayout says that Shape.Layout is a guess, and that the first message of the
	// peer, which has the pattern of C as its payload, decides between wire.Basic and wire.Async.
	DetectLayout bool
	// MinReqSize is less than Shape.ReqSize if sizes vary, in bytes.
	MinReqSize int

	RDMA RDMA

	// Requests says that this side sends requests, and does not only answer.
	Requests bool
	// Rate is how many requests all tasks together send in a second, whatever
	// becomes of them; 0 sends as fast as the answers come.
	Rate float64
	// Bursty sends until no more requests are permitted, then receives until all are answered.
	// SyncBursty has all tasks change over together.
	Bursty, SyncBursty bool
	// GiveUp is how long a request may wait for its answer before its place is given to
	// another; 0 is for ever.
	GiveUp time.Duration
	Seed   uint64

	Transport     rdssock.Transport
	TOS           uint8
	NetNS         int
	NoCongMonitor bool
	RXPath        bool
	Realtime      bool          // who opens the Run, and reports, has SCHED_RR until it is closed
	LocalPeer     bool          // Peer is an address of this host
	OutlierAbove  time.Duration // report round trips above this; 0 for none
	CancelSentTo  bool          // drop what is queued when the run ends, and tell how long that took
	MaxFindings   int           // how many faults are told in detail
	StopOnFinding bool
	SummaryOnly   bool         // the side with -s wants no rows
	Perfdata      bool         // it wants rows for programs
	Trace         func(string) // is told of each RDMA operation, by the thread that does it; nil for none
}

// Limits of what one run can have.
const (
	MaxTasks   = 1024
	MaxDepth   = 65535 // the index of a message has 16 bits
	MaxMessage = 1 << 20
)

// buffer is how much all requests and answers of one task can hold of its
// socket's buffers, as C computes it, in bytes.
func (c *Config) buffer() int64 {
	return 2 * int64(c.Tasks) * int64(c.Shape.Depth) * int64(c.Shape.ReqSize+c.Shape.AckSize)
}

// oneAtATime says that a worker with a loop of its own best takes messages one by one, by the call that costs the least.
//
// Over TCP, the kernel's worker takes the processor after each message that is sent (net/rds/tcp_send.c:rds_tcp_write_space).
// Two sides that share it then take turns with each message, and TCP's acknowledgement rides on the next one. A batch puts
// them out of step: who sends twice in a row is sent a segment that only acknowledges.
func (c *Config) oneAtATime() bool {
	if c.RDMA.Size > 0 || c.RXPath || c.messageSize() > transport.SmallMessage {
		return false // the first two come with control messages
	}
	return !c.LocalPeer || c.Tasks*c.Shape.Depth == 1
}

func (c *Config) messageSize() int { return max(c.Shape.ReqSize, c.Shape.AckSize) }

// Memory is what the run needs of this process at most, in bytes.
func (c *Config) Memory() int64 {
	const slot, owed = 24, 8
	flows := int64(c.Tasks) * int64(c.Tasks)
	receive := int64(c.messageSize())
	if receive <= transport.SmallMessage {
		receive *= 32
	}
	const histogram = 48 << 10
	histograms := int64(2 * histogram) // one in use, one handed over
	if c.RXPath {
		histograms *= 4
	}
	if c.RDMA.Size > 0 {
		histograms += 3 * 2 * histogram
	}
	return 2*flows*int64(c.Shape.Depth)*(slot+owed) + int64(c.Tasks)*(receive+histograms) + c.RDMA.memory(c.Tasks, c.Shape.Depth)
}

// A LimitError says that a run would be too large.
type LimitError struct {
	What       string
	Value, Max uint64
	Why        string
}

func (e *LimitError) Error() string {
	text := fmt.Sprintf("%s %d is out of range: at most %d", e.What, e.Value, e.Max)
	if e.Why != "" {
		text += " (" + e.Why + ")"
	}
	return text
}

func (c *Config) port(task int) uint16 { return c.Port + 1 + uint16(task) }

// Times of a run that is not told otherwise, and their limits.
const (
	DefaultWarmUp   = 4 * time.Second
	DefaultInterval = time.Second
	MinInterval     = time.Millisecond
	MaxWarmUp       = time.Hour
	DefaultGiveUp   = 30 * time.Second
)

// Check refuses a run that is too large, or that leaves no port for its tasks.
func (c *Config) Check() error {
	switch {
	case c.Tasks < 1 || c.Tasks > MaxTasks:
		return &LimitError{"a number of tasks (-t) of", uint64(c.Tasks), MaxTasks, "and 1 at least"}
	case c.Shape.Depth < 1 || c.Shape.Depth > MaxDepth:
		return &LimitError{"a depth (-d) of", uint64(c.Shape.Depth), MaxDepth, "the index of a message has 16 bits; and 1 at least"}
	case int(c.Port)+c.Tasks > 65535:
		return &LimitError{"a port (-p) of", uint64(c.Port), uint64(65535 - c.Tasks), "each task has one of the ports that follow"}
	}
	if c.Shape.CRC && c.RDMA.Size > 0 {
		return errors.New("checksums (--crc) and RDMA (-D) exclude each other: they take the same place in the header")
	}
	return c.RDMA.check()
}
