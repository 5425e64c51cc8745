package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

func TestMain(m *testing.M) { labtest.MainOf(m, main) }

func TestValuesOfAllSizesComeBack(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	address := netip.AddrPortFrom(labtest.HCA(t, 1).IPv4(), 5100).String()
	server := labtest.StartOn(t, 0, labtest.Command(t, "serve", address))
	client := func(stdin []byte, args ...string) labtest.Result {
		t.Helper()
		cmd := labtest.Command(t, append([]string{"-from", labtest.HCA(t, 2).IPv4().String()}, args...)...)
		cmd.Stdin = bytes.NewReader(stdin)
		return labtest.StartOn(t, 0, cmd).Finish(t)
	}
	for i, size := range []int{0, 1, inline, inline + 1, 100_000, maxValue} {
		value := make([]byte, size)
		rand.NewChaCha8([32]byte{byte(i)}).Read(value)
		key := fmt.Sprintf("key %d", i)
		if r := client(value, "put", address, key); r.Status != 0 {
			t.Fatalf("put of %d bytes: %s", size, r.Stderr)
		}
		if r := client(nil, "get", address, key); r.Status != 0 || r.Stdout != string(value) {
			t.Errorf("get of %d bytes brought %d: %s", size, len(r.Stdout), r.Stderr)
		}
	}
	if r := client(nil, "get", address, "nothing"); r.Status != 1 || !strings.Contains(r.Stderr, "no such key") {
		t.Errorf("get of nothing: %d, %s", r.Status, r.Stderr)
	}
	if r := client(make([]byte, maxValue+1), "put", address, "much"); r.Status != 1 || !strings.Contains(r.Stderr, "1048576") {
		t.Errorf("put of too much: %d, %s", r.Status, r.Stderr)
	}
	stop(t, server)
}

func stop(t *testing.T, server *labtest.Process) (told string) {
	t.Helper()
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	r := server.Finish(t)
	if r.Status != 0 {
		t.Errorf("the server ended with %d: %s", r.Status, r.Stderr)
	}
	return r.Stderr
}

func TestTheServerGoesOnWhateverComes(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	address := netip.AddrPortFrom(labtest.HCA(t, 1).IPv4(), 5200)
	server := labtest.StartOn(t, 0, labtest.Command(t, "serve", address.String()))
	from := labtest.HCA(t, 2).IPv4()
	client := func(stdin []byte, args ...string) labtest.Result {
		t.Helper()
		cmd := labtest.Command(t, append([]string{"-from", from.String()}, args...)...)
		cmd.Stdin = bytes.NewReader(stdin)
		return labtest.StartOn(t, 0, cmd).Finish(t)
	}
	value := bytes.Repeat([]byte("v"), inline+1)
	if r := client(value, "put", address.String(), "key"); r.Status != 0 {
		t.Fatal(r.Stderr)
	}
	peer, err := rdssock.Listen(netip.AddrPortFrom(from, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	unknown := (&cmsg.Encoder{Dialect: peer.Dialect()}).AppendRDMADest(nil, 0x4700)
	for _, m := range []struct {
		text    string
		control []byte
	}{
		{"", nil},
		{strings.Repeat("x", 100_000), nil},
		{`{"Op": "delete"}`, nil},
		{`{"Op": "put", "Key": "key", "Size": -1}`, nil},
		{`{"Op": "put", "Key": "key", "Size": 1000000000000}`, nil},
		{`{"Op": "get", "Key": "key", "Size": 10}`, nil},
		{`{"Op": "get", "Key": "key", "Size": 1000000}`, nil},
		{`{"Op": "get", "Key": "key", "Size": 1e99}`, nil},
		{`{"Op": "put", "Key": "key", "Size": 4097}`, unknown},
		{`{"Op": "get", "Key": "key", "Size": 4097}`, unknown},
	} {
		// A peer cannot give a key that is not its own: it reaches nobody.
		_, _, err := peer.WriteMsgAddrPort([]byte(m.text), m.control, address)
		if (err == nil) != (m.control == nil) {
			t.Errorf("%.50s: %v", m.text, err)
		}
	}
	if r := client(nil, "get", address.String(), "key"); r.Status != 0 || r.Stdout != string(value) {
		t.Errorf("get brought %d bytes: %s", len(r.Stdout), r.Stderr)
	}
	stop(t, server)
}

func TestValuesAreKeptUpToALimit(t *testing.T) {
	s := &server{values: make(map[string][]byte)}
	value := make([]byte, maxValue)
	put := func(key string, size int, full bool) {
		t.Helper()
		before := s.size
		r := s.put(&request{Op: "put", Key: key, Size: size}, value[:size])
		switch {
		case full && (!strings.Contains(r.Error, "the server is full") || s.size != before):
			t.Errorf("%q of %d bytes was put: %+v, %d bytes of %d", key, size, r, s.size, maxAll)
		case !full && (r.Error != "" || len(s.values[key]) != size):
			t.Errorf("%q of %d bytes: %s", key, size, r.Error)
		}
	}
	for i := range maxAll/maxValue - 1 {
		put(fmt.Sprintf("%03d", i), maxValue, false)
	}
	left := maxAll - s.size - len("last")
	put("last", left+1, true)
	put("last", left, false)
	put("x", 0, true)
	put("", 1, true)
	// One that is there takes the place of the old one.
	put("000", maxValue, false)
	put("000", 0, false)
	put("x", maxValue-1, false)
	put("y", 0, true)
	if s.size != maxAll {
		t.Errorf("%d bytes are counted, and not %d", s.size, maxAll)
	}
}

// serverAt is a server in the test's own process. It does not serve yet.
func serverAt(t *testing.T, address netip.AddrPort) *server {
	t.Helper()
	conn, err := open(rdssock.Listen(address, &rdssock.Config{Transport: rdssock.TransportInfiniBand}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// serveOne sees that the server serves a client well, which gets the value.
func (s *server) serveOne(t *testing.T, client *exec.Cmd, value []byte) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx) }()
	if r := labtest.StartOn(t, 0, client).Finish(t); r.Status != 0 || r.Stdout != string(value) {
		t.Errorf("get brought %d bytes: %s", len(r.Stdout), r.Stderr)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if n := s.conn.Outstanding(); n != 0 {
		t.Errorf("%d operations are outstanding", n)
	}
}

func TestTheServerOutlivesItsClients(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	address := netip.AddrPortFrom(labtest.HCA(t, 1).IPv4(), 5400)
	from := netip.AddrPortFrom(labtest.HCA(t, 2).IPv4(), 0)
	s := serverAt(t, address)
	// One request of the device, which says that it is refused.
	value := bytes.Repeat([]byte("v"), 10_000)
	s.values["key"] = value
	for _, req := range []request{{Op: "get", Key: "key", Size: maxValue}, {Op: "put", Key: "key", Size: 10_000}} {
		// A client that ends with its request unanswered takes its memory along.
		client, err := open(rdssock.Listen(from, &rdssock.Config{Transport: rdssock.TransportInfiniBand}))
		if err != nil {
			t.Fatal(err)
		}
		region, err := rdma.Allocate(maxValue)
		if err != nil {
			t.Fatal(err)
		}
		message, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := client.Offer(ctx, &rdma.Registration{Memory: region.All()}, message, address); err != nil {
			t.Fatal(err)
		}
		_, key, gone, err := s.conn.Receive(ctx, make([]byte, 1000))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if err := region.Close(ctx); err != nil {
			t.Fatal(err)
		}
		// Its kernel keeps what was offered until the message is acknowledged.
		for err = nil; err == nil; {
			err = s.answer(ctx, req, key, gone)
		}
		if !errors.Is(err, rdma.ErrRemoteAccess) && !errors.Is(err, rdma.ErrDropped) {
			t.Errorf("%s of a client that is gone: %v", req.Op, err)
		}
	}
	s.values["key"] = value
	// Where there is no host nobody ever answers.
	s.patience = 100 * time.Millisecond
	nobody := netip.AddrPortFrom(netip.MustParseAddr("10.8.0.79"), 4000)
	err := s.answer(t.Context(), request{Op: "get", Key: "key", Size: maxValue}, 0x4700, nobody)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get for a host that is not there: %v", err)
	}
	s.patience = patience
	s.serveOne(t, labtest.Command(t, "-from", from.Addr().String(), "get", address.String(), "key"), value)
}

func TestWhatCannotBeDoneSaysWhy(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	for name, test := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"nothing":                 {nil, 2, "usage:"},
		"an unknown verb":         {[]string{"delete", "10.8.0.1:5300", "key"}, 2, "usage:"},
		"an unknown verb alone":   {[]string{"delete"}, 2, "usage:"},
		"no key":                  {[]string{"get", "10.8.0.1:5300"}, 2, "usage:"},
		"no port":                 {[]string{"get", "10.8.0.1", "key"}, 1, `"10.8.0.1" is no address and port: want one such as 10.8.0.1:4100`},
		"an address without RDMA": {[]string{"serve", "127.0.0.1:5300"}, 1, "transport infiniband does not serve 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := labtest.RunOn(t, 0, test.args...); r.Status != test.status || !strings.Contains(r.Stderr, test.want) || r.Stdout != "" {
				t.Errorf("%d, %q, %s; want %d, %s", r.Status, r.Stdout, r.Stderr, test.status, test.want)
			}
		})
	}
}
