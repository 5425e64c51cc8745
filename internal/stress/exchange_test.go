package stress

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/stress/control"
	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

var update = flag.String("update", "", "record the exchanges anew, in the lab, with the C rds-stress 2.0.7, 2.3.11 and 2.3.11,mainline in subdirectories of `DIR`")

// A variant is a kind of run with a C peer.
type variant struct {
	options string        // of C
	set     func(*Active) // does the same here
	ipv6    bool
	json    bool // is for 2.3.9 and later
}

func (v variant) String() string {
	name := strings.NewReplacer("--", "", "-", "", " ", "").Replace(v.options)
	if name == "" {
		name = "plain"
	}
	if v.ipv6 {
		name += "-ipv6"
	}
	return name
}

var variants = []variant{
	{options: "", set: func(*Active) {}},
	{options: "-v", set: func(a *Active) { a.Config.Shape.Verify = true }},
	{options: "-o", set: func(a *Active) { a.Options.Simplex = true }},
	{options: "-t 4", set: func(a *Active) { a.Config.Tasks = 4 }},
	{options: "-d 64", set: func(a *Active) { a.Config.Shape.Depth = 64 }},
	{options: "-q 8K -v", set: func(a *Active) { a.Config.Shape.ReqSize, a.Config.Shape.Verify = 8<<10, true }},
	{options: "-q 64K", set: func(a *Active) { a.Config.Shape.ReqSize = 64 << 10 }},
	{options: "-Q 3", set: func(a *Active) { a.Config.TOS = 3 }},
	{options: "--show-histogram", set: func(*Active) {}},
	{options: "-v", set: func(a *Active) { a.Config.Shape.Verify = true }, ipv6: true, json: true},
	{options: "--always-bursty -d 8", set: func(a *Active) { a.Config.Bursty, a.Config.Shape.Depth = true, 8 }, json: true},
	{options: "--sync-always-bursty -d 8", ipv6: true, json: true,
		set: func(a *Active) { a.Config.Bursty, a.Config.SyncBursty, a.Config.Shape.Depth = true, true, 8 }},
}

// A meeting is a variant with one release on one side.
type meeting struct {
	variant
	peer       PeerVersion
	peerActive bool
	port       uint16
}

func meetings() (all []meeting) {
	for _, version := range []string{"2.0.7", "2.3.11", "2.3.11,mainline"} {
		peer, err := ParsePeerVersion(version)
		if err != nil {
			panic(err)
		}
		for i, v := range variants {
			if v.json && !peer.json() {
				continue
			}
			for _, active := range []bool{true, false} {
				all = append(all, meeting{v, peer, active, wire.DefaultPort + uint16(20*i)})
			}
		}
	}
	return all
}

func (m meeting) side() string {
	if m.peerActive {
		return "active"
	}
	return "passive"
}

func (m meeting) String() string { return fmt.Sprintf("%v %s %v", m.peer, m.side(), m.variant) }

func (m meeting) file() string {
	return filepath.Join("testdata", "exchanges", m.peer.String(), m.side(), m.variant.String()+".txt")
}

// local and remote are the addresses of rdskit and C.
func (m meeting) local() netip.Addr  { return m.addr(1) }
func (m meeting) remote() netip.Addr { return m.addr(2) }

func (m meeting) addr(n int) netip.Addr {
	if m.ipv6 {
		return netip.MustParseAddr(fmt.Sprintf("fd00::%d", n))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.9.0.%d", n))
}

// active is the side of rdskit where C is passive.
func (m meeting) active() *Active {
	layout := m.peer.Layout(m.ipv6)
	a := &Active{Peer: m.peer, Config: Config{
		Local: m.local(), Peer: m.remote(), Port: m.port, Tasks: 1, Requests: true, RDMA: RDMA{Vector: 1},
		Shape: flow.Shape{Layout: layout, Depth: 1, ReqSize: 1024, AckSize: int(layout)},
	}}
	m.set(a)
	a.Config.MinReqSize = a.Config.Shape.ReqSize
	return a
}

// negotiate is the conversation before the first message, of which conn is this side's end.
func (m meeting) negotiate(t *testing.T, conn net.Conn, open func(*Config), warm func()) *Config {
	t.Helper()
	c := control.NewConn(conn)
	if !m.peerActive {
		a := m.active()
		rdskit, err := a.negotiate(c, func() error {
			open(&a.Config)
			warm()
			return nil
		})
		if rdskit || err != nil {
			t.Fatalf("rdskit %v, %v", rdskit, err)
		}
		return &a.Config
	}
	p := &Passive{Local: m.local()}
	o, form, err := c.ReceiveOptions()
	if err != nil {
		t.Fatal(err)
	}
	var cfg *Config
	err = p.negotiate(&control.Offer{Conn: c, Options: *o, Form: form}, func(got *Config) error {
		cfg = got
		open(cfg)
		return nil
	}, warm)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A transcript is what both sides said: lines of the control connection, then one for each of the first messages.
type transcript struct {
	control []speech
	lines   []string
}

// A speech is what a side sent before the other did.
type speech struct {
	peer bool
	b    []byte
}

const maxMessages = 16 // for each task

func who(peer bool) string {
	if peer {
		return "C"
	}
	return "rdskit"
}

func (r *transcript) say(peer bool, b []byte) {
	if n := len(r.control); n == 0 || r.control[n-1].peer != peer {
		r.control = append(r.control, speech{peer: peer})
	}
	s := &r.control[len(r.control)-1]
	s.b = append(s.b, b...)
}

// message notes a message of which the payload is known or, of C without -v, what happened to be in memory.
func (r *transcript) message(peer bool, s *flow.Shape, b []byte) {
	line := fmt.Sprintf("message %s %x %d", who(peer), b[:s.Layout], len(b)-int(s.Layout))
	if !peer || s.Verify {
		line += fmt.Sprintf(" %08x", crc32.ChecksumIEEE(b[s.Layout:]))
	}
	r.lines = append(r.lines, line)
}

func (r *transcript) text() string {
	var b strings.Builder
	for _, s := range r.control {
		binary, json, ok := bytes.Cut(s.b, []byte("{"))
		fmt.Fprintf(&b, "control %s %x\n", who(s.peer), binary)
		if ok {
			fmt.Fprintf(&b, "json %s %q\n", who(s.peer), "{"+string(json))
		}
	}
	for _, l := range r.lines {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// parseTranscript undoes text.
func parseTranscript(t *testing.T, text string) *transcript {
	t.Helper()
	var r transcript
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, " ")
		side, rest, _ := strings.Cut(rest, " ")
		switch kind {
		case "control":
			b, err := hex.DecodeString(rest)
			if err != nil {
				t.Fatal(err)
			}
			r.say(side == who(true), b)
		case "json":
			var s string
			if _, err := fmt.Sscanf(rest, "%q", &s); err != nil {
				t.Fatal(err)
			}
			r.say(side == who(true), []byte(s))
		case "message":
			r.lines = append(r.lines, line)
		}
	}
	return &r
}

// A player has the flows of one side.
type player struct {
	shape     flow.Shape
	cfg       *Config
	undecided bool
	flows     [][]*flow.Flow // by own task, and the peer's
}

func newPlayer(cfg *Config) *player {
	p := &player{shape: cfg.Shape, cfg: cfg, undecided: cfg.DetectLayout}
	p.shape.Prepare()
	p.newFlows()
	return p
}

func (p *player) newFlows() {
	cfg := p.cfg
	p.flows = make([][]*flow.Flow, cfg.Tasks)
	for i := range p.flows {
		for j := range cfg.Tasks {
			f := flow.New(&p.shape, netip.AddrPortFrom(cfg.Local, cfg.port(i)), netip.AddrPortFrom(cfg.Peer, cfg.port(j)))
			p.flows[i] = append(p.flows[i], f)
		}
	}
}

// receive takes in a message to task i of the peer's task j.
func (p *player) receive(t *testing.T, i, j int, b []byte) {
	t.Helper()
	if p.undecided {
		p.shape.Layout, p.undecided = flow.Detect(b), false
		p.newFlows()
	}
	f := p.flows[i][j]
	if r := f.Receive(b); r.Fault != flow.NoFault {
		t.Errorf("message of C: %v: %x", r.Fault, b[:p.shape.Layout])
	}
}

// next is the next message to send: an answer, or a request.
func (p *player) next(f *flow.Flow, op wire.Op) []byte {
	var header, payload []byte
	if op == wire.Ack {
		header, payload = f.Ack()
		defer f.AckSent()
	} else {
		header, payload = f.Request(p.shape.ReqSize)
		defer f.RequestSent(p.shape.ReqSize, 0)
	}
	return append(append([]byte(nil), header...), payload...)
}

// A replay is this side's end of a recorded control connection.
type replay struct {
	net.Conn
	recorded []speech
	got      transcript
	local    netip.AddrPort
}

func (r *replay) Read(b []byte) (int, error) {
	switch {
	case len(r.recorded) == 0:
		return 0, io.EOF
	case !r.recorded[0].peer:
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, r.recorded[0].b)
	r.got.say(true, b[:n])
	r.pass(n)
	return n, nil
}

func (r *replay) Write(b []byte) (int, error) {
	r.got.say(false, b)
	if len(r.recorded) == 0 || r.recorded[0].peer {
		return 0, errors.New("more than was recorded")
	}
	r.pass(min(len(b), len(r.recorded[0].b)))
	return len(b), nil
}

func (r *replay) pass(n int) {
	if r.recorded[0].b = r.recorded[0].b[n:]; len(r.recorded[0].b) == 0 {
		r.recorded = r.recorded[1:]
	}
}

func (r *replay) Close() error                     { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }
func (r *replay) LocalAddr() net.Addr              { return net.TCPAddrFromAddrPort(r.local) }
func (r *replay) RemoteAddr() net.Addr             { return net.TCPAddrFromAddrPort(netip.AddrPort{}) }

// TestExchangesWithC has this side meet what C said, and compares what it says with what C took.
func TestExchangesWithC(t *testing.T) {
	for _, m := range meetings() {
		t.Run(m.String(), func(t *testing.T) {
			if *update != "" {
				writeExchange(t, m.file(), record(t, m))
			}
			want, err := os.ReadFile(m.file())
			if err != nil {
				t.Fatal(err)
			}
			recorded := parseTranscript(t, string(want))
			r := &replay{recorded: recorded.control, local: netip.AddrPortFrom(m.local(), m.port)}
			cfg := m.negotiate(t, r, func(*Config) {}, func() {})
			if n := cfg.Tasks; n*n < len(recorded.lines)/maxMessages || len(recorded.lines) == 0 {
				t.Errorf("%d tasks, %d messages", n, len(recorded.lines))
			}
			replayMessages(t, newPlayer(cfg), recorded.lines, &r.got)
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(r.got.text(), "\n")); diff != "" {
				t.Errorf("(-recorded +now):\n%s", diff)
			}
		})
	}
}

// replayMessages has p receive what C sent, and send what it sent then.
func replayMessages(t *testing.T, p *player, lines []string, got *transcript) {
	t.Helper()
	for _, line := range lines {
		var side string
		var header []byte
		var size int
		if _, err := fmt.Sscanf(line, "message %s %x %d", &side, &header, &size); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		h, ok := wire.Layout(len(header)).Parse(header)
		if !ok {
			t.Fatalf("%q has no header", line)
		}
		peer := side == who(true)
		local, remote := h.From.Port(), h.To.Port()
		if peer {
			local, remote = remote, local
		}
		i, j := int(local-p.cfg.port(0)), int(remote-p.cfg.port(0))
		b := wire.AppendPattern(header, size) // without -v any will do
		if peer {
			p.receive(t, i, j, b)
		} else {
			f := p.flows[i][j]
			if h.Op == wire.Ack && f.Owes() == 0 || h.Op == wire.Request && f.Full() {
				t.Fatalf("%q is not due", line)
			}
			b = p.next(f, h.Op)
		}
		got.message(peer, &p.shape, b)
	}
}

func writeExchange(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
