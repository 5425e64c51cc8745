package rdsinfo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyRDMACountersThatGrewHaveMoved(t *testing.T) {
	earlier := []RDMACounter{{"rxe0", 1, "sent_pkts", 5}, {"rxe0", 1, "rcvd_pkts", 7}, {"rxe0", 2, "sent_pkts", 1}, {"rxe1", 1, "sent_pkts", 9}, {"rxe0", 1, "gone", 3}}
	later := []RDMACounter{{"rxe0", 1, "sent_pkts", 8}, {"rxe0", 1, "rcvd_pkts", 7}, {"rxe0", 2, "sent_pkts", 2}, {"rxe1", 1, "sent_pkts", 2}, {"rxe0", 1, "new", 3}}
	want := []RDMACounterDelta{{later[0], 3}, {later[2], 1}}
	if diff := cmp.Diff(want, CompareRDMACounters(earlier, later)); diff != "" {
		t.Error(diff)
	}
}
