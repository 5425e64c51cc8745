package main

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdssock"
)

// Over InfiniBand the last messages wait for an acknowledgement until there are more: that is
// no fault. This test comes first: connections to nobody stay.
func TestDoctorFindsNothingWrongWithRDMAAtRest(t *testing.T) {
	labtest.Need(t, labtest.RDMA, labtest.Root)
	r := labtest.RunOn(t, 0, "doctor", "--json", "--local", "10.8.0.1", "--probe", "10.8.0.2")
	wantHealthy(t, r)
	if !strings.Contains(r.Stdout, `"check":"rdma","subject":"10.8.0.1","verdict":"ok","reason":"GID ::ffff:10.8.0.1 of rxe0 port 1"`) {
		t.Errorf("nothing of the GID:\n%s", r.Stdout)
	}
	leaveUnacknowledged(t)
	wantHealthy(t, labtest.RunOn(t, 0, "doctor", "--json", "--local", "10.8.0.2"))
	if r := labtest.RunOn(t, 0, "check", "--stuck"); r.Status != 0 {
		t.Errorf("check --stuck: %+v", r)
	}
}

// leaveUnacknowledged sends until a message stays in the queue for retransmission. The ones
// that ask for an acknowledgement do not.
func leaveUnacknowledged(t *testing.T) {
	t.Helper()
	from, to := netip.MustParseAddrPort("10.8.0.2:4900"), netip.MustParseAddrPort("10.8.0.1:4901")
	var ends []*rdssock.Conn
	for _, a := range []netip.AddrPort{from, to} {
		c, err := rdssock.Listen(a, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends = append(ends, c)
	}
	for range 9 {
		if _, err := ends[0].WriteToAddrPort([]byte("x"), to); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond) // an acknowledgement that was asked for comes sooner
		if strings.Contains(labtest.RunOn(t, 0, "-t", "--filter", "local=10.8.0.2").Stdout, " 10.8.0.1 ") {
			return
		}
	}
	t.Fatal("no message stays unacknowledged")
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
		" RTS\n",
	} {
		if r.Status != 0 || !strings.Contains(r.Stdout, want) {
			t.Errorf("status %d, no %q in\n%s%s", r.Status, want, r.Stdout, r.Stderr)
		}
	}
}

func TestWatchShowsWhatRDMAPortsSend(t *testing.T) {
	labtest.Need(t, labtest.RDMA, labtest.Root)
	from, to := netip.MustParseAddrPort("10.8.0.1:4902"), netip.MustParseAddrPort("10.8.0.2:4903")
	c, err := rdssock.Listen(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				c.WriteToAddrPort([]byte("x"), to) // nobody is there: it is acknowledged and dropped
			}
		}
	})
	r := labtest.RunOn(t, 0, "watch", "0.5", "--count", "4")
	close(done)
	sender.Wait()
	if r.Status != 0 || !strings.Contains(r.Stdout, " port rxe0/1 sent_pkts ") {
		t.Errorf("status %d, no counter of the port moved in\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
}
