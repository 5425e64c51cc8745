package stress

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/transport"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// The files of testdata/rdma are exchanges of this rds-stress with that of rds-tools, recorded on the two addresses of a
// soft RoCE device on Linux 6.1: what the side at the first address (the active one) or the second does is in the
// file's name. Each run begins with the line
//
//	run active|passive OPTIONS
//
// of this side's role and what the active side was told, and the block of options in hex. Then follow, from this side's
// point of view,
//
//	> HEADER [map BYTES FLAGS KEY | dest KEY | args KEY BYTES COUNT FLAGS]   sent, and what the kernel was told along with it
//	< HEADER [dest KEY]                                                     received
//	! STATUS                                                                the end of the oldest operation
//
// Headers are in hex, without the zeros at their end.
func TestExchangesWithCAreRepeatedByteForByte(t *testing.T) {
	files, err := filepath.Glob("testdata/rdma/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no exchanges: %v", err)
	}
	for _, file := range files {
		for _, r := range recordings(t, file) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+" "+r.name, func(t *testing.T) {
				p := newRDMAReplay(t, r)
				for _, e := range r.events {
					p.play(e)
				}
				p.finish()
			})
		}
	}
}

// What C moves is damaged in its last byte, of the last element: each time that has to be found.
func TestDamageInAnExchangeIsFound(t *testing.T) {
	files, _ := filepath.Glob("testdata/rdma/*.txt")
	for _, file := range files {
		for _, r := range recordings(t, file) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+" "+r.name, func(t *testing.T) {
				p := newRDMAReplay(t, r)
				p.damage = true
				for _, e := range r.events {
					p.play(e)
				}
				if want := p.worker.stats.RDMAReads + p.writes; p.worker.stats.RDMADamaged != want || want == 0 {
					t.Errorf("%d times wrong data found, want %d", p.worker.stats.RDMADamaged, want)
				}
			})
		}
	}
}

// A recording is one run.
type recording struct {
	name    string
	active  bool
	options []byte
	events  []event
}

type event struct {
	line   int
	kind   string // of the three in the files
	header []byte
	along  []string
}

func recordings(t *testing.T, file string) (all []*recording) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		return b
	}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		switch w := strings.Fields(lines.Text()); w[0] {
		case "run":
			all = append(all, &recording{name: strings.Join(w[2:], " "), active: w[1] == "active"})
		case "options":
			all[len(all)-1].options = unhex(w[1])
		default:
			r := all[len(all)-1]
			e := event{line: n, kind: w[0], along: w[1:]}
			if e.kind != "!" {
				e.header, e.along = make([]byte, wire.Async), w[2:]
				copy(e.header, unhex(w[1]))
			}
			r.events = append(r.events, e)
		}
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%s: %d runs, %v", file, len(all), err)
	}
	return all
}

// An rdmaReplay goes through an exchange on the side of rdskit, with all but the kernel.
type rdmaReplay struct {
	t         *testing.T
	recording *recording
	worker    *worker
	flow      *flow.Flow
	remote    *remote
	running   []uint64 // tokens of operations
	writes    uint64   // by the peer
	damage    bool
	ops       int
}

func newRDMAReplay(t *testing.T, r *recording) *rdmaReplay {
	var o wire.Options
	if err := o.Decode(r.options, wire.Short); err != nil {
		t.Fatal(err)
	}
	cfg := &Config{
		Local: o.RecvAddr, Peer: o.SendAddr, Port: o.Port, Tasks: int(o.Tasks), RDMA: rdmaOf(&o), MaxFindings: 1000,
		Shape: flow.Shape{Layout: wire.Async, Depth: int(o.Depth), ReqSize: int(o.ReqSize), AckSize: int(o.AckSize), Verify: o.Verify, RDMA: true},
	}
	if !r.active {
		cfg.Local, cfg.Peer = cfg.Peer, cfg.Local
	}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	checkOptions(t, r, &o, cfg)
	cfg.Shape.Prepare()
	w := &worker{run: &Run{cfg: cfg, epoch: time.Now(), stop: make(chan struct{})}, shape: cfg.Shape, lat: newLatencies(), sock: new(transport.Socket)}
	w.remotes = []netip.AddrPort{netip.AddrPortFrom(cfg.Peer, cfg.port(0))}
	w.flows = []*flow.Flow{flow.New(&w.shape, netip.AddrPortFrom(cfg.Local, cfg.port(0)), w.remotes[0])}
	m, err := makeRemote(w, tagOf(r))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.memory.Close() })
	w.remote = m
	return &rdmaReplay{t: t, recording: r, worker: w, flow: w.flows[0], remote: m}
}

// checkOptions sees that the options say what the active side was told, and that they are encoded again as they were.
func checkOptions(t *testing.T, r *recording, o *wire.Options, cfg *Config) {
	t.Helper()
	var size, once, vector, mode string
	if _, err := fmt.Sscanf(r.name, "-D %s -I %s -M %s --rdma-use-once %s", &size, &vector, &mode, &once); err != nil {
		t.Fatalf("%q: %v", r.name, err)
	}
	bytes := map[string]int{"8K": 8 << 10, "64K": 64 << 10, "1M": 1 << 20}[size]
	v, _ := strconv.Atoi(vector)
	mm, _ := strconv.Atoi(mode)
	want := RDMA{Size: bytes, Vector: v, Mode: wire.RDMAMode(mm), UseOnce: once == "1"}
	if diff := cmp.Diff(want, cfg.RDMA); diff != "" {
		t.Errorf("RDMA (-want +got):\n%s", diff)
	}
	again := *o
	again.RDMASize, again.RDMAVector, again.RDMAMode, again.RDMAUseOnce, again.RDMAUseFence = 0, 0, 0, false, false
	cfg.RDMA.put(&again)
	if got := again.Append(nil, wire.Short); string(got) != string(r.options) {
		t.Errorf("options\n%x, were\n%x", got, r.options)
	}
}

// tagOf is that of this side's patterns.
func tagOf(r *recording) uint32 {
	for _, e := range r.events {
		if e.kind != ">" {
			continue
		}
		if _, _, op := wire.Message(e.header); op == wire.Request {
			if rdma := wire.ParseRDMA(e.header); rdma.Op != wire.NoRDMA {
				return uint32(rdma.Pattern)
			}
		}
	}
	return 0
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (p *rdmaReplay) play(e event) {
	switch e.kind {
	case ">":
		p.sent(e)
	case "<":
		p.received(e)
	case "!":
		token := p.running[0]
		p.running = p.running[1:]
		job := p.remote.flows[0].Job(uint16(token))
		if job.Doing.Op == wire.RDMARead {
			p.fill(p.remote.memory.Source(int(token)), job.Doing.Pattern)
		}
		p.remote.completed(cmsg.RDMAStatus{Token: token, Status: cmsg.Status(number(e.along[0]))})
	}
	if p.t.Failed() {
		p.t.Fatalf("line %d", e.line)
	}
}

// fill does as C does.
func (p *rdmaReplay) fill(b []byte, pattern uint64) {
	b = b[:p.remote.shape.Size]
	for at := 0; at < len(b); at += 8 {
		binary.NativeEndian.PutUint64(b[at:], pattern)
	}
	if p.damage {
		b[len(b)-1]++
	}
}

func (p *rdmaReplay) sent(e event) {
	var header, control []byte
	_, _, op := wire.Message(e.header)
	if op == wire.Request {
		if p.flow.Full() {
			p.t.Fatal("a request too many")
		}
		header, _ = p.flow.Request(p.worker.shape.ReqSize)
		header = header[:p.worker.shape.Layout]
		control = p.remote.request(0, header)
		p.compare(e, header, control)
		if len(e.along) > 0 {
			p.remote.asking.Key = number(e.along[len(e.along)-1])
		}
		p.remote.requested(0, header)
		p.flow.RequestSent(p.worker.shape.ReqSize, 0)
		return
	}
	if p.flow.Owes() == 0 || !p.remote.fenced(0) {
		p.t.Fatal("an answer too early")
	}
	header, _ = p.flow.Ack()
	header = header[:p.worker.shape.Layout]
	control = p.remote.answer(0, header)
	p.compare(e, header, control)
	p.remote.answered(0, header)
	p.flow.AckSent()
}

// compare compares a message with the one that was sent, but for the address of memory.
func (p *rdmaReplay) compare(e event, header, control []byte) {
	p.t.Helper()
	_, index, op := wire.Message(header)
	got, want := bytes.Clone(header), bytes.Clone(e.header)
	rdma := wire.ParseRDMA(got)
	if op == wire.Request && rdma.Op != wire.NoRDMA {
		rdma.Addr = wire.ParseRDMA(want).Addr
		wire.PutRDMA(got, &rdma)
	}
	if string(got) != string(want) {
		p.t.Errorf("header\n%x, was\n%x", got, want)
	}
	var along []string
	for it := cmsg.Parse(p.worker.dialect, control); it.Next(); {
		switch m := it.Message(); m.Kind() {
		case cmsg.KindRDMAMap:
			a, _ := m.RDMAMap()
			along = []string{"map", fmt.Sprint(a.Vec.Len), fmt.Sprintf("%#x", uint64(a.Flags)), e.along[len(e.along)-1]}
			if a.Vec.Addr != p.remote.memory.Address(int(index)) {
				p.t.Errorf("memory at %#x is registered, want that of index %d", a.Vec.Addr, index)
			}
		case cmsg.KindRDMAArgs:
			a, _ := m.RDMAArgs()
			along = []string{"args", fmt.Sprintf("%#x", uint64(a.Key)), fmt.Sprint(a.Remote.Len), fmt.Sprint(a.LocalCount), fmt.Sprintf("%#x", uint64(a.Flags))}
			p.running = append(p.running, a.Token)
			p.ops++
			if rdma.Op == wire.RDMAWrite && p.remote.shape.Check(p.remote.memory.Source(int(index)), rdma.Pattern) != -1 {
				p.t.Error("what is written is not the pattern")
			}
		default:
			p.t.Errorf("control message %v", m.Kind())
		}
	}
	if got, want := strings.Join(along, " "), strings.Join(e.along, " "); got != want {
		p.t.Errorf("the kernel is told %q, was told %q", got, want)
	}
}

func (p *rdmaReplay) received(e event) {
	p.remote.dest = 0
	if len(e.along) > 0 {
		p.remote.dest = number(e.along[1])
	}
	_, index, op := wire.Message(e.header)
	size := p.worker.shape.ReqSize
	if op == wire.Ack {
		size = p.worker.shape.AckSize
		if rdma := wire.ParseRDMA(e.header); rdma.Op == wire.RDMAWrite {
			p.writes++
			p.fill(p.remote.memory.Target(int(index)), rdma.Pattern)
		}
	}
	message := wire.AppendPattern(bytes.Clone(e.header), size-len(e.header))
	r := p.flow.Receive(message)
	if r.Op != 0 {
		p.remote.received(0, message, r)
	}
	if r.Fault != flow.NoFault || r.Op != op {
		p.t.Errorf("%v is taken for %v: %v", op, r.Op, r.Fault)
	}
}

func (p *rdmaReplay) finish() {
	s := &p.worker.stats
	if n := s.Faults() + p.flow.Account.Faults(); n != 0 {
		p.t.Errorf("%d faults: %+v", n, p.worker.run.findings)
	}
	if p.ops < 2 || p.writes == 0 && s.RDMAOutBytes == 0 {
		p.t.Errorf("%d operations, %+v: too few to show anything", p.ops, s)
	}
}
