package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
)

// A faultyRun is a verified run between hosts 1 and 2, both of which print JSON.
type faultyRun struct {
	active, passive         *labtest.Process
	activeOut, passiveWatch *watch
}

// startFaulty starts a run that lasts for a time, and returns when it counts.
func startFaulty(t *testing.T, port int, lasts time.Duration) *faultyRun {
	t.Helper()
	passive := labtest.Command(t, "-r", "10.9.0.2", "-p", fmt.Sprint(port), "--json")
	active := labtest.Command(t, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", fmt.Sprint(port), "--connect-retries", "10",
		"-v", "-t", "2", "-d", "8", "-T", fmt.Sprint(int(lasts.Seconds())), "--warmup", "0.4", "--json")
	f := &faultyRun{activeOut: newWatch(active, `"interval"`), passiveWatch: newWatch(passive, `"interval"`)}
	f.passive = labtest.StartOn(t, 2, passive)
	f.active = labtest.StartOn(t, 1, active)
	f.activeOut.wait(t)
	return f
}

// finish returns how both sides ended.
func (f *faultyRun) finish(t *testing.T) (active, passive labtest.Result, a, p jsonEnd) {
	t.Helper()
	active, passive = f.active.Finish(t), f.passive.Finish(t)
	active.Stdout, passive.Stdout = f.activeOut.String(), f.passiveWatch.String()
	return active, passive, end(t, active), end(t, passive)
}

// lasts is how long a run with faults goes on.
func lasts(short time.Duration) time.Duration {
	if testing.Short() {
		return short
	}
	return 60 * time.Second
}

// accounted fails the test if a message was sent of which the other side does not know what became.
func accounted(t *testing.T, active, passive labtest.Result, a, p jsonEnd) {
	t.Helper()
	if a.PeerFaults == nil || p.PeerFaults == nil {
		t.Fatalf("no account of the peer\n%s%s", active.Stderr, passive.Stderr)
	}
	t.Logf("active %+v\npassive %+v\nlongest gap %v", *a.Faults, *p.Faults, time.Duration(a.Gap))
	for _, side := range []struct {
		name string
		jsonEnd
	}{{"active", a}, {"passive", p}} {
		f, peer := side.Faults, side.PeerFaults
		if peer.Sent == 0 || f.Messages+f.Lost != peer.Sent || f.Undelivered > 0 {
			t.Errorf("%s side: %d sent to it, %d received, %d lost, %d undelivered", side.name, peer.Sent, f.Messages, f.Lost, f.Undelivered)
		}
	}
	if *a.Faults != *p.PeerFaults || *p.Faults != *a.PeerFaults {
		t.Error("the sides disagree")
	}
	faulty := a.Faults.Lost+a.Faults.Duplicated+a.Faults.Reordered+a.Faults.Damaged+a.Faults.Foreign+a.Faults.GivenUp-a.Faults.Late+
		p.Faults.Lost+p.Faults.Duplicated+p.Faults.Reordered+p.Faults.Damaged+p.Faults.Foreign+p.Faults.GivenUp-p.Faults.Late > 0
	if status := map[bool]int{true: 1}[faulty]; active.Status != status || passive.Status != status || a.OK == faulty {
		t.Errorf("active %d, passive %d, faulty %v\n%s%s", active.Status, passive.Status, faulty, active.Stderr, passive.Stderr)
	}
}

// noFaults is for what TCP makes good.
func noFaults(t *testing.T, a jsonEnd) {
	t.Helper()
	if !a.OK || a.Unanswered != 0 {
		t.Errorf("%+v, peer %+v, %d without an answer", a.Faults, a.PeerFaults, a.Unanswered)
	}
}

func TestLossDuplicatesCorruptionAndReorderingOnTheWayLoseNothing(t *testing.T) {
	needHosts(t, 2)
	labtest.Host(t, 1).Netem("loss 1% duplicate 1% corrupt 0.1% reorder 5% delay 1ms")
	labtest.Host(t, 2).Netem("loss 1% duplicate 1% corrupt 0.1% reorder 5% delay 1ms")
	f := startFaulty(t, 9000, lasts(3*time.Second))
	active, passive, a, p := f.finish(t)
	accounted(t, active, passive, a, p)
	noFaults(t, a)
}

func TestCutsOfTheLinkLoseNothing(t *testing.T) {
	needHosts(t, 2)
	run := lasts(6 * time.Second)
	f := startFaulty(t, 9010, run)
	h := labtest.Host(t, 2)
	// The last cut leaves time for answers.
	for left := run - 2*time.Second; left >= 4*time.Second; left -= 10 * time.Second {
		h.Cut()
		time.Sleep(2 * time.Second)
		h.Mend()
		if left >= 14*time.Second {
			time.Sleep(8 * time.Second)
		}
	}
	active, passive, a, p := f.finish(t)
	accounted(t, active, passive, a, p)
	noFaults(t, a)
	if time.Duration(a.Gap) < time.Second {
		t.Errorf("the longest gap is %v, of a cut of 2 s", time.Duration(a.Gap))
	}
}

// resetConnections has rds_tcp reset all connections of host n (net/rds/tcp.c, rds_tcp_sysctl_reset).
func resetConnections(t *testing.T, n int) {
	t.Helper()
	const name = "/proc/sys/net/rds/tcp/rds_tcp_sndbuf"
	// Any size will do, but for the default of 0, which it does not take back.
	err := labtest.Host(t, n).Do(func() error { return os.WriteFile(name, []byte("262144"), 0) })
	if err != nil {
		t.Fatal(err)
	}
}

// Paths of a connection may swap when it is reset, before a20a6992558f of 2026: then the kernel loses messages
// or delivers them twice, which has to show.
func TestWhatTheKernelLosesInResetsIsReported(t *testing.T) {
	needHosts(t, 2)
	run := lasts(4 * time.Second)
	f := startFaulty(t, 9020, run)
	for until := time.Now().Add(run - 2*time.Second); time.Now().Before(until); time.Sleep(3 * time.Second) {
		resetConnections(t, 2)
	}
	active, passive, a, p := f.finish(t)
	accounted(t, active, passive, a, p)
}

func TestAnAddressThatMovesEndsTheRun(t *testing.T) {
	needHosts(t, 3)
	f := startFaulty(t, 9030, lasts(20*time.Second))
	t.Cleanup(func() {
		for n := range 3 {
			resetConnections(t, n+1) // those that ended elsewhere
		}
	})
	moved := time.Now()
	labtest.Host(t, 2).Move(labtest.Host(t, 3))
	active, passive, a, p := f.finish(t)
	t.Logf("ended after %v\n%s%s", time.Since(moved), active.Stderr, passive.Stderr)
	if took := time.Since(moved); took > 15*time.Second {
		t.Errorf("noticed after %v", took)
	}
	for _, side := range []struct {
		labtest.Result
		jsonEnd
	}{{active, a}, {passive, p}} {
		outstanding := 0
		for _, o := range side.Outstanding {
			outstanding += o.Requests
		}
		if side.Status != 1 || side.OK || side.Error == nil || !strings.Contains(*side.Error, "the peer is gone") {
			t.Errorf("%s side: status %d, error %v", side.Side, side.Status, side.Error)
		}
		if outstanding != side.Unanswered || side.PeerFaults != nil {
			t.Errorf("%s side: %d without an answer, of which %d are listed", side.Side, side.Unanswered, outstanding)
		}
	}
	if a.Unanswered == 0 {
		t.Error("the active side had all answers of a host that is gone")
	}
}

func TestAStoppedPeerThatGoesOnIsForgiven(t *testing.T) {
	needHosts(t, 2)
	f := startFaulty(t, 9040, lasts(5*time.Second))
	f.passive.Process.Signal(syscall.SIGSTOP)
	time.Sleep(2 * time.Second)
	f.passive.Process.Signal(syscall.SIGCONT)
	active, passive, a, p := f.finish(t)
	accounted(t, active, passive, a, p)
	noFaults(t, a)
}
