package flow

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/stress/wire"
)

var (
	here  = netip.MustParseAddrPort("10.0.0.1:4001")
	there = netip.MustParseAddrPort("10.0.0.2:4001")
)

// A pair is the two ends of a flow, with the messages under way between them.
type pair struct {
	a, b       *Flow
	toA, toB   [][]byte
	messagesTo uint64 // B
}

func newPair(shape Shape) *pair {
	shape.Prepare()
	return &pair{a: New(&shape, here, there), b: New(&shape, there, here)}
}

func message(header, payload []byte) []byte {
	return append(append([]byte(nil), header...), payload...)
}

// fill sends as many requests from A to B as may be.
func (p *pair) fill(size int) {
	for !p.a.Full() {
		p.toB = append(p.toB, message(p.a.Request(size)))
		p.a.RequestSent(size, 1)
		p.messagesTo++
	}
}

// answer delivers what is under way to B, which answers.
func (p *pair) answer() {
	for _, m := range p.toB {
		p.b.Receive(m)
	}
	p.toB = nil
	for p.b.Owes() > 0 {
		p.toA = append(p.toA, message(p.b.Ack()))
		p.b.AckSent()
	}
}

// drain delivers all that is under way and the answers to it.
func (p *pair) drain() {
	for len(p.toA)+len(p.toB) > 0 {
		p.answer()
		for _, m := range p.toA {
			p.a.Receive(m)
		}
		p.toA = nil
	}
}

func shapes() map[string]Shape {
	return map[string]Shape{
		"C header":              {Layout: wire.Async, Depth: 7, ReqSize: 256, AckSize: 63, Verify: true},
		"header of 60 bytes":    {Layout: wire.Basic, Depth: 7, ReqSize: 256, AckSize: 60, Verify: true},
		"between two of rdskit": {Layout: wire.Async, Depth: 7, ReqSize: 256, AckSize: 100, Verify: true, Peer: true},
		"with checksum":         {Layout: wire.Async, Depth: 7, ReqSize: 256, AckSize: 63, Peer: true, CRC: true},
		"IPv6":                  {Layout: wire.Async6, Depth: 1, ReqSize: 96, AckSize: 96, Verify: true, Peer: true},
	}
}

func TestAFlowWithoutFaultsHasNone(t *testing.T) {
	for name, shape := range shapes() {
		t.Run(name, func(t *testing.T) {
			p := newPair(shape)
			for range 100 {
				p.fill(shape.ReqSize)
				p.drain()
			}
			n := uint64(100 * shape.Depth)
			if diff := cmp.Diff(Account{RequestsSent: n, RequestBytesSent: n * uint64(shape.ReqSize),
				AcksReceived: n, AckBytesReceived: n * uint64(shape.AckSize)}, p.a.Account); diff != "" {
				t.Errorf("A (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(Account{RequestsReceived: n, RequestBytesReceived: n * uint64(shape.ReqSize),
				AcksSent: n, AckBytesSent: n * uint64(shape.AckSize)}, p.b.Account); diff != "" {
				t.Errorf("B (-want +got):\n%s", diff)
			}
			if p.a.Pending() != 0 || p.b.Incoming().Missing() != 0 {
				t.Errorf("%d pending, %d missing", p.a.Pending(), p.b.Incoming().Missing())
			}
		})
	}
}

// Each fault is put into the verifier's own input N times, and must be found N times.
func TestFaultsAreFoundAsOftenAsTheyWereMade(t *testing.T) {
	const n = 37
	for _, tt := range []struct {
		name string
		make func(r *rand.Rand, in [][]byte, at int) [][]byte
		want Account // but for the counts of messages
		lost uint64
	}{
		{name: "lost", lost: n, make: func(_ *rand.Rand, in [][]byte, at int) [][]byte {
			return append(in[:at:at], in[at+1:]...)
		}},
		{name: "doubled", want: Account{Duplicated: n}, make: func(_ *rand.Rand, in [][]byte, at int) [][]byte {
			return append(in[:at+1:at+1], in[at:]...)
		}},
		{name: "swapped", want: Account{Reordered: n}, make: func(_ *rand.Rand, in [][]byte, at int) [][]byte {
			in[at], in[at+1] = in[at+1], in[at]
			return in
		}},
		{name: "damaged", want: Account{Damaged: n}, make: func(r *rand.Rand, in [][]byte, at int) [][]byte {
			in[at][64+r.IntN(len(in[at])-64)] ^= byte(1 + r.IntN(255))
			return in
		}},
		{name: "cut short", want: Account{Damaged: n}, make: func(r *rand.Rand, in [][]byte, at int) [][]byte {
			in[at] = in[at][:63+r.IntN(len(in[at])-63)]
			return in
		}},
		{name: "the payload of another place", want: Account{Damaged: n}, make: func(_ *rand.Rand, in [][]byte, at int) [][]byte {
			copy(in[at][63:], in[at][64:])
			return in
		}},
	} {
		for _, answers := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, answers %v", tt.name, answers), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				p := newPair(Shape{Layout: wire.Async, Depth: 64, ReqSize: 512, AckSize: 512, Verify: true, Peer: true})
				sender, receiver, under := p.a, p.b, &p.toB
				if answers {
					sender, receiver, under = p.b, p.a, &p.toA
				}
				sent := uint64(0)
				for made := 0; ; made++ {
					p.fill(512)
					if answers {
						p.answer()
					}
					sent += uint64(len(*under))
					if made == n {
						p.drain()
						break
					}
					*under = tt.make(r, *under, r.IntN(len(*under)-1))
					p.drain()
					p.a.Expire(2) // so that lost ones do not fill the flow
				}
				if missing, ok := receiver.MissingOf(sender.Sent()); !ok || missing != tt.lost {
					t.Errorf("%d missing, want %d", missing, tt.lost)
				}
				got := receiver.Account
				if received := got.RequestsReceived + got.AcksReceived; received != sent-tt.lost {
					t.Errorf("%d received of %d sent", received, sent)
				}
				got = Account{Reordered: got.Reordered, Duplicated: got.Duplicated, Damaged: got.Damaged, Foreign: got.Foreign}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				other := sender.Account
				if other = (Account{Reordered: other.Reordered, Duplicated: other.Duplicated, Damaged: other.Damaged, Foreign: other.Foreign}); other != (Account{}) {
					t.Errorf("where nothing was done: %+v", other)
				}
				if p.a.Account.GivenUp != tt.lost {
					t.Errorf("%d requests given up, want %d", p.a.Account.GivenUp, tt.lost)
				}
			})
		}
	}
}

func TestAChecksumFindsDamageInTheHeader(t *testing.T) {
	for _, at := range []int{16, 17, 19, 20, 27, 35} {
		p := newPair(Shape{Layout: wire.Async, Depth: 500, ReqSize: 128, AckSize: 63, Peer: true, CRC: true})
		p.fill(128)
		p.toB[3][at] ^= 1
		p.drain()
		if p.b.Account.Damaged != 1 {
			t.Errorf("byte %d: %+v", at, p.b.Account)
		}
	}
}

func TestOthersMessagesAreNotTaken(t *testing.T) {
	p := newPair(Shape{Layout: wire.Async, Depth: 4, ReqSize: 128, AckSize: 63})
	p.fill(128)
	for i, at := range []int{4, 8, 13, 15, 16, 18} {
		m := append([]byte(nil), p.toB[0]...)
		m[0] = 0 // each its own place in the sequence
		m[3] = byte(i)
		m[at] ^= 0x10
		if r := p.b.Receive(m); r.Op != 0 || r.Fault != BadHeader {
			t.Errorf("byte %d: %+v", at, r)
		}
	}
	if p.b.Owes() != 0 || p.b.Account.Damaged != 6 {
		t.Errorf("owes %d, %+v", p.b.Owes(), p.b.Account)
	}
	short := make([]byte, 62)
	if r := p.b.Receive(short); r.Fault != BadLength {
		t.Errorf("a short one: %+v", r)
	}
	far := append([]byte(nil), p.toB[0]...)
	far[0] = 0x7f
	if r := p.b.Receive(far); r.Fault != BadSequence {
		t.Errorf("a far one: %+v", r)
	}
	if p.b.Account.Damaged != 8 {
		t.Errorf("%+v", p.b.Account)
	}
}

func TestAnAnswerToNothingIsForeign(t *testing.T) {
	p := newPair(Shape{Layout: wire.Async, Depth: 4, ReqSize: 128, AckSize: 63, Peer: true})
	p.fill(128)
	for _, m := range p.toB {
		p.b.Receive(m)
	}
	answer := message(p.b.Ack())
	if r := p.a.Receive(answer); r.Fault != NoFault || r.SentAt != 1 {
		t.Fatalf("the answer: %+v", r)
	}
	wire.PutMessage(answer, 1, 0, wire.Ack)
	if r := p.a.Receive(answer); r.Fault != Unexpected {
		t.Errorf("another answer to the same: %+v", r)
	}
	wire.PutMessage(answer, 2, 1, wire.Ack)
	if r := p.a.Receive(answer); r.Fault != Unexpected {
		t.Errorf("an answer that names another request: %+v", r)
	}
	if p.a.Account.Foreign != 2 {
		t.Errorf("%+v", p.a.Account)
	}
}

func TestAnAnswerThatComesLateIsNoFault(t *testing.T) {
	p := newPair(Shape{Layout: wire.Async, Depth: 4, ReqSize: 128, AckSize: 63, Peer: true})
	p.fill(128)
	late := p.toB
	if n := p.a.Expire(2); n != 4 || p.a.Account.Faults() != 4 {
		t.Fatalf("%d given up: %+v", n, p.a.Account)
	}
	p.toB = nil
	p.fill(128)
	p.toB = append(late, p.toB...)
	p.drain()
	if a := p.a.Account; a.Late != 4 || a.GivenUp != 4 || a.Faults() != 0 || a.AcksReceived != 8 || p.a.Pending() != 0 {
		t.Errorf("%d pending: %+v", p.a.Pending(), a)
	}
	p.fill(128)
	for _, m := range p.toB {
		p.b.Receive(m)
	}
	answer := message(p.b.Ack())
	p.a.Receive(answer)
	wire.PutMessage(answer, 9, 0, wire.Ack)
	if r := p.a.Receive(answer); r.Fault != Unexpected {
		t.Errorf("a second answer, with none awaited: %+v", r)
	}
	p.a.Expire(2)
	wire.PutMessage(answer, 10, 0, wire.Ack)
	wire.PutExtra(answer, wire.Extra{Acked: 1000})
	if r := p.a.Receive(answer); r.Fault != Unexpected || p.a.Awaited() != 3 {
		t.Errorf("an answer to what was never sent, with %d awaited: %+v", p.a.Awaited(), r)
	}
}

func TestSizesMayVary(t *testing.T) {
	p := newPair(Shape{Layout: wire.Async, Depth: 200, ReqSize: 1000, AckSize: 63, Verify: true, Peer: true, AnyReqSize: true})
	for size := 63; !p.a.Full(); size += 4 {
		p.toB = append(p.toB, message(p.a.Request(size)))
		p.a.RequestSent(size, 1)
	}
	p.drain()
	if p.b.Account.Faults() != 0 || p.b.Account.RequestsReceived != 200 || p.b.Account.RequestBytesReceived != p.a.Account.RequestBytesSent {
		t.Errorf("%+v", p.b.Account)
	}
}

func TestNothingIsAllocatedPerMessage(t *testing.T) {
	p := newPair(Shape{Layout: wire.Async, Depth: 8, ReqSize: 128, AckSize: 63, Verify: true, Peer: true, CRC: true})
	var b [256]byte
	turn := func() {
		header, payload := p.a.Request(128)
		n := copy(b[:], header)
		n += copy(b[n:], payload)
		p.a.RequestSent(128, 1)
		p.b.Receive(b[:n])
		header, payload = p.b.Ack()
		n = copy(b[:], header)
		n += copy(b[n:], payload)
		p.b.AckSent()
		p.a.Receive(b[:n])
	}
	turn()
	if n := testing.AllocsPerRun(1000, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if p.a.Account.Faults() != 0 {
		t.Errorf("%+v", p.a.Account)
	}
}

func TestSequence(t *testing.T) {
	for _, tt := range []struct {
		name    string
		in      []uint32
		last    Arrival
		missing uint64
	}{
		{"in order", []uint32{0, 1, 2}, InOrder, 0},
		{"a gap", []uint32{0, 4}, Ahead, 3},
		{"a gap filled from the front", []uint32{0, 4, 1, 2, 3}, Behind, 0},
		{"a gap filled from the back", []uint32{0, 4, 3, 2, 1}, Behind, 0},
		{"a gap filled in the middle", []uint32{0, 6, 3}, Behind, 4},
		{"once more", []uint32{0, 1, 2, 1}, Duplicate, 0},
		{"once more out of a gap", []uint32{0, 4, 2, 2}, Duplicate, 2},
		{"as far ahead as can be", []uint32{0, 101}, Ahead, 100},
		{"too far ahead", []uint32{0, 102}, Implausible, 0},
		{"half of all ahead", []uint32{0, 1 << 31}, Implausible, 0},
		{"before the first", []uint32{0xffffffff}, Duplicate, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Sequence
			var last Arrival
			for _, seq := range tt.in {
				last = s.Add(seq, 100)
			}
			if last != tt.last || s.Missing() != tt.missing {
				t.Errorf("%d, %d missing; want %d, %d", last, s.Missing(), tt.last, tt.missing)
			}
		})
	}
}

func TestASequenceWrapsAround(t *testing.T) {
	s := Sequence{next: 0xfffffffe}
	for i, tt := range []struct {
		seq  uint32
		want Arrival
	}{{0xfffffffe, InOrder}, {0, Ahead}, {0xffffffff, Behind}, {0xffffffff, Duplicate}, {1, InOrder}} {
		if got := s.Add(tt.seq, 100); got != tt.want {
			t.Errorf("message %d: %d, want %d", i, got, tt.want)
		}
	}
	if n, ok := s.MissingOf(5, 100); n != 3 || !ok {
		t.Errorf("%d missing of those sent", n)
	}
	if _, ok := s.MissingOf(5000, 100); ok {
		t.Error("an impossible number of messages passes")
	}
}

func FuzzSequence(f *testing.F) {
	f.Add([]byte{0, 3, 2, 1, 1, 9, 4})
	f.Fuzz(func(t *testing.T, in []byte) {
		var s Sequence
		seen := map[uint32]bool{}
		duplicates := 0
		for _, b := range in {
			seq := uint32(b)
			if a := s.Add(seq, 256); (a == Duplicate) != seen[seq] {
				t.Fatalf("%v: %d is %d", in, seq, a)
			} else if a == Duplicate {
				duplicates++
			}
			seen[seq] = true
		}
		if got := int(s.Next()) - len(seen); int(s.Missing()) != got {
			t.Errorf("%v: %d missing, want %d", in, s.Missing(), got)
		}
	})
}

func FuzzReceive(f *testing.F) {
	p := newPair(Shape{Layout: wire.Async, Depth: 4, ReqSize: 128, AckSize: 63})
	p.fill(128)
	f.Add(p.toB[0])
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPair(Shape{Layout: wire.Async, Depth: 4, ReqSize: 128, AckSize: 63, Verify: true, Peer: true, CRC: true, AnyReqSize: true})
		p.fill(128)
		p.a.Receive(b)
		p.b.Receive(b)
		if p.b.Owes() > 1 {
			t.Error("one message makes two requests")
		}
	})
}

func BenchmarkARequestAndItsAnswer(b *testing.B) {
	p := newPair(Shape{Layout: wire.Async, Depth: 8, ReqSize: 64, AckSize: 64, Peer: true})
	for b.Loop() {
		request, _ := p.a.Request(64)
		p.a.RequestSent(64, 1)
		p.b.Receive(request)
		ack, _ := p.b.Ack()
		p.b.AckSent()
		p.a.Receive(ack)
	}
}

// A peer that skips every other number has no memory for each.
func TestGapsAreBounded(t *testing.T) {
	var s Sequence
	const skipped = 3 * maxGaps
	for i := range uint32(skipped) {
		s.Add(2*i+1, 100)
	}
	if len(s.gaps) > maxGaps || s.Missing() != skipped {
		t.Errorf("%d gaps are kept, and %d messages missing of %d", len(s.gaps), s.Missing(), skipped)
	}
}
