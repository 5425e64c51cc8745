package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/stress"
	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// The texts are those of C rds-stress 2.0.7, but for from_addr, as which it prints to_addr.
func TestMismatchesAreToldAsByC(t *testing.T) {
	h := wire.Header{From: netip.MustParseAddrPort("10.9.0.2:4001"), To: netip.MustParseAddrPort("10.9.0.1:4001"), Seq: 1, Op: wire.Request}
	other := h
	other.Seq, other.Index = 27, 27
	for _, tt := range []struct {
		m    *flow.Mismatch
		want string
	}{
		{nil, ""},
		{&flow.Mismatch{Want: h, Got: h, Offset: 3, Wrong: 960, Total: 961},
			"An incoming message has a corrupted payload at offset 3; 960 out of 961 bytes corrupted\n"},
		{&flow.Mismatch{Want: h, Got: other}, `An incoming message had a  header which
didn't contain the fields we expected:
    member        expected eq             got
       seq               1 !=              27
 from_addr        10.9.0.2  =        10.9.0.2
 from_port            4001  =            4001
   to_addr        10.9.0.1  =        10.9.0.1
   to_port            4001  =            4001
     index               0 !=              27
        op               1  =               1
`},
	} {
		if diff := gocmp.Diff(tt.want, mismatch(tt.m)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestTheHistogramIsThatOfC(t *testing.T) {
	var s stress.Stats
	rows := func(shares map[int]string) string {
		text := "\nRTT histogram\nRTT (us)        \t\t    Count\n"
		for i := range 16 {
			share := cmp.Or(shares[i], "       0 \t\t (0.00%)")
			text += fmt.Sprintf("[%6d - %6d] \t\t %s\n", 1<<i, 2<<i, share)
		}
		return text
	}
	if diff := gocmp.Diff(rows(nil), histogram(&s)); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
	s.RTTs[1], s.RTTs[15], s.RTTs[17] = 1, 1, 1
	third := "       1 \t\t (33.33%)"
	want := rows(map[int]string{1: third, 15: third}) + // and what C does not print
		"[ 65536 - 131072] \t\t        0 \t\t (0.00%)\n[131072 - 262144] \t\t " + third + "\n"
	if diff := gocmp.Diff(want, histogram(&s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
