package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/stress/control"
	"github.com/rdskit/rdskit/internal/stress/wire"
	"github.com/rdskit/rdskit/rdssock"
)

// objects are the JSON objects of one type.
func objects[T any](t *testing.T, r labtest.Result, typ string) (all []T) {
	t.Helper()
	for _, l := range r.Lines() {
		if !strings.Contains(l, `"type":"`+typ+`"`) {
			continue
		}
		var v T
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		all = append(all, v)
	}
	return all
}

func TestIntervalAndWarmUpAreKept(t *testing.T) {
	r := loop(t, 8600, "--json", "--interval", "0.25", "--warmup", "0.4")
	if n := len(objects[jsonInterval](t, r, "interval")); n != 4 {
		t.Errorf("%d intervals of 0.25 s in 1 s", n)
	}
	if took := loop(t, 8620, "--json", "--warmup", "2.1").Took; took < 3100*time.Millisecond {
		t.Errorf("a warm-up of 2.1 s and a run of 1 s took %v", took)
	}
}

func TestSizesStayInTheirRange(t *testing.T) {
	e := end(t, loop(t, 8630, "--json", "--size-range", "63-60000", "--seed", "1", "--rate", "50", "-o"))
	if e.RequestsSent == 0 || e.BytesSent <= 63*e.RequestsSent || e.BytesSent >= 60000*e.RequestsSent {
		t.Errorf("%d requests of %d bytes in all", e.RequestsSent, e.BytesSent)
	}
}

func TestTheHostIsTakenByTheAddressFamilyAskedFor(t *testing.T) {
	needHosts(t, 2)
	for _, tt := range []struct {
		args, want string
		status     int
	}{
		{"-4 -s h2", "connect(10.9.0.2) failed: port 9: connection refused", 2},
		{"-6 -s h2", "connect(fd00::2) failed: port 9: connection refused", 2},
		{"-4 -s fd00::2", "is not of the address family asked for", 2},
		{"-6 -s 10.9.0.2", "is not of the address family asked for", 2},
		{"-s 10.9.0.2 --transport tcp", "connect(10.9.0.2) failed: port 9: connection refused", 2},
		{"-s 10.9.0.2 --transport infiniband", "--transport wants infiniband, and messages from 10.9.0.1 go by tcp", 2},
		{"-r 127.0.0.1 -s 127.0.0.2 --transport tcp", "--transport wants tcp, and messages from 127.0.0.1 go by loopback", 2},
		{"-r 10.9.0.2", "10.9.0.2 is not", 2}, // of host 1
	} {
		t.Run(tt.args, func(t *testing.T) {
			r := labtest.RunOn(t, 1, append(strings.Fields(tt.args), "-p", "9")...)
			if r.Status != tt.status || !strings.Contains(r.Stderr, tt.want) {
				t.Errorf("status %d, stderr %q, want %q", r.Status, r.Stderr, tt.want)
			}
		})
	}
}

func TestConnectRetriesGoOnUntilThePeerIsThere(t *testing.T) {
	needHosts(t, 2)
	client := labtest.Command(t, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8650", "--connect-retries", "20", "-T", "1", "--warmup", "0.2")
	watch := newWatch(client, "connecting to 10.9.0.2:8650: Connection refused - retrying..")
	active := labtest.StartOn(t, 1, client)
	watch.wait(t)
	server := labtest.StartOn(t, 2, labtest.Command(t, "-r", "10.9.0.2", "-p", "8650"))
	a, p := active.Finish(t), server.Finish(t)
	if a.Status != 0 || p.Status != 0 || !strings.Contains(watch.String(), "(average)") {
		t.Errorf("active %d, passive %d\n%s%s", a.Status, p.Status, a.Stderr, p.Stderr)
	}
	r := labtest.RunOn(t, 1, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8655", "--connect-retries", "2")
	if r.Status != 2 || !strings.HasPrefix(r.Stdout, "connecting to 10.9.0.2:8655: Connection refused - retrying..\n") || r.Took < 2*time.Second {
		t.Errorf("status %d after %v: %q", r.Status, r.Took, r.Stdout)
	}
}

// Without the monitor the kernel says EAGAIN of a congested destination, and with it ENOBUFS (net/rds/send.c, rds_sendmsg).
func TestTheCongestionMonitorIsAskedForByBothSides(t *testing.T) {
	needHosts(t, 2)
	for i, monitor := range []string{"0", "1"} {
		a, p := runBoth(t, 8660+10*i, "--use-cong-monitor "+monitor+" -q 64K -d 64 -T 1 --warmup 0.4 --json", "--json")
		e, pe := end(t, a), end(t, p)
		if a.Status != 0 || p.Status != 0 || e.RequestsSent == 0 {
			t.Errorf("active %d, passive %d\n%s%s", a.Status, p.Status, a.Stderr, p.Stderr)
		}
		if monitor == "0" && e.Congested+pe.Congested > 0 {
			t.Errorf("refused as congested %d and %d times, without a monitor", e.Congested, pe.Congested)
		}
	}
}

// --strict ends at the first fault of either side: here of a stranger that sends to a task's port.
func TestStrictEndsAtTheFirstFault(t *testing.T) {
	needHosts(t, 3)
	for _, tt := range []struct {
		strict     bool
		host, port int
	}{{true, 1, 8700}, {true, 2, 8710}, {false, 1, 8720}} {
		strict, port := tt.strict, tt.port
		args := []string{"-r", "10.9.0.1", "-s", "10.9.0.2", "-p", fmt.Sprint(port), "--connect-retries", "10", "-T", "6", "--warmup", "0.2", "--json"}
		if strict {
			args = append(args, "--strict")
		}
		server := labtest.StartOn(t, 2, labtest.Command(t, "-r", "10.9.0.2", "-p", fmt.Sprint(port)))
		client := labtest.Command(t, args...)
		watch := newWatch(client, `"interval"`)
		active := labtest.StartOn(t, 1, client)
		watch.wait(t)
		sendStray(t, 3, labtest.Host(t, tt.host), port+1)
		a, p := active.Finish(t), server.Finish(t)
		a.Stdout = watch.String()
		e := end(t, a)
		faults, told := e.Faults, len(objects[jsonFinding](t, a, "finding")) > 0
		if tt.host == 2 {
			faults, told = e.PeerFaults, strings.Contains(p.Stderr, "answers no request")
		}
		if a.Status != 1 || e.OK || faults == nil || faults.Foreign == 0 || !told {
			t.Errorf("%+v: status %d, %+v\n%s", tt, a.Status, faults, a.Stderr)
		}
		if p.Status != 1 {
			t.Errorf("%+v: passive side %d: %s", tt, p.Status, p.Stderr)
		}
		if ended := time.Duration(e.Elapsed) < 4*time.Second; ended != strict {
			t.Errorf("%+v: measured for %v of 6 s", tt, time.Duration(e.Elapsed))
		}
	}
}

// sendStray sends an RDS message from host n to a port of another.
func sendStray(t *testing.T, n int, to *labtest.Machine, port int) {
	t.Helper()
	err := labtest.Host(t, n).Do(func() error {
		conn, err := rdssock.Listen(netip.AddrPortFrom(labtest.Host(t, n).IPv4(), 0), nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.WriteToAddrPort([]byte("stray"), netip.AddrPortFrom(to.IPv4(), uint16(port))); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return conn.Flush(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// C prints the same for each destination (rds-stress.c, check_parent).
func TestWhatIsQueuedIsCanceledWhenAskedFor(t *testing.T) {
	needHosts(t, 2)
	for i, side := range []string{"active", "passive"} {
		port := 8750 + 20*i
		with := func(on bool, args ...string) []string {
			if on {
				args = append(args, "--cancel-sent-to")
			}
			return append(args, "-p", fmt.Sprint(port))
		}
		passive := labtest.Command(t, with(side == "passive", "-r", "10.9.0.2", "--json")...)
		active := labtest.Command(t, with(side == "active", "-r", "10.9.0.1", "-s", "10.9.0.2", "-q", "8K", "-d", "64", "-t", "2", "-v",
			"--connect-retries", "10", "--warmup", "0.2", "--interval", "0.2", "--json")...)
		watch := newWatch(active, `"interval"`)
		server := labtest.StartOn(t, 2, passive)
		client := labtest.StartOn(t, 1, active)
		watch.wait(t)
		active.Process.Signal(syscall.SIGINT)
		a, p := client.Finish(t), server.Finish(t)
		a.Stdout = watch.String()
		ae, pe := end(t, a), end(t, p)
		if a.Status != 0 || p.Status != 0 || !ae.OK || !pe.OK || ae.PeerFaults == nil || pe.PeerFaults == nil {
			t.Fatalf("%s: active %d, passive %d\n%s%s", side, a.Status, p.Status, a.Stderr, p.Stderr)
		}
		canceled := map[string]labtest.Result{"active": a, "passive": p}[side]
		if n := len(objects[jsonCanceled](t, canceled, "canceled")); n != 4 {
			t.Errorf("%s: %d destinations of 2 tasks that talk to 2", side, n)
		}
		for _, e := range []jsonEnd{ae, pe} {
			if f := e.Faults; f.Lost > 0 || f.Messages+f.Undelivered != e.PeerFaults.Sent {
				t.Errorf("%s: %d sent to the %s side, %d received, %d lost, %d undelivered", side, e.PeerFaults.Sent, e.Side, f.Messages, f.Lost, f.Undelivered)
			}
		}
	}
	r := loop(t, 8790, "--cancel-sent-to")
	if !regexp.MustCompile(`(?m)^RDS_CANCEL_SENT_TO\(127\.0\.0\.2:8791\)\[\d+\] took \d+ msec$`).MatchString(r.Stdout) {
		t.Errorf("no time of it in %s", r.Stdout)
	}
}

// The sizes that the active side's first task draws, and so the bytes that it sends, follow from the seed.
func TestTheSeedDecidesTheSizes(t *testing.T) {
	for i, seed := range []uint64{5, 5, 6} {
		e := end(t, loop(t, 8800+10*i, "--json", "--size-range", "100-10000", "--seed", fmt.Sprint(seed), "-o", "-d", "8"))
		sizes := rand.New(rand.NewPCG(seed, 0))
		sums := []uint64{0} // of the first N sizes
		for range e.Faults.Sent {
			sums = append(sums, sums[len(sums)-1]+100+uint64(sizes.IntN(9901)))
		}
		// Some requests were sent before those that are measured, and some after.
		n, known := int(e.RequestsSent), false
		for from := range len(sums) - n {
			known = known || sums[from+n]-sums[from] == e.BytesSent
		}
		if n == 0 || !known {
			t.Errorf("seed %d: no %d sizes in a row of %d have %d bytes", seed, n, e.Faults.Sent, e.BytesSent)
		}
	}
}

func TestSIGINTEndsWhatHasNotBegun(t *testing.T) {
	needHosts(t, 2)
	var l net.Listener
	err := labtest.Host(t, 2).Do(func() (err error) {
		l, err = net.Listen("tcp", "10.9.0.2:8830")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mute := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Read(make([]byte, 59))
			mute <- c
		}
	}()
	client := labtest.Command(t, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8830", "--json")
	active := labtest.StartOn(t, 1, client)
	c := <-mute
	defer c.Close()
	began := time.Now()
	client.Process.Signal(syscall.SIGINT)
	if r := active.Finish(t); r.Status != 2 || !strings.Contains(r.Stdout, "interrupted before the run began") || time.Since(began) > 9*time.Second {
		t.Errorf("a peer that says nothing: status %d after %v, %s", r.Status, time.Since(began), r.Stdout)
	}

	server := labtest.Command(t, "-r", "10.9.0.2", "-p", "8840")
	listening := newWatch(server, "waiting for incoming connection")
	passive := labtest.StartOn(t, 2, server)
	listening.wait(t)
	err = labtest.Host(t, 1).Do(func() (err error) {
		c, err = net.Dial("tcp", "10.9.0.2:8840")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began = time.Now()
	server.Process.Signal(syscall.SIGINT)
	if r := passive.Finish(t); r.Status != 0 || time.Since(began) > 9*time.Second {
		t.Errorf("a client that says nothing: status %d after %v, %s", r.Status, time.Since(began), r.Stderr)
	}
}

// A C peer does not say what became of the requests.
func TestRequestsThatNobodyAnswersFailTheRun(t *testing.T) {
	needHosts(t, 2)
	host := labtest.Host(t, 2)
	var l net.Listener
	err := host.Do(func() (err error) {
		l, err = net.Listen("tcp", "10.9.0.2:8850")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var deaf *rdssock.Conn
	err = host.Do(func() (err error) {
		deaf, err = rdssock.Listen(netip.MustParseAddrPort("10.9.0.2:8851"), nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			options := make([]byte, wire.Short.Size()+1)
			io.ReadFull(c, options)
			c.Write(options[len(options)-1:])
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	for args, why := range map[string]string{
		"-T 1":                  "the peer has answered nothing that is outstanding for 4s",
		"-T 60 --give-up 500ms": "the peer is gone: nothing has arrived for",
	} {
		r := labtest.RunOn(t, 1, append(strings.Fields(args), "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8850", "-d", "3", "--warmup", "0.2", "--json")...)
		e := end(t, r)
		if r.Status != 1 || e.OK || e.Unanswered != 3 || e.Error == nil || !strings.Contains(*e.Error, why) ||
			!strings.Contains(r.Stderr, "outstanding: 3 requests of task 0 to 10.9.0.2:8851") {
			t.Errorf("%s: status %d, %+v\n%s", args, r.Status, e, r.Stderr)
		}
	}
}

// startMute starts the side that waits, on host 2, and has a C peer on host 1 begin a run that sends no message. What is
// not set of its options is.
func startMute(t *testing.T, o wire.Options, args ...string) (passive *labtest.Process, c *control.Conn) {
	t.Helper()
	cmd := labtest.Command(t, append(args, "-r", "10.9.0.2", "-p", fmt.Sprint(o.Port))...)
	listening := newWatch(cmd, "waiting for incoming connection")
	passive = labtest.StartOn(t, 2, cmd)
	listening.wait(t)
	o.SendAddr, o.RecvAddr = netip.MustParseAddr("10.9.0.2"), netip.MustParseAddr("10.9.0.1")
	o.Depth, o.ReqSize, o.AckSize, o.RDMAVector, o.CongMonitor, o.Sender, o.Tasks = 1, 64, uint32(wire.Async), 1, true, wire.SenderC, 1
	err := labtest.Host(t, 1).Do(func() (err error) {
		c, err = (&control.Dialer{}).Dial(t.Context(), netip.AddrPortFrom(o.SendAddr, o.Port))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SendOptions(&o, wire.Short); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Go(1); err != nil {
		t.Fatal(err)
	}
	return passive, c
}

// The kernel of one that is stopped keeps the connection.
func TestACPeerThatSendsNothingIsNoticed(t *testing.T) {
	needHosts(t, 2)
	passive, _ := startMute(t, wire.Options{Port: 8880, Simplex: true}, "--give-up", "500ms")
	if r := passive.Finish(t); r.Status != 1 || !strings.Contains(r.Stderr, "the run broke off: the peer is gone: nothing has arrived for") {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
}

func TestACPeerThatEndsBeforeItsTimeFailsTheRun(t *testing.T) {
	needHosts(t, 2)
	for port, seconds := range map[uint16]uint32{8865: 30, 8870: 0} {
		passive, c := startMute(t, wire.Options{Port: port, Time: seconds})
		c.Close()
		r := passive.Finish(t)
		if broke := strings.Contains(r.Stderr, "the peer ended the run"); broke != (seconds > 0) || (r.Status == 1) != broke {
			t.Errorf("-T %d: status %d, %s", seconds, r.Status, r.Stderr)
		}
	}
}

func TestLimitsThatAreTooLowAreNamed(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for limit, want := range map[string]string{
		"ulimit -n 20":      "too many open files",
		"ulimit -v 1500000": "1464 MiB of address space",
	} {
		cmd := labtest.Command(t, "--self", "-r", "127.0.0.1", "-s", "127.0.0.2", "-t", "40", "-p", "8860")
		cmd.Args = append([]string{"sh", "-c", limit + `; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		r := labtest.StartOn(t, 0, cmd).Finish(t)
		if r.Status != 2 || !strings.Contains(r.Stderr, want) || !strings.Contains(r.Stderr, limit[:len("ulimit -n")]) {
			t.Errorf("%s: status %d: %s", limit, r.Status, r.Stderr)
		}
	}
}

// C gives its policy to the process that reports, too, on both sides (rds-stress.c, set_rt_priority).
func TestRealtimeIsForWhatReports(t *testing.T) {
	needHosts(t, 2)
	server := labtest.Command(t, "-r", "10.9.0.2", "-p", "8900", "--json")
	client := labtest.Command(t, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8900", "-R", "--connect-retries", "10", "--warmup", "0.2", "--json")
	watch := newWatch(client, `"interval"`)
	passive := labtest.StartOn(t, 2, server)
	active := labtest.StartOn(t, 1, client)
	watch.wait(t)
	const other, roundRobin, batch = 0, 2, 3
	for _, cmd := range []*exec.Cmd{server, client} {
		policies := map[int]int{}
		for _, p := range policiesOf(t, cmd.Process.Pid) {
			policies[p]++
		}
		// One task has one loop.
		if policies[batch] != 1 || policies[roundRobin] != 1 || policies[other] == 0 {
			t.Errorf("%v: threads by policy: %v", cmd.Args[1:], policies)
		}
	}
	client.Process.Signal(syscall.SIGINT)
	a, p := active.Finish(t), passive.Finish(t)
	if a.Status != 0 || p.Status != 0 {
		t.Errorf("active %d, passive %d\n%s%s", a.Status, p.Status, a.Stderr, p.Stderr)
	}
}

// policiesOf are the scheduling policies of the threads of a process.
func policiesOf(t *testing.T, pid int) (policies []int) {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatal(stats, err)
	}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// proc(5): the name, in parentheses, is number 2, and the policy 41.
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		n, err := strconv.Atoi(fields[41-3])
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		policies = append(policies, n)
	}
	return policies
}

func TestRealtimeThatIsNotPermittedIsRefused(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.Root)
	cmd := labtest.Command(t, "--self", "-r", "127.0.0.1", "-s", "127.0.0.2", "-R", "-p", "8910")
	// The test itself may be where nobody else can go.
	cmd.Path, cmd.SysProcAttr = "/proc/self/exe", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	r := labtest.StartOn(t, 0, cmd).Finish(t)
	if r.Status != 2 || !strings.Contains(r.Stderr, "sched_setscheduler(SCHED_RR) failed, errno: 1 (Operation not permitted)\n-R needs CAP_SYS_NICE") {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
}

func TestNoWarmUpCountsFromTheFirstRequest(t *testing.T) {
	r := loop(t, 8920, "--json", "--warmup", "0", "--give-up", "0", "-o")
	if e := end(t, r); e.RTT == nil || e.RequestsSent == 0 || r.Took > 8*time.Second {
		t.Errorf("%d requests, %+v, after %v", e.RequestsSent, e.RTT, r.Took)
	}
}

// While the server is busy a second peer hears so and waits, and all runs of the server are in its log.
func TestAServerHasPeersWaitTheirTurn(t *testing.T) {
	needHosts(t, 3)
	log := filepath.Join(t.TempDir(), "rtt.hlog")
	server := labtest.Command(t, "-r", "10.9.0.2", "-p", "8930", "--serve", "--histogram-log", log)
	listening := newWatch(server, "waiting for incoming connection")
	passive := labtest.StartOn(t, 2, server)
	listening.wait(t)
	args := []string{"-s", "10.9.0.2", "-p", "8930", "--warmup", "0.2", "--json"}
	first := labtest.Command(t, args...)
	running := newWatch(first, `"interval"`)
	one := labtest.StartOn(t, 1, first)
	running.wait(t)
	second := labtest.Command(t, append(args, "-T", "1")...)
	waiting := &watch{text: "waits for its turn", seen: make(chan struct{})}
	second.Stderr = waiting
	two := labtest.StartOn(t, 3, second)
	waiting.wait(t)
	first.Process.Signal(syscall.SIGINT)
	a, b := one.Finish(t), two.Finish(t)
	server.Process.Signal(syscall.SIGINT)
	s := passive.Finish(t)
	if a.Status != 0 || b.Status != 0 || s.Status != 0 {
		t.Errorf("first %d, second %d, server %d\n%s%s%s", a.Status, b.Status, s.Status, a.Stderr, waiting, s.Stderr)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r, i := hdrhistogram.NewHistogramLogReader(f), 0; i < 2; i++ {
		if h, err := r.NextIntervalHistogram(); err != nil || h == nil || h.TotalCount() == 0 {
			t.Errorf("run %d is not in the log: %v, %v", i, h, err)
		}
	}
}

// Who asks for what cannot be has not ended the server for others, which serves one run only.
func TestAPeerThatCannotBeServedLeavesTheServerToOthers(t *testing.T) {
	needHosts(t, 2)
	server := labtest.Command(t, "-r", "10.9.0.2", "-p", "8940")
	listening := newWatch(server, "waiting for incoming connection")
	passive := labtest.StartOn(t, 2, server)
	listening.wait(t)
	var taken *rdssock.Conn
	err := labtest.Host(t, 2).Do(func() (err error) {
		taken, err = rdssock.Listen(netip.MustParseAddrPort("10.9.0.2:8945"), nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	args := []string{"-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8940", "-T", "1", "--warmup", "0.2", "-t"}
	a := labtest.RunOn(t, 1, append(args, "5")...)
	if a.Status != 1 || !strings.Contains(a.Stderr, "the peer says: listen rds 10.9.0.2:8945: bind: address already in use") {
		t.Errorf("status %d: %s", a.Status, a.Stderr)
	}
	b, s := labtest.RunOn(t, 1, append(args, "4")...), passive.Finish(t)
	if b.Status != 0 || s.Status != 0 || !strings.Contains(s.Stderr, "dropped: bind() failed, errno: 98 (Address already in use)") {
		t.Errorf("active %d, passive %d\n%s%s", b.Status, s.Status, b.Stderr, s.Stderr)
	}
}

func TestSignalsTellHowFarTheRunHasCome(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	cmd := labtest.Command(t, "--self", "-r", "127.0.0.1", "-s", "127.0.0.2", "-p", "8950", "--warmup", "0.2", "--interval", "0.2")
	rows := newWatch(cmd, "-1.00\n") // the first
	p := labtest.StartOn(t, 0, cmd)
	rows.wait(t)
	cmd.Process.Signal(syscall.SIGQUIT)
	time.Sleep(200 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGINT)
	if r := p.Finish(t); r.Status != 0 || !regexp.MustCompile(`(?m)^after \d+\.\d+ s: [1-9]\d* requests sent and [1-9]\d* received`).MatchString(r.Stderr) {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}

	cmd = labtest.Command(t, "--self", "-r", "127.0.0.1", "-s", "127.0.0.2", "-p", "8960", "--warmup", "30")
	rows = newWatch(cmd, "Starting up.")
	p = labtest.StartOn(t, 0, cmd)
	rows.wait(t)
	cmd.Process.Signal(syscall.SIGINT)
	if r := p.Finish(t); r.Status != 0 || !regexp.MustCompile(`(?m)^Starting up\.+\n-+\n +1 +0 `).MatchString(rows.String()) {
		t.Errorf("status %d: %s", r.Status, rows)
	}
}

// C tells the passive side what to print, too; and it prints a dot for each second of the warm-up.
func TestThePassiveSidePrintsWhatTheActiveSideAsksFor(t *testing.T) {
	needHosts(t, 2)
	_, p := runBoth(t, 8970, "-z -a 0 -T 1 --warmup 2")
	if !regexp.MustCompile(`(?m)^Starting up\.\.\ntsks .*\n +1 .*  \(average\)\n`).MatchString(p.Stdout) {
		t.Errorf("-z: %s", p.Stdout)
	}
	_, p = runBoth(t, 8975, "--show-perfdata -T 1 --warmup 0.2")
	names, rows, _ := strings.Cut(p.Stdout[strings.Index(p.Stdout, "\n::")+1:], "\n")
	row, _, _ := strings.Cut(rows, "\n")
	if !strings.HasPrefix(names, "::nr_tasks") || !strings.HasPrefix(row, "::1,1024,63,") || strings.Count(names, ",") != strings.Count(row, ",") {
		t.Errorf("--show-perfdata: %s", p.Stdout)
	}
}

// Requests wait for longer than they are given, and all are answered in the end.
func TestLateAnswersMakeGoodForWhatWasGivenUp(t *testing.T) {
	r := loop(t, 8990, "-t", "4", "-d", "64", "-q", "64", "--give-up", "1ms", "--json")
	if e := end(t, r); !e.OK || e.Faults.GivenUp == 0 || e.Faults.GivenUp != e.Faults.Late {
		t.Errorf("%+v\n%s", e.Faults, r.Stderr)
	}
}
