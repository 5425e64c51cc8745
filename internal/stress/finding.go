package stress

import (
	"fmt"
	"net/netip"

	"github.com/rdskit/rdskit/internal/stress/flow"
)

// A Finding is a message that is not as it should be.
type Finding struct {
	Fault    flow.Fault
	Task     int // that received it
	From     netip.AddrPort
	Seq      uint32 // of the message
	Expected uint32 // the sequence number after it
	Index    uint16
	Length   int // bytes
	Detail   string
}

func (f Finding) String() string {
	text := fmt.Sprintf("task %d, message %d from %v (index %d, %d bytes): %v", f.Task, f.Seq, f.From, f.Index, f.Length, f.Fault)
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return text
}
