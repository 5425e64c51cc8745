package main

import (
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
)

// Over InfiniBand the last messages wait for an acknowledgement until there are more: that is
// no fault. This test comes first: connections to nobody stay.
func TestDoctorFindsNothingWrongWithRDMAAtRest(t *testing.T) {
	labtest.Need(t, labtest.RDMA, labtest.Root)
	for _, args := range [][]string{
		{"doctor", "--json", "--local", "10.8.0.1", "--probe", "10.8.0.2"},
		{"doctor", "--json", "--local", "10.8.0.2"},
	} {
		r := labtest.RunOn(t, 0, args...)
		wantHealthy(t, r)
		if !strings.Contains(r.Stdout, `"check":"rdma","subject":"10.8.0.1","verdict":"ok","reason":"GID ::ffff:10.8.0.1 of rxe0 port 1"`) && args[3] == "10.8.0.1" {
			t.Errorf("%q tells nothing of the GID:\n%s", args, r.Stdout)
		}
	}
	if r := labtest.RunOn(t, 0, "-t", "--filter", "local=10.8.0.2"); !strings.Contains(r.Stdout, " 10.8.0.1 ") {
		t.Errorf("no message waits: this test shows nothing\n%s", r.Stdout)
	}
}

func TestRowsOfRDMAKeepToTheFormatsOfC(t *testing.T) {
	labtest.Need(t, labtest.RDMA, labtest.Root)
	for _, to := range []string{"10.8.0.2", "fd08::2", "10.8.0.77"} {
		local := "10.8.0.1"
		if strings.Contains(to, ":") {
			local = "fd08::1"
		}
		labtest.RunOn(t, 0, "doctor", "--probe", "-i", "0.1", "--local", local, to)
	}
	if rows := checkColumns(t, 0); rows["I"] < 4 {
		t.Errorf("rows %v, want connections both ways, of IPv4 and IPv6, and to nobody", rows)
	}
	r := labtest.RunOn(t, 0, "-I", "--rdma")
	for _, want := range []string{
		"::ffff:10.8.0.1                  ::ffff:10.8.0.2            rxe0    1",
		"::                               ::            rxe0    1", // of a connection that is not up
	} {
		if r.Status != 0 || !strings.Contains(r.Stdout, want) {
			t.Errorf("status %d, no %q in\n%s%s", r.Status, want, r.Stdout, r.Stderr)
		}
	}
}
