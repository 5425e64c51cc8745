package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdskit/rdskit/internal/labtest"
)

func needHosts(t *testing.T, n int) {
	t.Helper()
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(n), labtest.Root)
}

// runBoth runs both sides, the passive one on host 2, and returns what they left behind.
func runBoth(t *testing.T, port int, active string, passive ...string) (a, p labtest.Result) {
	t.Helper()
	args := append([]string{"-r", "10.9.0.2", "-p", fmt.Sprint(port)}, passive...)
	server := labtest.StartOn(t, 2, labtest.Command(t, args...))
	args = append([]string{"-r", "10.9.0.1", "-s", "10.9.0.2", "-p", fmt.Sprint(port), "--connect-retries", "10"}, strings.Fields(active)...)
	a = labtest.RunOn(t, 1, args...)
	return a, server.Finish(t)
}

// end returns the last JSON object.
func end(t *testing.T, r labtest.Result) (e jsonEnd) {
	t.Helper()
	lines := r.Lines()
	if len(lines) == 0 {
		t.Fatalf("no output; stderr: %s", r.Stderr)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil || e.Type != "end" {
		t.Fatalf("%q does not end the run: %v", lines[len(lines)-1], err)
	}
	return e
}

func TestEveryMessageIsAccountedForOnBothSides(t *testing.T) {
	needHosts(t, 2)
	for i, args := range []string{
		"-v", "-o -v", "-t 4 -v", "-d 64 -v", "-q 8K -v", "-q 64K -v", "-Q 3", "--show-histogram", "--crc",
		"--size-range 63-9000 -v --seed 5", "--rate 200", "--always-bursty -d 4 --rate 200", "--sync-always-bursty -d 4 -t 2", "-a 100 -v",
	} {
		t.Run(args, func(t *testing.T) {
			a, p := runBoth(t, 5000+100*i, args+" -T 1 --warmup 0.4 --json")
			if a.Status != 0 || p.Status != 0 {
				t.Fatalf("active %d, passive %d\n%s%s", a.Status, p.Status, a.Stderr, p.Stderr)
			}
			e := end(t, a)
			if !e.OK || e.PeerFaults == nil || e.Unanswered != 0 {
				t.Errorf("%+v", e)
			}
			if e.RequestsSent == 0 || (e.RequestsReceived == 0) != strings.Contains(args, "-o") {
				t.Errorf("%d requests sent, %d received", e.RequestsSent, e.RequestsReceived)
			}
		})
	}
}

func TestBothEndsInOneProcess(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	r := labtest.RunOn(t, 0, "--self", "-r", "127.0.0.1", "-s", "127.0.0.2", "-T", "1", "--warmup", "0.2", "-v", "--json", "-p", "8000")
	if e := end(t, r); r.Status != 0 || !e.OK || e.RequestsSent == 0 || e.RequestsReceived == 0 {
		t.Errorf("status %d: %+v\n%s", r.Status, e, r.Stderr)
	}
}

func TestEveryMessageIsAccountedForOnLoop(t *testing.T) {
	needHosts(t, 1)
	pairs := [][2]string{{"127.0.0.1", "127.0.0.2"}, {"::1", "fd00::1"}}
	for i, args := range []string{"-v", "-o", "-t 4", "-d 64", "-q 8K -v", "-q 64K -v", "--show-histogram"} {
		t.Run(args, func(t *testing.T) {
			var sides []*labtest.Process
			for j, pair := range pairs {
				sides = append(sides, labtest.StartOn(t, 1, labtest.Command(t, append([]string{
					"--self", "-r", pair[0], "-s", pair[1], "-T", "1", "--warmup", "0.1", "--json", "-p", fmt.Sprint(9100 + 100*i + 50*j),
				}, strings.Fields(args)...)...)))
			}
			for j, side := range sides {
				r := side.Finish(t)
				e := end(t, r)
				if r.Status != 0 || !e.OK || e.PeerFaults == nil || e.Unanswered != 0 || e.Faults.Sent == 0 {
					t.Errorf("%v: status %d, %+v\n%s", pairs[j], r.Status, e, r.Stderr)
				}
				if start := objects[jsonStart](t, r, "start"); len(start) != 1 || start[0].Transport != "loopback" {
					t.Errorf("%v: %+v", pairs[j], start)
				}
				if e.PeerFaults.Sent != e.Faults.Messages || args == "-o" && e.RequestsReceived > 0 {
					t.Errorf("%v: %+v, of the peer %+v, %d requests received", pairs[j], e.Faults, e.PeerFaults, e.RequestsReceived)
				}
			}
		})
	}
}

func TestSIGINTEndsTheRunOnBothSides(t *testing.T) {
	needHosts(t, 2)
	server := labtest.StartOn(t, 2, labtest.Command(t, "-r", "10.9.0.2", "-p", "8100"))
	client := labtest.Command(t, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8100", "--connect-retries", "10", "--warmup", "0.2", "--json")
	watch := newWatch(client, `"interval"`)
	p := labtest.StartOn(t, 1, client)
	watch.wait(t)
	if err := client.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	a, s := p.Finish(t), server.Finish(t)
	a.Stdout = watch.String()
	if e := end(t, a); a.Status != 0 || s.Status != 0 || !e.OK || e.RequestsSent == 0 {
		t.Errorf("active %d, passive %d: %+v\n%s%s", a.Status, s.Status, e, a.Stderr, s.Stderr)
	}
	if !strings.Contains(s.Stdout, "(average)") {
		t.Errorf("the passive side prints no average:\n%s", s.Stdout)
	}
}

func TestADeadPeerIsNoticed(t *testing.T) {
	needHosts(t, 2)
	serverCmd := labtest.Command(t, "-r", "10.9.0.2", "-p", "8200")
	server := labtest.StartOn(t, 2, serverCmd)
	client := labtest.Command(t, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8200", "--connect-retries", "10", "--warmup", "0.2", "--json")
	watch := newWatch(client, `"interval"`)
	p := labtest.StartOn(t, 1, client)
	watch.wait(t)
	killed := time.Now()
	serverCmd.Process.Kill()
	server.Wait() // its status is that of the signal
	a := p.Finish(t)
	if took := time.Since(killed); took > 15*time.Second {
		t.Errorf("noticed after %v", took)
	}
	a.Stdout = watch.String()
	if e := end(t, a); a.Status != 1 || e.OK || e.Error == nil {
		t.Errorf("status %d: %+v", a.Status, e)
	}
}

func TestWhatCannotBeTriedIsSaid(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for _, tt := range []struct {
		name, args, want string
	}{
		{"both at one address", "-r 127.0.0.1 -s 127.0.0.1", "ports collide"},
		{"TOS on loop", "-r 127.0.0.1 -s 127.0.0.2 -Q 3", "loopback"},
		{"RDMA on loop", "-r 127.0.0.1 -s 127.0.0.2 -D 8K",
			"check_rdma_support: RDS_FREE_MR failed with unexpected error, errno: 22 (Invalid argument)\nRDMA (-D) needs the transport infiniband: messages from 127.0.0.1 go by loopback, which has none"},
		{"too many RDMA buffers", "-s 127.0.0.2 -D 8K -I 513", "out of range"},
		{"too much RDMA at once", "-r 127.0.0.1 -s 127.0.0.2 -D 512K -I 3", "an RDMA operation (-D times -I) of 1572864 is out of range: at most 1048576"},
		{"checksums with RDMA", "-r 127.0.0.1 -s 127.0.0.2 -D 8K --crc", "exclude each other"},
		{"nobody listens", "-r 127.0.0.1 -s 127.0.0.2 -p 9999", "connect(127.0.0.2) failed: port 9999: connection refused"},
		{"an operand", "host", "is no option"},
		{"too small", "-r 127.0.0.1 -s 127.0.0.2 -q 10", "req size must be at least 63 bytes"},
		{"too deep", "-s 127.0.0.2 -d 70000", "out of range"},
		{"async on mainline", "-s 127.0.0.2 --async", "sendto() failed, errno: 22 (Invalid argument)"},
		{"reset on mainline", "-r 127.0.0.1 -s 127.0.0.2 --reset", "RDS_CONN_RESET failed, errno: 95"},
		{"too much memory", "-r 127.0.0.1 -s 127.0.0.2 -t 1024 -d 65535", "more than --max-memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := labtest.RunOn(t, 0, strings.Fields(tt.args)...)
			if r.Status != 2 || !strings.Contains(r.Stderr, tt.want) {
				t.Errorf("status %d, stderr %q, want %q", r.Status, r.Stderr, tt.want)
			}
		})
	}
}

func TestRDMAOnTCPIsRefusedByName(t *testing.T) {
	needHosts(t, 2)
	r := labtest.RunOn(t, 1, "-s", "10.9.0.2", "-D", "8K")
	if want := "messages from 10.9.0.1 go by tcp, which has none"; r.Status != 2 || !strings.Contains(r.Stderr, want) {
		t.Errorf("status %d, stderr %q, want %q", r.Status, r.Stderr, want)
	}
}

// A watch keeps what a command prints and tells when a text is in it.
type watch struct {
	mu   sync.Mutex
	out  bytes.Buffer
	text string
	seen chan struct{}
}

func newWatch(cmd *exec.Cmd, text string) *watch {
	w := &watch{text: text, seen: make(chan struct{})}
	cmd.Stdout = w
	return w
}

func (w *watch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Write(b)
	if w.text != "" && strings.Contains(w.out.String(), w.text) {
		w.text = ""
		close(w.seen)
	}
	return len(b), nil
}

func (w *watch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

func (w *watch) wait(t *testing.T) {
	t.Helper()
	select {
	case <-w.seen:
	case <-time.After(50 * time.Second):
		t.Fatalf("no %s in %q", w.text, w.String())
	}
}

// loop runs both sides in one process over the loopback transport.
func loop(t *testing.T, port int, args ...string) labtest.Result {
	t.Helper()
	labtest.Need(t, labtest.RDS)
	r := labtest.RunOn(t, 0, append([]string{
		"--self", "-r", "127.0.0.1", "-s", "127.0.0.2", "-p", fmt.Sprint(port), "-T", "1", "--warmup", "0.2", "--interval", "0.5",
	}, args...)...)
	if r.Status != 0 {
		t.Fatalf("status %d\n%s", r.Status, r.Stderr)
	}
	return r
}

func TestRowsAreThoseOfC(t *testing.T) {
	lines := loop(t, 8400, "-c", "--show-params", "--show-histogram", "--percentiles", "--show-outliers", "1").Lines()
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		`Options:\n  Tasks      1      \n  Req size   1024   \n  ACK size   63     \n  RDMA size  0      \n  RDMA opts  use_fence\n\n`,
		`(?m)^negotiated options, tasks will start in 2 seconds\nStarting up\.*\ntsks   tx/s   rx/s  tx\+rx K/s    mbi K/s    mbo K/s tx us/c   rtt us cpu %$`,
		`(?m)^   1 [ \d]{6} [ \d]{6} [ \d]{7}\.\d\d       0\.00       0\.00 [ \d]{4}\.\d\d [ \d]{5}\.\d\d *\d+\.\d\d$`,
		`(?m)^-{45}\n   1 .*  \(average\)$`,
		`(?m)^RTT histogram\nRTT \(us\)        \t\t    Count\n\[     1 -      2\] \t\t +\d+ \t\t \(\d+\.\d\d%\)$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	r := loop(t, 8410, "-z", "--percentiles", "--show-outliers", "1")
	if lines := r.Lines(); !strings.Contains(lines[len(lines)-1], "(average)") || strings.Contains(r.Stdout, "-----") {
		t.Errorf("more than the summary:\n%s", r.Stdout)
	}
	if !regexp.MustCompile(`(?m)^Found RTT = 0x[0-9a-f]+$`).MatchString(r.Stderr) {
		t.Errorf("no outlier in %q", r.Stderr)
	}
	if !regexp.MustCompile(`round trip: p50 [\d.]+ us .* p99\.99 [\d.]+ us max [\d.]+ us\nper message: `).MatchString(r.Stderr) {
		t.Errorf("no percentiles in %q", r.Stderr)
	}
}

func TestPerfdataHasAValueForEachName(t *testing.T) {
	var rows [][]string
	for _, l := range loop(t, 8420, "--show-perfdata").Lines() {
		if rest, ok := strings.CutPrefix(l, "::"); ok {
			rows = append(rows, strings.Split(rest, ","))
		}
	}
	if len(rows) < 3 || rows[0][0] != "nr_tasks:count" || rows[0][len(rows[0])-1] != "intr:count" {
		t.Fatalf("%d rows, names %v", len(rows), rows[0])
	}
	for _, r := range rows[1:] {
		if len(r) != len(rows[0]) {
			t.Errorf("%d values for %d names", len(r), len(rows[0]))
		}
		if r[0] != "1" || r[1] != "1024" || r[2] != "63" || r[4] == "0" {
			t.Errorf("row %v", r[:10])
		}
	}
}

func TestCSVHasAValueForEachName(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(loop(t, 8430, "--csv").Stdout)).ReadAll() // that checks the number of fields
	if err != nil || len(rows) < 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if rows[0][2] != "requests_sent" || rows[1][2] == "0" {
		t.Errorf("%v\n%v", rows[0], rows[1])
	}
}

func TestTheHistogramLogHasAllRoundTrips(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rtt.hlog")
	r := loop(t, 8440, "--json", "--histogram-log", file)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := hdrhistogram.NewHistogramLogReader(f).NextIntervalHistogram()
	if err != nil {
		t.Fatal(err)
	}
	if e := end(t, r); e.RTT == nil || uint64(h.TotalCount()) != e.RTT.Count || e.RTT.Count == 0 {
		t.Errorf("%d round trips in the log, %+v", h.TotalCount(), e.RTT)
	}
}

func TestTheReceivePathIsMeasuredOverTCP(t *testing.T) {
	needHosts(t, 2)
	a, _ := runBoth(t, 8450, "--rx-path -T 1 --warmup 0.4 --json")
	if e := end(t, a); len(e.ReceivePath) == 0 || e.ReceivePath["delivery"] == nil || e.ReceivePath["delivery"].Count == 0 {
		t.Errorf("receive path %v", e.ReceivePath)
	}
}

// What the kernel says of the rest is the time since it booted.
func TestOfTheReceivePathLoopMeasuresTheLastPartOnly(t *testing.T) {
	e := end(t, loop(t, 8455, "--rx-path", "--json"))
	if len(e.ReceivePath) != 1 || e.ReceivePath["delivery"] == nil || e.ReceivePath["delivery"].Count == 0 {
		t.Errorf("receive path %v", e.ReceivePath)
	}
}

func TestAServerServesRunAfterRunAndOnlyThoseAllowed(t *testing.T) {
	needHosts(t, 3)
	cmd := labtest.Command(t, "-r", "10.9.0.2", "-p", "8460", "--serve", "--allow", "10.9.0.1")
	listening := newWatch(cmd, "waiting for incoming connection on 10.9.0.2:8460\n")
	server := labtest.StartOn(t, 2, cmd)
	listening.wait(t)
	for n := range 3 {
		// A host that is not allowed comes between, and is told by the end of the connection.
		if r := labtest.RunOn(t, 3, "-r", "10.9.0.3", "-s", "10.9.0.2", "-p", "8460", "-T", "1"); r.Status != 1 && r.Status != 2 {
			t.Errorf("a host that is not allowed: status %d", r.Status)
		}
		r := labtest.RunOn(t, 1, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8460", "-T", "1", "--warmup", "0.2", "-v", "--json")
		if e := end(t, r); r.Status != 0 || !e.OK || e.RequestsReceived == 0 {
			t.Errorf("run %d: status %d, %+v\n%s", n, r.Status, e, r.Stderr)
		}
	}
	cmd.Process.Signal(syscall.SIGINT)
	r := server.Finish(t)
	if r.Status != 0 || strings.Count(listening.String(), "(average)") != 3 || !strings.Contains(r.Stderr, "10.9.0.3 is not allowed to connect") {
		t.Errorf("status %d\n%s%s", r.Status, listening, r.Stderr)
	}
}

func TestIPv6(t *testing.T) {
	needHosts(t, 2)
	server := labtest.StartOn(t, 2, labtest.Command(t, "-r", "fd00::2", "-p", "8470"))
	a := labtest.RunOn(t, 1, "-s", "fd00::2", "-p", "8470", "--connect-retries", "10", "-T", "1", "--warmup", "0.4", "-v", "--transport", "tcp", "--json")
	p := server.Finish(t)
	if e := end(t, a); a.Status != 0 || p.Status != 0 || !e.OK || e.RequestsReceived == 0 {
		t.Errorf("active %d, passive %d: %+v\n%s%s", a.Status, p.Status, e, a.Stderr, p.Stderr)
	}
}

func TestAbortAfterSaysNothingToThePeer(t *testing.T) {
	needHosts(t, 2)
	a, p := runBoth(t, 8480, "--abort-after 1 --cancel-sent-to --warmup 0.4 --json")
	if e := end(t, a); a.Status != 0 || e.PeerFaults != nil {
		t.Errorf("active %d: %+v\n%s", a.Status, e, a.Stderr)
	}
	if p.Status != 1 || !strings.Contains(p.Stderr, "the peer is gone") {
		t.Errorf("passive %d: %s", p.Status, p.Stderr)
	}
}

func TestDeepAndWideRuns(t *testing.T) {
	for i, args := range []string{"-d 40000 -q 64 -v", "-t 64 -q 64 -v"} {
		t.Run(args, func(t *testing.T) {
			r := loop(t, 8500+100*i, append(strings.Fields(args), "--json")...)
			if e := end(t, r); !e.OK || e.RequestsSent == 0 {
				t.Errorf("%+v\n%s", e, r.Stderr)
			}
		})
	}
}

func TestTheNamespaceIsThatOfNetns(t *testing.T) {
	needHosts(t, 2)
	server := labtest.StartOn(t, 0, labtest.Command(t, "--netns", "h2", "-r", "10.9.0.2", "-p", "8700"))
	a := labtest.RunOn(t, 0, "--netns", "h1", "-s", "10.9.0.2", "-p", "8700", "--connect-retries", "10", "-T", "1", "--warmup", "0.4", "-v", "--json")
	p := server.Finish(t)
	if e := end(t, a); a.Status != 0 || p.Status != 0 || !e.OK {
		t.Errorf("active %d, passive %d: %+v\n%s%s", a.Status, p.Status, e, a.Stderr, p.Stderr)
	}
}
