package flow

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rdskit/rdskit/internal/stress/wire"
)

func TestAMismatchSaysWhatDiffers(t *testing.T) {
	local, remote := netip.MustParseAddrPort("10.9.0.1:4001"), netip.MustParseAddrPort("10.9.0.2:4001")
	shape := &Shape{Layout: wire.Async, Depth: 4, ReqSize: 100, AckSize: 63, Verify: true}
	shape.Prepare()
	good := wire.Header{From: remote, To: local, Op: wire.Request}
	header := func(change func(*wire.Header)) wire.Header {
		h := good
		change(&h)
		return h
	}
	for _, tt := range []struct {
		name   string
		header wire.Header
		spoil  []int // bytes of the payload
		want   *Mismatch
	}{
		{"nothing", good, nil, nil},
		{"payload", good, []int{5, 7, 30}, &Mismatch{Want: good, Got: good, Offset: 5, Wrong: 3, Total: 37}},
		{"sequence", header(func(h *wire.Header) { h.Seq = 3 }), nil, &Mismatch{Want: good, Got: header(func(h *wire.Header) { h.Seq = 3 })}},
		{"address", header(func(h *wire.Header) { h.To = remote }), nil, &Mismatch{Want: good, Got: header(func(h *wire.Header) { h.To = remote })}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := New(shape, local, remote)
			b := make([]byte, 63)
			shape.Layout.Put(b, &tt.header)
			b = wire.AppendPattern(b, 37)
			for _, i := range tt.spoil {
				b[63+i] ^= 0xff
			}
			r := f.Receive(b)
			got := f.Mismatch(b, r)
			if r.Fault == NoFault {
				got = nil
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
