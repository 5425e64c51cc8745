package info

import (
	"net/netip"
	"strconv"
)

// A row is a line of right-aligned columns, separated by one space. What is
// wider than its column pushes the others to the right, as with printf.
type row struct {
	b []byte
	// started is whether there is a column before the next.
	started bool
}

// reset begins a new row.
func (r *row) reset() { r.b, r.started = r.b[:0], false }

// column makes what f appends to the row a column.
func (r *row) column(width int, f func(b []byte) []byte) {
	if r.started {
		r.b = append(r.b, ' ')
	}
	r.started = true
	start := len(r.b)
	r.b = f(r.b)
	n := len(r.b) - start
	if n >= width {
		return
	}
	for range width - n {
		r.b = append(r.b, ' ')
	}
	copy(r.b[len(r.b)-n:], r.b[start:start+n])
	for i := range width - n {
		r.b[start+i] = ' '
	}
}

func (r *row) text(width int, s string) {
	r.column(width, func(b []byte) []byte { return append(b, s...) })
}

func (r *row) uint(width int, v uint64) {
	r.column(width, func(b []byte) []byte { return strconv.AppendUint(b, v, 10) })
}

func (r *row) int(width int, v int64) {
	r.column(width, func(b []byte) []byte { return strconv.AppendInt(b, v, 10) })
}

func (r *row) addr(width int, a netip.Addr) {
	r.column(width, a.AppendTo)
}
