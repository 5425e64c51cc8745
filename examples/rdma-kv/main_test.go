package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
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
