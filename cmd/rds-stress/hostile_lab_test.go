package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// TestHostileSessionsLeaveTheServerServing goes further than the options, up to where sockets are open.
func TestHostileSessionsLeaveTheServerServing(t *testing.T) {
	needHosts(t, 2)
	cmd := labtest.Command(t, "-r", "10.9.0.2", "-p", "8740", "--serve")
	listening := newWatch(cmd, "waiting for incoming connection")
	server := labtest.StartOn(t, 2, cmd)
	listening.wait(t)
	for _, h := range hostileSessions() {
		var c net.Conn
		err := labtest.Host(t, 1).Do(func() (err error) {
			c, err = net.Dial("tcp", "10.9.0.2:8740")
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", h.name, err)
		}
		for _, b := range h.says {
			c.Write(b)
			c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			c.Read(make([]byte, 4096))
		}
		c.Close()
	}
	r := labtest.RunOn(t, 1, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8740", "-T", "1", "--warmup", "0.2", "-v", "--json")
	if e := end(t, r); r.Status != 0 || !e.OK || e.RequestsReceived == 0 {
		t.Errorf("status %d, %+v\n%s", r.Status, e, r.Stderr)
	}
	peak := peakMemory(t, cmd.Process.Pid)
	cmd.Process.Signal(syscall.SIGINT)
	s := server.Finish(t)
	if s.Status != 0 || strings.Count(listening.String(), "(average)") < 1 {
		t.Errorf("status %d\n%s%s", s.Status, listening, s.Stderr)
	}
	if peak > 256<<10 {
		t.Errorf("the server took %d KiB of memory", peak)
	}
}

// A hostileSession is what somebody says to a server, with a pause after each.
type hostileSession struct {
	name string
	says [][]byte
}

func hostileSessions() (all []hostileSession) {
	say := func(name string, says ...[]byte) { all = append(all, hostileSession{name, says}) }
	good := wire.Options{
		Depth: 8, ReqSize: 256, AckSize: 63, Tasks: 2, Port: 8740, RDMAVector: 1, CongMonitor: true, Sender: wire.SenderC, Version: "2.3.11",
		SendAddr: netip.MustParseAddr("10.9.0.2"), RecvAddr: netip.MustParseAddr("10.9.0.1"),
	}
	with := func(form wire.Form, change func(o *wire.Options)) []byte {
		o := good
		change(&o)
		return o.Append(nil, form)
	}
	short := func(change func(o *wire.Options)) []byte { return with(wire.Short, change) }
	start, most := []byte{0}, uint32(1<<32-1)

	say("options and no more", short(func(*wire.Options) {}))
	say("a run that ends as it begins", short(func(*wire.Options) {}), start)
	for name, change := range map[string]func(o *wire.Options){
		"an absurd depth":        func(o *wire.Options) { o.Depth = most },
		"no depth":               func(o *wire.Options) { o.Depth = 0 },
		"all tasks":              func(o *wire.Options) { o.Tasks = 65535 },
		"no tasks":               func(o *wire.Options) { o.Tasks = 0 },
		"all memory":             func(o *wire.Options) { o.Tasks, o.Depth, o.ReqSize = 1024, 65535, 1<<20 },
		"absurd requests":        func(o *wire.Options) { o.ReqSize = most },
		"requests of nothing":    func(o *wire.Options) { o.ReqSize = 0 },
		"answers of nothing":     func(o *wire.Options) { o.AckSize = 0 },
		"no port":                func(o *wire.Options) { o.Port = 65535 },
		"absurd RDMA":            func(o *wire.Options) { o.RDMASize, o.RDMAVector, o.RDMAAlignment = most, most, most },
		"a broadcast address":    func(o *wire.Options) { o.RecvAddr = netip.MustParseAddr("255.255.255.255") },
		"the server's address":   func(o *wire.Options) { o.RecvAddr = o.SendAddr },
		"asynchronous messages":  func(o *wire.Options) { o.Async = true },
		"a real-time scheduling": func(o *wire.Options) { o.RTPrio = true },
	} {
		say(name, short(change), start)
		say(name+", in the long form", with(wire.Long, change), start)
	}

	rdskit := short(func(o *wire.Options) { o.Sender = wire.SenderRDSKit })
	frame := func(s string) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...) }
	say("rdskit that says no hello", rdskit, start)
	say("half a frame", rdskit, start, frame(`{"type":"hello"}`)[:9])
	say("a frame of gigabytes", rdskit, start, []byte{0x7f, 0xff, 0xff, 0xff, '{'})
	say("no JSON in a frame", rdskit, start, frame("\x00\x01"))
	say("another frame", rdskit, start, frame(`{"type":"verdict"}`))
	say("an impossible hello", rdskit, start, frame(`{"type":"hello","hello":{"address":"10.9.0.1","min_request_size":256,"interval_ns":1,"rate":-1}}`))
	say("a hello of another family", rdskit, start, frame(`{"type":"hello","hello":{"address":"fd00::1","min_request_size":256,"interval_ns":1000000000}}`))

	wants := with(wire.Long, func(o *wire.Options) { o.WantsJSON = true })
	json := func(s string) []byte { return append(binary.NativeEndian.AppendUint32(nil, uint32(len(s))), s...) }
	say("JSON that does not come", wants, start)
	say("JSON of gigabytes", wants, start, []byte{0xff, 0xff, 0xff, 0x7f, '{'})
	say("half of the JSON", wants, start, json(`{"req_depth": 8}`)[:9])
	say("garbage for JSON", wants, start, json("\x00\x01\x02"))
	say("absurd numbers in JSON", wants, start, json(`{"req_depth": 2147483647, "nr_tasks": 65535, "req_size": -1}`), start)
	say("JSON and no second go byte", wants, start, json(`{"always_bursty": 1}`))
	return all
}

// peakMemory is VmHWM of a process, in KiB.
func peakMemory(t *testing.T, pid int) (kib int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib
		}
	}
	t.Fatalf("no peak of memory in %s", b)
	return 0
}
