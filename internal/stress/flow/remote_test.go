package flow

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/stress/wire"
)

func TestRequestsAskInTurnFromTheEleventhOn(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode wire.RDMAMode
		flow int
		want []wire.RDMAOp
	}{
		{"reads and writes", wire.RDMAReadWrite, 0, []wire.RDMAOp{wire.RDMARead, wire.RDMAWrite, wire.RDMARead}},
		{"an odd flow begins with a write", wire.RDMAReadWrite, 3, []wire.RDMAOp{wire.RDMAWrite, wire.RDMARead, wire.RDMAWrite}},
		{"reads", wire.RDMAReadOnly, 1, []wire.RDMAOp{wire.RDMARead, wire.RDMARead, wire.RDMARead}},
		{"writes", wire.RDMAWriteOnly, 0, []wire.RDMAOp{wire.RDMAWrite, wire.RDMAWrite, wire.RDMAWrite}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := NewRemote(&RDMA{Size: 8192, Vector: 2, Mode: tt.mode}, tt.flow, 4, 0x92)
			if r := m.Ask(wire.FirstRDMA - 1); r != (wire.RDMA{}) {
				t.Errorf("a request before the eleventh asks for %+v", r)
			}
			for i, op := range tt.want {
				seq := uint32(wire.FirstRDMA + i)
				m.Ask(seq) // one that was not sent changes nothing
				r := m.Ask(seq)
				want := wire.RDMA{Op: op, Pattern: uint64(seq)<<32 | 0x92, Size: 8192, Vector: 2}
				if diff := cmp.Diff(want, r); diff != "" {
					t.Errorf("request %d (-want +got):\n%s", i, diff)
				}
				m.Asked(uint16(i), &r)
			}
		})
	}
}

func TestOnlyTheAnswerToWhatWasAskedPasses(t *testing.T) {
	asked := wire.RDMA{Op: wire.RDMARead, Addr: 0x1000, Pattern: 12 << 32, Key: 0x400, Size: 8192, Vector: 1}
	for _, tt := range []struct {
		name   string
		change func(*wire.RDMA)
		ok     bool
	}{
		{"as asked", func(*wire.RDMA) {}, true},
		{"a read that was over before, by C 2.3", func(r *wire.RDMA) { r.Op = wire.NoRDMA }, true},
		{"another operation", func(r *wire.RDMA) { r.Op = wire.RDMAWrite }, false},
		{"another key", func(r *wire.RDMA) { r.Key++ }, false},
		{"another pattern", func(r *wire.RDMA) { r.Pattern++ }, false},
		{"none", func(r *wire.RDMA) { *r = wire.RDMA{} }, false},
	} {
		m := NewRemote(&RDMA{Size: 8192, Vector: 1}, 0, 2, 0)
		m.Asked(1, &asked)
		answer := asked
		tt.change(&answer)
		got, ok := m.Answered(1, &answer)
		if ok != tt.ok || got != asked {
			t.Errorf("%s: %v, for %+v", tt.name, ok, got)
		}
	}
	m := NewRemote(&RDMA{Size: 8192, Vector: 1}, 0, 2, 0)
	if _, ok := m.Answered(0, &wire.RDMA{}); !ok {
		t.Error("the answer without an operation to a request without one does not pass")
	}
	if _, ok := m.Answered(0, &asked); ok {
		t.Error("an operation that was not asked for passes")
	}
}

func TestRequestsOfThePeerAreTakenAsAgreed(t *testing.T) {
	good := wire.RDMA{Op: wire.RDMAWrite, Addr: 0x1000, Pattern: 5, Size: 8192, Vector: 2}
	for _, tt := range []struct {
		name   string
		change func(*wire.RDMA)
		key    uint64
		ok     bool
		want   uint64 // key
	}{
		{"a key that came with the message", func(*wire.RDMA) {}, 0x300, true, 0x300},
		{"it counts more than the one inside", func(r *wire.RDMA) { r.Key = 1 }, 0x300, true, 0x300},
		{"a key inside alone", func(r *wire.RDMA) { r.Key = 1 }, 0, true, 1},
		{"nothing", func(r *wire.RDMA) { *r = wire.RDMA{} }, 0, true, 0},
		{"no key", func(*wire.RDMA) {}, 0, false, 0},
		{"a key for nothing", func(r *wire.RDMA) { *r = wire.RDMA{} }, 0x300, false, 0},
		{"larger than agreed", func(r *wire.RDMA) { r.Size++ }, 0x300, false, 0},
		{"more elements than agreed", func(r *wire.RDMA) { r.Vector = 1 << 31 }, 0x300, false, 0},
		{"an unknown operation", func(r *wire.RDMA) { r.Op = 3 }, 0x300, false, 0},
	} {
		m := NewRemote(&RDMA{Size: 8192, Vector: 2}, 0, 2, 0)
		r := good
		tt.change(&r)
		if ok := m.Take(1, r, tt.key); ok != tt.ok || m.Job(1).Want.Key != tt.want {
			t.Errorf("%s: %v, %+v", tt.name, ok, m.Job(1).Want)
		}
	}
}

func TestARequestMayComeBeforeTheEndOfTheLast(t *testing.T) {
	m := NewRemote(&RDMA{Size: 8, Vector: 1}, 0, 1, 0)
	first := wire.RDMA{Op: wire.RDMAWrite, Pattern: 1, Key: 1, Size: 8, Vector: 1}
	second := wire.RDMA{Op: wire.RDMARead, Pattern: 2, Key: 2, Size: 8, Vector: 1}
	m.Take(0, first, 0)
	job := m.Job(0)
	job.Begin(1, false)
	m.Take(0, second, 0)
	if job.Doing != first || job.Want != second || !job.UnderWay || m.UnderWay() != 1 {
		t.Errorf("%+v", job)
	}
	job.End()
	if job.Done || job.UnderWay || m.UnderWay() != 0 {
		t.Errorf("after the end of the first: %+v", job)
	}
	job.Begin(2, true)
	job.End()
	if !job.Done {
		t.Errorf("what was done ahead is to be answered: %+v", job)
	}
}

func TestCIsCheckedAsFarAsItFills(t *testing.T) {
	memory := make([]byte, 32)
	r := &RDMA{Size: 16, Vector: 2, Verify: true}
	wire.Repeated.Fill(memory[:16], 7)
	if at := r.Check(memory, 7); at != -1 {
		t.Errorf("differs at %d", at)
	}
	memory[15]++
	if at := r.Check(memory, 7); at != 15 {
		t.Errorf("differs at %d, want 15", at)
	}
	both := &RDMA{Size: 16, Vector: 2, Verify: true, Peer: true}
	both.Fill(memory, 7)
	memory[31]++
	if at := both.Check(memory, 7); at != 31 {
		t.Errorf("differs at %d, want 31", at)
	}
	both.Verify = false
	if at := both.Check(memory, 7); at != -1 {
		t.Errorf("is checked although it was not asked for: %d", at)
	}
}
