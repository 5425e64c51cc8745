package flow

import (
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// A Mismatch is how a message differs from the one that was expected.
type Mismatch struct {
	Want, Got wire.Header
	// Wrong of the Total bytes of the payload differ, from Offset on. Wrong is 0 if the header does.
	Offset, Wrong, Total int
}

// Mismatch compares a message in which Receive found a fault. It is nil if there is nothing to compare.
func (f *Flow) Mismatch(b []byte, r *Received) *Mismatch {
	s := f.shape
	got, ok := s.Layout.Parse(b)
	if !ok {
		return nil
	}
	want, _ := s.Layout.Parse(f.expect[:])
	want.Seq, want.Index, want.Op, want.RDMA, want.Retry = r.Expected, got.Index, got.Op, got.RDMA, got.Retry
	m := &Mismatch{Want: want, Got: got}
	switch r.Fault {
	case BadPayload:
		payload := b[s.Layout:]
		m.Total = len(payload)
		for i, c := range s.payload(got.Seq, len(b)) {
			if payload[i] == c {
				continue
			}
			if m.Wrong == 0 {
				m.Offset = i
			}
			m.Wrong++
		}
	case BadHeader, Unexpected:
		if got.Op == wire.Ack && f.pending.open > 0 {
			want.Index = uint16(f.pending.oldest)
			m.Want = want
		}
	case Skipped, Reordered, Duplicated, BadSequence:
	default:
		return nil
	}
	return m
}
