package flow

// pending are the requests of a flow that have no answer, oldest first. Each has
// an index, 0 to depth-1 in turn. The memory grows with the most that there
// ever were, not with the depth.
type pending struct {
	depth  int
	slots  []slot // a ring of a power of two
	head   int
	n      int
	oldest int // index of the oldest
	open   int // how many of n have no answer
}

type slot struct {
	at   int64 // when it was sent, or should have been
	seq  uint32
	done bool
}

func (p *pending) full() bool { return p.n == p.depth }

func (p *pending) at(i int) *slot { return &p.slots[(p.head+i)&(len(p.slots)-1)] }

// nextIndex is the index of the next request.
func (p *pending) nextIndex() uint16 { return uint16(p.turn(p.oldest + p.n)) }

// turn brings an index below twice the depth back to those that there are.
func (p *pending) turn(index int) int {
	if index >= p.depth {
		index -= p.depth
	}
	return index
}

func (p *pending) push(s slot) {
	if p.n == len(p.slots) {
		grown := make([]slot, max(8, 2*len(p.slots)))
		for i := range p.n {
			grown[i] = *p.at(i)
		}
		p.slots, p.head = grown, 0
	}
	p.n++
	p.open++
	*p.at(p.n - 1) = s
}

// find returns the request of index that waits for its answer.
func (p *pending) find(index uint16) *slot {
	if int(index) >= p.depth {
		return nil
	}
	i := int(index) - p.oldest
	if i < 0 {
		i += p.depth
	}
	if i >= p.n {
		return nil
	}
	if s := p.at(i); !s.done {
		return s
	}
	return nil
}

// settle lets go of the oldest that are done.
func (p *pending) settle() {
	for p.n > 0 && p.at(0).done {
		p.head = (p.head + 1) & (len(p.slots) - 1)
		p.oldest = p.turn(p.oldest + 1)
		p.n--
	}
}

// close notes that a request has its answer, or will have none.
func (p *pending) close(s *slot) {
	s.done = true
	p.open--
}

// expire gives up those sent before t, and returns how many.
func (p *pending) expire(t int64) int {
	n := 0
	for i := range p.n {
		s := p.at(i)
		if s.at >= t {
			break
		}
		if !s.done {
			p.close(s)
			n++
		}
	}
	p.settle()
	return n
}

// owed are the answers that a flow has yet to send, oldest first.
type owed struct {
	ring []answer
	head int
	n    int
}

// An answer names the request that it is to.
type answer struct {
	index uint16
	seq   uint32
}

func (o *owed) push(v answer) {
	if o.n == len(o.ring) {
		grown := make([]answer, max(8, 2*len(o.ring)))
		for i := range o.n {
			grown[i] = o.at(i)
		}
		o.ring, o.head = grown, 0
	}
	o.ring[(o.head+o.n)&(len(o.ring)-1)] = v
	o.n++
}

// at is the i-th, of which the oldest is number 0.
func (o *owed) at(i int) answer { return o.ring[(o.head+i)&(len(o.ring)-1)] }

func (o *owed) first() answer { return o.ring[o.head] }

func (o *owed) pop() {
	o.head = (o.head + 1) & (len(o.ring) - 1)
	o.n--
}
