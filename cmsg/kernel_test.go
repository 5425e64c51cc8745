package cmsg

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// received is what a receive of testdata/kernel-6.1.176.txt says.
type received struct {
	Name  string
	Size  int // of the control buffer
	Flags int // msg_flags

	Stamp      time.Time
	Latency    RXPathLatency
	Completion ZerocopyCompletion
	Congestion CongestionMask
	Truncated  bool
}

const ctrunc = 0x8 // MSG_CTRUNC

// A control buffer that is too small leaves a cut message, or none at all: then
// only the flag tells.
func TestWhatAKernelWroteIsDecoded(t *testing.T) {
	at := func(usec int64) time.Time { return time.Unix(0x6b0fc68e, usec*1000) }
	latency := func(delivery time.Duration) RXPathLatency {
		return RXPathLatency{N: 3, Traces: [3]RXTrace{{Point: RXHeaderToStart}, {Point: RXReassembly}, {RXDelivery, delivery}}}
	}
	want := []received{
		{Name: "timestamp+latency", Size: 80, Stamp: at(0x589a), Latency: latency(10 * time.Millisecond)},
		{Name: "timestamp+latency", Size: 79, Flags: ctrunc, Stamp: at(0x9562), Truncated: true},
		{Name: "timestamp+latency", Size: 56, Flags: ctrunc, Stamp: at(0x1556c), Truncated: true},
		{Name: "timestamp+latency", Size: 48, Flags: ctrunc, Stamp: at(0x1a493), Truncated: true},
		{Name: "timestamp+latency", Size: 47, Flags: ctrunc, Stamp: at(0x1be0b)},
		{Name: "timestamp+latency", Size: 31, Flags: ctrunc, Truncated: true},
		{Name: "timestamp+latency", Size: 24, Flags: ctrunc, Truncated: true},
		{Name: "timestamp+latency", Size: 16, Flags: ctrunc, Truncated: true},
		{Name: "timestamp-new+latency", Size: 1024, Stamp: at(0x2306e), Latency: latency(0)},
		{Name: "zerocopy-completion", Size: 1024, Completion: ZerocopyCompletion{N: 3, Cookies: [8]uint32{0x101, 0x102, 0x103}}},
		{Name: "congestion-update", Size: 1024, Congestion: CongestionMaskOf(7001)},
		{Name: "congestion-update", Size: 20, Flags: ctrunc, Truncated: true},
	}

	f, err := os.Open("testdata/kernel-6.1.176.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []received
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r received
		var digits string
		if _, err := fmt.Sscan(sc.Text(), &r.Name, &r.Size, &r.Flags, &digits); err != nil {
			t.Fatal(err)
		}
		oob, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		renumber(architectures[0].layout, oob)
		it := parse(architectures[0].layout, Mainline, oob)
		for it.Next() {
			m := it.Message()
			var err error
			switch m.Kind() {
			case KindTimestamp:
				r.Stamp, err = m.Timestamp()
			case KindRXPathLatency:
				r.Latency, err = m.RXPathLatency()
			case KindZerocopyCompletion:
				r.Completion, err = m.ZerocopyCompletion()
			case KindCongestionUpdate:
				r.Congestion, err = m.CongestionUpdate()
			default:
				t.Errorf("%s: kind %v", r.Name, m.Kind())
			}
			if errors.Is(err, ErrTruncated) {
				r.Truncated = true
			} else if err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
		}
		if err := it.Err(); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		got = append(got, r)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(time.Time{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
