package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdsinfo"
	"github.com/rdskit/rdskit/rdssock"
)

// dead is an address of the hosts' network that no host has.
const dead = "10.9.0.199"

var reply = regexp.MustCompile(`^ [ \d]{2,}\d: (\d+) usec$`)

// replies returns the numbers of the pings that were answered, from lines as C prints them.
func replies(t *testing.T, r labtest.Result) (seqs []int) {
	t.Helper()
	if r.Stdout == "" {
		return nil
	}
	for _, line := range r.Lines() {
		if !reply.MatchString(line) {
			t.Errorf("%q is no reply as C prints it", line)
			continue
		}
		n, _ := strconv.Atoi(strings.TrimSpace(line[:strings.Index(line, ":")]))
		seqs = append(seqs, n)
	}
	return seqs
}

// elapsed is how long the pings took by their summary: the process can take seconds to start on a busy machine.
func elapsed(t *testing.T, r labtest.Result) time.Duration {
	t.Helper()
	_, text, _ := strings.Cut(r.Stderr, ", time ")
	seconds, _, ok := strings.Cut(text, " s\n")
	n, err := strconv.ParseFloat(seconds, 64)
	if !ok || err != nil {
		t.Fatalf("no summary with a time in %q", r.Stderr)
	}
	return time.Duration(n * float64(time.Second))
}

func numbers(n int) []int {
	var s []int
	for i := range n {
		s = append(s, i+1)
	}
	return s
}

// needHosts states that a test needs n hosts that talk RDS over TCP.
func needHosts(t *testing.T, n int) {
	t.Helper()
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(n), labtest.Root)
}

// connect makes the connection from one host to another: kernels lose some of the
// messages that are sent meanwhile.
func connect(t *testing.T) {
	t.Helper()
	needHosts(t, 2)
	if r := labtest.RunOn(t, 1, "-c1", "-i", "10", "-q", "10.9.0.2"); r.Status != cli.OK {
		t.Fatalf("status %d, stderr %q", r.Status, r.Stderr)
	}
}

func TestThousandPingsOnLoopbackAreAnswered(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	n := 1000
	if testing.Short() {
		n = 200
	}
	r := labtest.RunOn(t, 0, "-c", strconv.Itoa(n), "-i", "1ms", "127.0.0.1")
	// When the process did not run for a while, answers are taken in any order.
	got := replies(t, r)
	slices.Sort(got)
	if r.Status != cli.OK || !slices.Equal(got, numbers(n)) {
		t.Errorf("status %d, %d replies; stderr %q", r.Status, len(got), r.Stderr)
	}
	if want := fmt.Sprintf("\n%d sent, %[1]d received, 0 late, 0%% lost, ", n); !strings.Contains(r.Stderr, want) {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// The ways in which public scripts call rds-ping: only the exit status counts,
// or that it ends.
func TestScriptsThatCallTheCToolGetWhatTheyExpect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		args    []string
		status  int
		replies int
		atMost  time.Duration
	}{
		{"a monitor of nodes and cells", []string{"-c1", "-i", "4", "10.9.0.2"}, cli.OK, 1, 4 * time.Second},
		{"the same, of a dead one", []string{"-c1", "-i", "4", dead}, cli.Failed, 0, 6 * time.Second},
		{"a provisioning script", []string{"-c", "3", "-I", "10.9.0.1", "10.9.0.2"}, cli.OK, 3, 4 * time.Second},
		{"a collector with names", []string{"-c", "1", "h2"}, cli.OK, 1, 2 * time.Second},
		{"a test of types of service", []string{"-c", "2", "10.9.0.2", "-Q", "3"}, cli.OK, 2, 3 * time.Second},
		{"the same, without one", []string{"-c", "2", "10.9.0.2", "-Q", "0"}, cli.OK, 2, 3 * time.Second},
		{"a test that fails when it hangs", []string{"-I", "10.9.0.1", "-c", "1", dead}, cli.Failed, 0, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			needHosts(t, 2)
			r := labtest.RunOn(t, 1, tt.args...)
			n, took := len(replies(t, r)), elapsed(t, r)
			if r.Status != tt.status || n != tt.replies || took > tt.atMost {
				t.Errorf("status %d, %d replies in %v; want %d, %d, at most %v; stderr %q", r.Status, n, took, tt.status, tt.replies, tt.atMost, r.Stderr)
			}
		})
	}
}

func TestADeadHostIsLostInTime(t *testing.T) {
	t.Parallel()
	needHosts(t, 2)
	r := labtest.RunOn(t, 1, "-c", "20", "-i", "0.2", dead)
	if took := elapsed(t, r); r.Status != cli.Failed || r.Stdout != "" || took < 4*time.Second || took > 6*time.Second {
		t.Errorf("status %d after %v, stdout %q", r.Status, took, r.Stdout)
	}
	for _, n := range numbers(20) {
		if want := "ping " + strconv.Itoa(n) + " to " + dead + " lost: "; strings.Count(r.Stderr, want) != 1 {
			t.Errorf("ping %d is not told as lost once; stderr %q", n, r.Stderr)
		}
	}
	if !strings.Contains(r.Stderr, "\n20 sent, 0 received, 0 late, 100% lost, ") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// A cut delays the pings that it catches, and those alone.
func TestACutCreditsNoPingToAnother(t *testing.T) {
	needHosts(t, 2)
	cut := 5 * time.Second
	runs := [][]string{{"-i", "0.1", "-W", "0.5"}, {"-i", "0.1"}}
	if testing.Short() {
		cut, runs = 1500*time.Millisecond, runs[:1]
	}
	for _, args := range runs {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			h2 := labtest.Host(t, 2)
			p := labtest.StartOn(t, 1, labtest.Command(t, append(args, "--json", "10.9.0.2")...))
			time.Sleep(time.Second)
			cutAt := time.Now()
			h2.Cut()
			time.Sleep(cut)
			mendAt := time.Now()
			h2.Mend()
			time.Sleep(cut + 3*time.Second)
			p.Process.Signal(syscall.SIGINT)
			r := p.Finish(t)
			parsed := objects(t, r)
			answered, after := 0, 0
			for _, o := range parsed {
				if o.Type != "reply" && o.Type != "late" {
					continue
				}
				answered++
				got := o.Time
				sent := got.Add(-time.Duration(*o.RTT))
				if sent.After(mendAt) {
					after++
				}
				// What was sent before the cut and answered after it, or sent in it, took until
				// it was mended; no answer may seem faster than the link was.
				if sent.After(cutAt.Add(50*time.Millisecond)) && got.Before(mendAt) {
					t.Errorf("ping %d, sent %v into the cut, seems to have been answered %v before its end",
						*o.Seq, sent.Sub(cutAt), mendAt.Sub(got))
				}
			}
			s := parsed[len(parsed)-1]
			if r.Status != cli.OK || s.Type != "summary" || s.Duplicates != 0 || answered != s.Received+s.Late {
				t.Fatalf("status %d, %d answers, summary %+v; stderr %q", r.Status, answered, s, r.Stderr)
			}
			if after == 0 || s.Lost == 0 || s.Sent != s.Received+s.Lost+s.Outstanding {
				t.Errorf("%d answers after the cut, summary %+v", after, s)
			}
			if diff := seqs(parsed, "reply", "lost"); !distinct(diff) {
				t.Errorf("a ping is both answered and lost, or twice so: %v", diff)
			}
		})
	}
}

func TestDelayShowsInTheRoundTrip(t *testing.T) {
	needHosts(t, 2)
	labtest.Need(t, labtest.Netem)
	labtest.Host(t, 2).Netem("delay 150ms")
	r := labtest.RunOn(t, 1, "-c", "8", "-i", "0.1", "--json", "10.9.0.2")
	n := 0
	for _, o := range objects(t, r) {
		if o.Type == "reply" {
			n++
			if *o.RTT < int64(150*time.Millisecond) {
				t.Errorf("ping %d took %d ns", *o.Seq, *o.RTT)
			}
		}
	}
	if n == 0 || r.Status != cli.OK {
		t.Errorf("status %d, %d replies; %s", r.Status, n, r.Stdout)
	}
}

func TestLateAnswersAreShownUnderTheirNumber(t *testing.T) {
	needHosts(t, 2)
	labtest.Need(t, labtest.Netem)
	connect(t)
	labtest.Host(t, 2).Netem("delay 400ms")
	r := labtest.RunOn(t, 1, "-c", "4", "-i", "0.3", "-W", "0.1", "10.9.0.2")
	if got := replies(t, r); len(got) == 0 || !slices.IsSorted(got) {
		t.Errorf("stdout %q", r.Stdout)
	}
	for _, line := range r.Lines() {
		if m := reply.FindStringSubmatch(line); m != nil {
			if usec, _ := strconv.Atoi(m[1]); usec < 400_000 {
				t.Errorf("%q is too fast", line)
			}
		}
	}
	if r.Status != cli.Failed || !strings.Contains(r.Stderr, "4 sent, 0 received, ") || !strings.Contains(r.Stderr, " late, 100% lost") {
		t.Errorf("status %d, stderr %q", r.Status, r.Stderr)
	}
}

func TestSourceOfPings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		want   string // in stderr
	}{
		{"an interface means its address of the host's family", []string{"-I", "eth0", "10.9.0.2"}, cli.OK, "from 10.9.0.1 by tcp"},
		{"for IPv6 too", []string{"-I", "eth0", "fd00::2"}, cli.OK, "from fd00::1 by tcp"},
		{"an address", []string{"-I", "fd00::1", "fd00::2"}, cli.OK, "from fd00::1 by tcp"},
		{"a name", []string{"-I", "h1", "fd00::2"}, cli.OK, "from fd00::1 by tcp"},
		{"an address of another host", []string{"-I", "10.9.0.3", "10.9.0.2"}, cli.CannotTry,
			"bind() failed, errno: 99 (Cannot assign requested address): 10.9.0.3 is not an address of this host"},
		{"an address of the other family", []string{"-I", "10.9.0.1", "fd00::2"}, cli.CannotTry, "not of one address family"},
		{"neither interface nor host", []string{"-I", "no such", "10.9.0.2"}, cli.CannotTry,
			"Unknown source address <no such>: there is no such interface"},
		{"its own address", []string{"10.9.0.1"}, cli.OK, "from 10.9.0.1 by tcp"},
		{"its own address, said so", []string{"-I", "10.9.0.1", "10.9.0.1"}, cli.OK, "from 10.9.0.1 by tcp"},
		{"an address of loopback that no interface lists", []string{"127.0.0.9"}, cli.OK, "from 127.0.0.9 by loopback"},
		{"IPv6 loopback", []string{"::1"}, cli.OK, "from ::1 by loopback"},
		{"no route", []string{"203.0.113.9"}, cli.CannotTry,
			"unable to connect to 203.0.113.9, errno: 101 (Network is unreachable)"},
		{"no host at all", []string{"0.0.0.0"}, cli.CannotTry, "errno: 22 (Invalid argument)"},
		{"an unknown name", []string{"no-such-host.invalid"}, cli.CannotTry, "Cannot parse destination address <no-such-host.invalid>"},
		{"a type of service on loopback", []string{"-Q", "3", "127.0.0.1"}, cli.CannotTry, "failed to set TOS"},
		{"a name with addresses of both families", []string{"-6", "h2"}, cli.OK, "to h2 (fd00::2) from fd00::1"},
		{"the same with the other", []string{"-4", "h2"}, cli.OK, "to h2 (10.9.0.2) from 10.9.0.1"},
		{"the same with either", []string{"h2"}, cli.OK, "; not pinged: "},
		{"an address that is not of the family asked for", []string{"-4", "fd00::2"}, cli.CannotTry, "not of the address family asked for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			needHosts(t, 3)
			r := labtest.RunOn(t, 1, append([]string{"-c1", "-i", "3"}, tt.args...)...)
			if r.Status != tt.status || !strings.Contains(r.Stderr, tt.want) {
				t.Errorf("status %d, stderr %q; want %d and %q", r.Status, r.Stderr, tt.status, tt.want)
			}
		})
	}
}

func TestSeveralHosts(t *testing.T) {
	needHosts(t, 3)
	r := labtest.RunOn(t, 1, "-c2", "-i", "0.5", "-W", "4", "h2", "10.9.0.3", "fd00::3")
	for _, want := range []string{"reply 1 from h2 (", "reply 2 from 10.9.0.3: ", "reply 2 from fd00::3: "} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("%q is not in stdout %q", want, r.Stdout)
		}
	}
	if r.Status != cli.OK || strings.Contains(r.Stdout, " usec") || len(r.Lines()) != 6 {
		t.Errorf("status %d, stdout %q", r.Status, r.Stdout)
	}
	for _, tt := range []struct {
		other  string
		status int
	}{{dead, cli.Failed}, {"203.0.113.9", cli.CannotTry}} {
		r := labtest.RunOn(t, 1, "-c1", "-i", "2", "10.9.0.2", tt.other)
		if r.Status != tt.status || !strings.Contains(r.Stdout, "reply 1 from 10.9.0.2: ") {
			t.Errorf("with %s: status %d, stdout %q; want %d and a reply", tt.other, r.Status, r.Stdout, tt.status)
		}
	}
}

func TestAllPingsEveryConnection(t *testing.T) {
	needHosts(t, 2)
	labtest.RunOn(t, 1, "-c1", "-i", "3", "10.9.0.2", "fd00::2", "10.9.0.1")
	r := labtest.RunOn(t, 1, "--all", "-c1", "-i", "4")
	for _, want := range []string{"reply 1 from 10.9.0.2: ", "reply 1 from fd00::2: ", "reply 1 from 10.9.0.1: "} {
		if strings.Count(r.Stdout, want) != 1 {
			t.Errorf("%q is not once in stdout %q", want, r.Stdout)
		}
	}
	if r := labtest.RunOn(t, 1, "--all", "-6", "-c1", "-i", "4"); strings.Contains(r.Stdout, "10.9") || !strings.Contains(r.Stdout, "fd00::2") {
		t.Errorf("-6: stdout %q", r.Stdout)
	}
}

func TestNetNS(t *testing.T) {
	needHosts(t, 2)
	for _, tt := range []struct {
		netns, host string
		status      int
		want        string
	}{
		{"h2", "10.9.0.1", cli.OK, "from 10.9.0.2"},
		{"/run/netns/h2", "10.9.0.1", cli.OK, "from 10.9.0.2"},
		{"nowhere", "10.9.0.1", cli.CannotTry, `no network namespace "nowhere"`},
	} {
		r := labtest.RunOn(t, 0, "-c1", "-i", "3", "--netns", tt.netns, tt.host)
		if r.Status != tt.status || !strings.Contains(r.Stderr, tt.want) {
			t.Errorf("%s: status %d, stderr %q; want %d and %q", tt.netns, r.Status, r.Stderr, tt.status, tt.want)
		}
	}
}

func TestSignals(t *testing.T) {
	needHosts(t, 2)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			p, _ := startPiped(t, "-i", "0.1", "10.9.0.2")
			p.Process.Signal(sig)
			if r := p.Finish(t); r.Status != cli.OK || !strings.Contains(r.Stderr, " sent, ") {
				t.Errorf("status %d, stderr %q", r.Status, r.Stderr)
			}
		})
	}
	t.Run("an interruption without a reply fails", func(t *testing.T) {
		p := labtest.StartOn(t, 1, labtest.Command(t, dead))
		time.Sleep(1500 * time.Millisecond)
		p.Process.Signal(syscall.SIGINT)
		if r := p.Finish(t); r.Status != cli.Failed || !strings.Contains(r.Stderr, " 1 outstanding") {
			t.Errorf("status %d, stderr %q", r.Status, r.Stderr)
		}
	})
	t.Run("SIGQUIT asks for a summary and the run goes on", func(t *testing.T) {
		p, lines := startPiped(t, "-i", "0.1", "10.9.0.2", "--json")
		p.Process.Signal(syscall.SIGQUIT)
		for o := (object{}); o.Type != "interim"; o = decode(t, <-lines) {
		}
		for o := (object{}); o.Type != "reply"; o = decode(t, <-lines) {
		}
		p.Process.Signal(syscall.SIGINT)
		last := ""
		for line := range lines {
			last = line
		}
		if r := p.Finish(t); r.Status != cli.OK || decode(t, last).Type != "summary" {
			t.Errorf("status %d, last line %q", r.Status, last)
		}
	})
}

// startPiped starts rds-ping on h1 and waits for the first line it prints: what is
// printed into a pipe comes at once, not at the end.
func startPiped(t *testing.T, args ...string) (*labtest.Process, <-chan string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := labtest.Command(t, args...)
	cmd.Stdout = w
	p := labtest.StartOn(t, 1, cmd)
	w.Close()
	lines := make(chan string, 1000)
	first := make(chan struct{})
	go func() {
		defer r.Close()
		defer close(lines)
		var once sync.Once
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
			once.Do(func() { close(first) })
		}
	}()
	select {
	case <-first:
	case <-time.After(10 * time.Second):
		p.Process.Kill()
		t.Fatal("nothing was printed within 10 s")
	}
	return p, lines
}

func TestFloodAndDeadline(t *testing.T) {
	connect(t)
	r := labtest.RunOn(t, 1, "-f", "-c", "200", "-q", "10.9.0.2")
	if r.Status != cli.OK || r.Stdout != "" || !strings.Contains(r.Stderr, "\n200 sent, 200 received, ") {
		t.Errorf("flood: status %d, stdout %q, stderr %q", r.Status, r.Stdout, r.Stderr)
	}
	r = labtest.RunOn(t, 1, "-i", "0.1", "-w", "1", "10.9.0.2")
	if took := elapsed(t, r); r.Status != cli.OK || took < time.Second || took > 3*time.Second {
		t.Errorf("deadline: status %d after %v, stderr %q", r.Status, took, r.Stderr)
	}
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := labtest.Command(t, "-i", "0.1", "127.0.0.1")
	cmd.Stdout = full
	r := labtest.StartOn(t, 0, cmd).Finish(t)
	if r.Status != cli.CannotTry || !strings.Contains(r.Stderr, "cannot write the output: ") {
		t.Errorf("status %d, stderr %q", r.Status, r.Stderr)
	}
}

func TestSummaryOnStdoutIfAsked(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	r := labtest.RunOn(t, 0, "-c1", "--summary", "127.0.0.1")
	if r.Status != cli.OK || r.Stderr != "" || !strings.Contains(r.Stdout, "\n1 sent, 1 received, ") {
		t.Errorf("status %d, stdout %q, stderr %q", r.Status, r.Stdout, r.Stderr)
	}
}

// Anybody can send messages to the ports that answers come to.
func TestStrayMessagesAreNoAnswers(t *testing.T) {
	connect(t)
	p, lines := startPiped(t, "--json", "-i", "0.05", "-c", "40", "10.9.0.2")
	h1, h2 := hostNetNS(t, labtest.Host(t, 1)), hostNetNS(t, labtest.Host(t, 2))
	stranger, err := rdssock.Listen(netip.MustParseAddrPort("10.9.0.2:0"), &rdssock.Config{NetNS: h2})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	sent := 0
	for range 10 {
		snapshot, err := rdsinfo.Read(&rdsinfo.Config{NetNS: h1}, rdsinfo.Sockets)
		if err != nil {
			t.Fatal(err)
		}
		sockets, err := snapshot.Sockets()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sockets {
			if s.Bound.Addr() != netip.MustParseAddr("10.9.0.1") {
				continue
			}
			for _, message := range []string{"", "no answer"} {
				if _, err := stranger.TryWriteToAddrPort([]byte(message), s.Bound); err != nil {
					t.Fatal(err)
				}
				sent++
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	last := ""
	for last = range lines {
	}
	r := p.Finish(t)
	s := decode(t, last)
	if sent == 0 || r.Status != cli.OK || s.Sent != 40 || s.Received != 40 || s.Duplicates != 0 || s.Errors != 0 {
		t.Errorf("%d stray messages; status %d, summary %+v", sent, r.Status, s)
	}
}

// hostNetNS opens a host's network namespace for the time of the test.
func hostNetNS(t *testing.T, m *labtest.Machine) int {
	t.Helper()
	f, err := os.Open(m.NetNS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

func TestSettingTheClockChangesNothing(t *testing.T) {
	connect(t)
	p, lines := startPiped(t, "--json", "-i", "0.1", "-c", "15", "10.9.0.2")
	setClock(t, -time.Hour)
	defer setClock(t, time.Hour)
	last := ""
	for line := range lines {
		if o := decode(t, line); o.RTT != nil && (*o.RTT < 0 || *o.RTT > int64(5*time.Second)) {
			t.Errorf("ping %d took %d ns", *o.Seq, *o.RTT)
		}
		last = line
	}
	r := p.Finish(t)
	s := decode(t, last)
	if r.Status != cli.OK || s.Received != 15 || time.Duration(s.Elapsed) < 1400*time.Millisecond || time.Duration(s.Elapsed) > 5*time.Second {
		t.Errorf("status %d, summary %+v", r.Status, s)
	}
}

// setClock moves the lab's clock.
func setClock(t *testing.T, by time.Duration) {
	t.Helper()
	now := syscall.NsecToTimeval(time.Now().Add(by).UnixNano())
	if err := syscall.Settimeofday(&now); err != nil {
		t.Fatalf("settimeofday: %v", err)
	}
}

// Answers are made where pings are received: with pings both ways neither may wait for the other.
func TestManyPingsBothWaysEnd(t *testing.T) {
	connect(t)
	processes, count := 4, "500"
	if testing.Short() {
		processes, count = 2, "30"
	}
	var running []*labtest.Process
	for range processes {
		for from, to := range map[int]string{1: "10.9.0.2", 2: "10.9.0.1"} {
			running = append(running, labtest.StartOn(t, from, labtest.Command(t, "-i", "1ms", "-c", count, "-W", "10", "-q", "--summary", to)))
		}
	}
	for _, p := range running {
		if r := p.Finish(t); r.Status != cli.OK || !strings.Contains(r.Stdout, " 0% lost") {
			t.Errorf("%q: status %d, stdout %q, stderr %q", p.Args[1:], r.Status, r.Stdout, r.Stderr)
		}
	}
}

// An object is what the tests look at in one of JSON.
type object struct {
	Type                                                        string
	Time                                                        time.Time
	Seq                                                         *int
	RTT                                                         *int64 `json:"rtt_ns"`
	Sent, Received, Lost, Late, Outstanding, Duplicates, Errors int
	Elapsed                                                     int64 `json:"elapsed_ns"`
}

func decode(t *testing.T, line string) (o object) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	return o
}

// objects parses what was printed: each line on its own.
func objects(t *testing.T, r labtest.Result) (all []object) {
	t.Helper()
	for _, line := range r.Lines() {
		all = append(all, decode(t, line))
	}
	return all
}

// seqs are the numbers of the pings in objects of these types.
func seqs(objects []object, types ...string) (s []int) {
	for _, o := range objects {
		if slices.Contains(types, o.Type) {
			s = append(s, *o.Seq)
		}
	}
	return s
}

func distinct(s []int) bool {
	s = slices.Sorted(slices.Values(s))
	return len(slices.Compact(slices.Clone(s))) == len(s)
}
