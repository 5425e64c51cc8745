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
	Index    uint16
	Length   int            // bytes
	Mismatch *flow.Mismatch // nil if nothing was to be compared
	Detail   string
}

func (f Finding) String() string {
	text := fmt.Sprintf("task %d, message %d from %v (index %d, %d bytes): %v", f.Task, f.Seq, f.From, f.Index, f.Length, f.Fault)
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return text
}
