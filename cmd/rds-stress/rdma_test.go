package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/stress/control"
	"github.com/rdskit/rdskit/internal/stress/wire"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

// runRDMA runs both sides, each at an address of its own of the channel adapter, for a second.
func runRDMA(t *testing.T, port int, args string) (active, passive labtest.Result) {
	t.Helper()
	labtest.Need(t, labtest.RDMA)
	here, there := labtest.HCA(t, 1).IPv4().String(), labtest.HCA(t, 2).IPv4().String()
	server := labtest.StartOn(t, 0, labtest.Command(t, "-r", there, "-p", fmt.Sprint(port), "--percentiles"))
	active = labtest.RunOn(t, 0, append([]string{
		"-r", here, "-s", there, "-p", fmt.Sprint(port), "--connect-retries", "10", "-T", "1", "--warmup", "0.4",
	}, strings.Fields(args)...)...)
	passive = server.Finish(t)
	if active.Status != 0 || passive.Status != 0 {
		t.Fatalf("active %d, passive %d\n%s%s", active.Status, passive.Status, active.Stderr, passive.Stderr)
	}
	return active, passive
}

// operations runs with -v and sees that all went well, and that both directions count every byte.
func operations(t *testing.T, port int, args string) jsonEnd {
	t.Helper()
	a, p := runRDMA(t, port, args+" -v --json")
	e := end(t, a)
	if !e.OK || e.PeerFaults == nil || e.Unanswered != 0 {
		t.Errorf("%+v\n%s%s", e, a.Stderr, p.Stderr)
	}
	return e
}

// requests is how many of them the peer answered with an operation.
func (e *jsonEnd) requests(op string) uint64 {
	if l := e.RDMALatency[op]; l != nil {
		return l.Count
	}
	return 0
}

func TestRDMAMovesWhatItShould(t *testing.T) {
	for i, tt := range []struct {
		args          string
		bytes         uint64 // of an operation
		reads, writes bool
	}{
		{"-D 8K -M 1", 8 << 10, true, false},
		{"-D 8K -M 2 -I 4", 32 << 10, false, true},
		{"-D 64K -d 4 -t 2", 64 << 10, true, true},
		{"-D 1M", 1 << 20, true, true},
		{"-D 8K -d 8 --rdma-use-once 1", 8 << 10, true, true},
		{"-D 8K -d 4 --rdma-use-fence 0", 8 << 10, true, true},
		{"-D 8K -d 4 --rdma-cache-mrs 1", 8 << 10, true, true},
		{"-D 1001 -I 3 --rdma-alignment 13 -d 2 -o", 3003, true, true},
	} {
		t.Run(tt.args, func(t *testing.T) {
			e := operations(t, 5000+100*i, tt.args)
			read, written := e.requests("read"), e.requests("write")
			if (read > 0) != tt.reads || (written > 0) != tt.writes {
				t.Errorf("%d requests answered by reads, %d by writes", read, written)
			}
			// What comes in is written by the peer, or read by this side.
			if want := (written + e.RDMAReads) * tt.bytes; e.RDMAIn != want {
				t.Errorf("%d bytes in, want %d", e.RDMAIn, want)
			}
			if want := (read + e.RDMAWrites) * tt.bytes; e.RDMAOut != want {
				t.Errorf("%d bytes out, want %d", e.RDMAOut, want)
			}
		})
	}
}

func TestRDMAOfAllSizesAndModes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two minutes")
	}
	port := 7000
	for _, size := range []string{"8K -I 1", "8K -I 4", "64K -I 1", "64K -I 4", "1M -I 1"} {
		for mode := range 3 {
			for once := range 2 {
				args := fmt.Sprintf("-D %s -M %d --rdma-use-once %d -d 2", size, mode, once)
				port += 10
				t.Run(args, func(t *testing.T) { operations(t, port, args) })
			}
		}
	}
}

// A user who may lock no memory can register none.
func TestRDMAThatCannotBeSaysWhy(t *testing.T) {
	labtest.Need(t, labtest.RDMA, labtest.Root)
	here, there := labtest.HCA(t, 1).IPv4().String(), labtest.HCA(t, 2).IPv4().String()
	const memlock = 8 // RLIMIT_MEMLOCK
	var was syscall.Rlimit
	if err := syscall.Getrlimit(memlock, &was); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(memlock, &was)
	for i, tt := range []struct {
		name, args, want string
		memlock          uint64
		status           int
	}{
		{"no locked memory", "-D 8K", "(Operation not permitted)\nno memory may be locked for RDMA (-D), RLIMIT_MEMLOCK is 0: raise it (ulimit -l)", 0, 1},
		{"no registration without a message", "-D 8K --rdma-use-get-mr 1", "leave --rdma-use-get-mr out", was.Cur, 2},
	} {
		if err := syscall.Setrlimit(memlock, &syscall.Rlimit{Cur: tt.memlock, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		cmd := labtest.Command(t, strings.Fields(fmt.Sprintf("--self -r %s -s %s -p %d -T 1 --warmup 0.4 %s", here, there, 7600+10*i, tt.args))...)
		if tt.memlock == 0 {
			// The directory of the test binary may not be open to other users.
			cmd.Path, cmd.SysProcAttr = "/proc/self/exe", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if r := labtest.StartOn(t, 0, cmd).Finish(t); r.Status != tt.status || !strings.Contains(r.Stderr, tt.want) {
			t.Errorf("%s: status %d, want %d\n%s", tt.name, r.Status, tt.status, r.Stderr)
		}
	}
}

func TestRDMAOverIPv6(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	here, there := labtest.HCA(t, 1).IPv6().String(), labtest.HCA(t, 2).IPv6().String()
	r := labtest.RunOn(t, 0, "--self", "-r", here, "-s", there, "-p", "6300", "-T", "1", "--warmup", "0.4", "-D", "8K", "-v", "-Q", "3", "--json")
	if e := end(t, r); r.Status != 0 || !e.OK || e.RDMAReads == 0 || e.RDMAWrites == 0 {
		t.Errorf("status %d: %+v\n%s", r.Status, e, r.Stderr)
	}
}

func TestRDMAIsInTextAndCSV(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	here, there := labtest.HCA(t, 1).IPv4().String(), labtest.HCA(t, 2).IPv4().String()
	run := func(port int, args ...string) labtest.Result {
		r := labtest.RunOn(t, 0, append([]string{"--self", "-r", here, "-s", there, "-p", fmt.Sprint(port), "-D", "8K", "-T", "1", "--warmup", "0.4"}, args...)...)
		if r.Status != 0 {
			t.Fatalf("status %d\n%s", r.Status, r.Stderr)
		}
		return r
	}
	r := run(6400, "--percentiles", "--show-params", "-V")
	for _, want := range []string{
		`  RDMA size  8192   \n  RDMA opts  use_fence\n`,
		`(?m)^   1 [ \d]{6} [ \d]{6} [ \d]{7}\.\d\d [ \d]*[1-9]\d*\.\d\d [ \d]*[1-9]\d*\.\d\d .*\(average\)$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.Stdout) {
			t.Errorf("no %s in\n%s", want, r.Stdout)
		}
	}
	for _, want := range []string{
		`(?m)^RDMA read, from request to verified data: p50 [\d.]+ us .* max [\d.]+ us$`,
		`(?m)^RDMA write, from request to verified data: p50 `,
		`(?m)^RDMA operation, from start to completion: p50 `,
		`(?m)^active side, by infiniband: \d+ messages received, none lost, doubled, reordered or damaged; \d+ RDMA reads and \d+ writes done$`,
		`(?m)^task 0: request 0: asks for RDMA read, pattern 0x[0-9a-f]+, key [0-9a-f]+:[0-9a-f]+$`,
		`(?m)^task 0: RDMA write for request 0: success, pattern 0x[0-9a-f]+$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.Stderr) {
			t.Errorf("no %s in\n%.3000s", want, r.Stderr)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(run(6410, "--csv").Stdout)).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, name := range []string{"rdma_in_bytes", "rdma_reads", "rdma_write_p50_ns", "rdma_read_max_ns"} {
		if i := slices.Index(rows[0], name); i < 0 || rows[1][i] == "0" {
			t.Errorf("no %s in %v\n%v", name, rows[0], rows[1])
		}
	}
}

// A badPeer is the active side of a run, without what makes one good.
type badPeer struct {
	control *control.Conn
	conn    *rdma.Conn
	to      netip.AddrPort
	header  wire.Header
}

// newBadPeer has the passive side at port of the second host begin a run with operations of 8 KiB.
func newBadPeer(t *testing.T, port int) *badPeer {
	t.Helper()
	here, there := labtest.HCA(t, 1).IPv4(), labtest.HCA(t, 2).IPv4()
	local := netip.AddrPortFrom(here, uint16(port+1))
	p := &badPeer{to: netip.AddrPortFrom(there, uint16(port+1))}
	var err error
	d := &control.Dialer{Local: here, Retries: 10}
	if p.control, err = d.Dial(t.Context(), netip.AddrPortFrom(there, uint16(port))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.control.Close() })
	sock, err := rdssock.Listen(local, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.conn, err = rdma.New(sock, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.conn.Close() })
	if err := p.control.SendOptions(&wire.Options{
		Depth: 4, ReqSize: 64, AckSize: uint32(wire.Async), RDMASize: 8192, RDMAVector: 1, RDMAUseFence: true, Verify: true,
		SendAddr: there, RecvAddr: here, Port: uint16(port), Tasks: 1, Simplex: true, CongMonitor: true, Sender: wire.SenderC,
	}, wire.Short); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.control.Go(1); err != nil {
		t.Fatal(err)
	}
	p.header = wire.Header{From: local, To: p.to, Op: wire.Request, RDMA: wire.RDMA{Pattern: 7, Size: 8192, Vector: 1}}
	return p
}

// message is the next request, which asks for an operation.
func (p *badPeer) message(op wire.RDMAOp, key uint64) []byte {
	p.header.RDMA.Op, p.header.RDMA.Key = op, key
	b := make([]byte, wire.Async)
	wire.Async.Put(b, &p.header)
	p.header.Seq++
	p.header.Index++
	return wire.AppendPattern(b, 1)
}

func TestRDMAThatGoesWrongIsToldAndCounted(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	for i, tt := range []struct {
		name, told string
		do         func(*badPeer, *rdma.Region) error
		failed     uint64
		damaged    uint64
	}{
		{name: "a key that was never given", told: "RDMA failed: write: remote error", failed: 1, do: func(p *badPeer, _ *rdma.Region) error {
			_, err := p.conn.Socket().WriteToAddrPort(p.message(wire.RDMAWrite, 0x4711), p.to)
			return err
		}},
		{name: "other data than the pattern", told: "RDMA moved wrong data: read of pattern 0x7, first at byte 8000", damaged: 1, do: func(p *badPeer, r *rdma.Region) error {
			wire.Repeated.Fill(r.Bytes(), 7)
			r.Bytes()[8000] ^= 1
			reg := &rdma.Registration{Memory: r.All(), Tied: true}
			return p.conn.Offer(context.Background(), reg, p.message(wire.RDMARead, 0), p.to)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			port := 6000 + 100*i
			region, err := rdma.Allocate(8192)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { region.Close(context.Background()) })
			cmd := labtest.Command(t, "-r", labtest.HCA(t, 2).IPv4().String(), "-p", fmt.Sprint(port), "--json")
			found := newWatch(cmd, `"type":"finding"`)
			server := labtest.StartOn(t, 0, cmd)
			p := newBadPeer(t, port)
			if err := tt.do(p, region); err != nil {
				t.Fatal(err)
			}
			found.wait(t)
			p.control.Close()
			r := server.Finish(t)
			r.Stdout = found.String()
			if !strings.Contains(r.Stderr, tt.told) {
				t.Errorf("not told: %s", r.Stderr)
			}
			if e := end(t, r); r.Status != 1 || e.OK || e.Faults.RDMAFailed != tt.failed || e.Faults.RDMADamaged != tt.damaged {
				t.Errorf("status %d, %+v", r.Status, e.Faults)
			}
		})
	}
}

// The operation may or may not have failed by the time that the passive side sees that the run is over.
func TestRDMAThatFailsWhenAPeerOfCEndsIsNoFault(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	cmd := labtest.Command(t, "-r", labtest.HCA(t, 2).IPv4().String(), "-p", "6200", "--json")
	server := labtest.StartOn(t, 0, cmd)
	p := newBadPeer(t, 6200)
	if _, err := p.conn.Socket().WriteToAddrPort(p.message(wire.RDMAWrite, 0x4711), p.to); err != nil {
		t.Fatal(err)
	}
	p.control.Close()
	if r := server.Finish(t); r.Status != 0 {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
}
