package flow

// maxGaps bounds the memory for what is missing. More gaps at a time only come
// from a peer that makes numbers up, or from a network without mercy: the oldest are then given up.
const maxGaps = 4096

// An Arrival is where in the sequence a message came in.
type Arrival uint8

const (
	InOrder Arrival = iota
	// Ahead of messages that have not come.
	Ahead
	// Behind a later message: it was missing until now.
	Behind
	// Duplicate of a message that came before.
	Duplicate
	// Implausible is a number that the sender cannot have reached.
	Implausible
)

// A Sequence keeps account of which messages of a flow have arrived. The zero
// Sequence expects message 0.
type Sequence struct {
	next  uint32
	gaps  []gap // of what is missing, oldest first
	given uint64
}

// A gap is messages from, up to but without to.
type gap struct{ from, to uint32 }

// Add takes in message seq. window is how far ahead it may be.
func (s *Sequence) Add(seq uint32, window uint32) Arrival {
	switch ahead := seq - s.next; {
	case ahead == 0:
		s.next++
		return InOrder
	case ahead <= window:
		s.miss(gap{s.next, seq})
		s.next = seq + 1
		return Ahead
	case s.next-seq > 1<<31: // neither ahead by little nor behind
		return Implausible
	}
	for i, g := range s.gaps {
		if seq-g.from >= g.to-g.from {
			continue
		}
		switch before, after := (gap{g.from, seq}), (gap{seq + 1, g.to}); {
		case before.from == before.to && after.from == after.to:
			s.gaps = append(s.gaps[:i], s.gaps[i+1:]...)
		case before.from == before.to:
			s.gaps[i] = after
		default:
			s.gaps[i] = before
			if after.from != after.to {
				s.gaps = append(s.gaps, gap{})
				copy(s.gaps[i+2:], s.gaps[i+1:])
				s.gaps[i+1] = after
			}
		}
		return Behind
	}
	return Duplicate
}

func (s *Sequence) miss(g gap) {
	if len(s.gaps) >= maxGaps {
		s.given += uint64(s.gaps[0].to - s.gaps[0].from)
		s.gaps = append(s.gaps[:0], s.gaps[1:]...)
	}
	s.gaps = append(s.gaps, g)
}

// Advance is Add for the message that is expected next.
func (s *Sequence) Advance() { s.next++ }

// Next is the number that is expected next.
func (s *Sequence) Next() uint32 { return s.next }

// Missing is how many messages before Next have not arrived.
func (s *Sequence) Missing() uint64 {
	n := s.given
	for _, g := range s.gaps {
		n += uint64(g.to - g.from)
	}
	return n
}

// MissingOf is how many of the sent messages 0 to sent-1 have not arrived, if
// sent is plausible.
func (s *Sequence) MissingOf(sent uint32, window uint32) (uint64, bool) {
	if ahead := sent - s.next; ahead <= window {
		return s.Missing() + uint64(ahead), true
	}
	return s.Missing(), false
}
